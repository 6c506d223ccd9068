#include "native_peers/onednn_packed.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "headlight/storage_types.h"

namespace headlight::bench {
namespace {

// The numbers of dnnl_types.h 2.x that are needed here.
constexpr int kCpu = 1, kAnyLayout = 1, kQueryWeights = 131, kInOrder = 1;
constexpr int kBFloat16 = 2, kFloat32 = 3, kInt8 = 5;
constexpr float kLargestInt8 = 127;  // what 1, the largest number of inputs here, becomes
constexpr int kSource = 1, kDestination = 17, kWeights = 33;

// Its descriptions are structs of some hundred bytes to 4 KiB, which only the library looks into.
struct alignas(64) Description {
  std::byte bytes[8192];
};

struct Argument {
  int name;
  void* memory;
};

int type_number(NumberType type) noexcept {
  return type == NumberType::bfloat16 ? kBFloat16 : type == NumberType::int8 ? kInt8 : kFloat32;
}

// `count` floats, each in that type.
std::vector<std::byte> stored(NumberType type, const float* from, std::int64_t count) {
  std::vector<std::byte> memory(static_cast<std::size_t>(count) * bytes_of(type));
  const auto put = [&](std::int64_t n, const auto& number) {
    std::memcpy(memory.data() + static_cast<std::size_t>(n) * sizeof(number), &number, sizeof(number));
  };
  for (std::int64_t n = 0; n < count; ++n) {
    if (type == NumberType::bfloat16) put(n, BFloat16(from[n]));
    if (type == NumberType::int8) put(n, static_cast<std::int8_t>(std::lrint(kLargestInt8 * from[n])));
    if (type == NumberType::float32) put(n, from[n]);
  }
  return memory;
}

// What is made lives as long as the process: oneDNN's threads may still hold it.
class Matmul {
 public:
  Matmul(const SharedLibrary& library, NumberType type)
      : type_(type),
        create_engine_(library.find<int(void**, int, std::size_t)>("dnnl_engine_create")),
        create_stream_(library.find<int(void**, void*, unsigned)>("dnnl_stream_create")),
        describe_layout_(library.find<Describe<int>>("dnnl_memory_desc_init_by_tag")),
        describe_strides_(library.find<Describe<const std::int64_t*>>("dnnl_memory_desc_init_by_strides")),
        describe_product_(library.find<int(Description*, const Description*, const Description*, const Description*,
                                           const Description*)>("dnnl_matmul_desc_init")),
        choose_(library.find<int(void**, const Description*, const void*, void*, const void*)>(
            "dnnl_primitive_desc_create")),
        query_(library.find<const Description*(const void*, int, int)>("dnnl_primitive_desc_query_md")),
        choose_reorder_(library.find<int(void**, const Description*, void*, const Description*, void*, const void*)>(
            "dnnl_reorder_primitive_desc_create")),
        create_attributes_(library.find<int(void**)>("dnnl_primitive_attr_create")),
        set_scales_(library.find<int(void*, std::int64_t, int, const float*)>("dnnl_primitive_attr_set_output_scales")),
        create_(library.find<int(void**, const void*)>("dnnl_primitive_create")),
        create_memory_(library.find<int(void**, const Description*, void*, void*)>("dnnl_memory_create")),
        execute_(library.find<int(const void*, void*, int, const Argument*)>("dnnl_primitive_execute")),
        wait_(library.find<int(void*)>("dnnl_stream_wait")) {}

  // Whether the product can be run: `describe_product_` is missing from version 3 on.
  [[nodiscard]] bool prepare(const SgemmCall& call) {
    if (!describe_product_ || create_engine_(&engine_, kCpu, 0) != 0) return false;
    if (create_stream_(&stream_, engine_, kInOrder) != 0) return false;
    Description a, b, c, any, product;
    const int type = type_number(type_);
    const std::int64_t b_sizes[] = {call.k, call.n};
    if (!describe(a, call.m, call.k, call.lda, call.transpose_a, type) ||
        !describe(b, call.k, call.n, call.ldb, call.transpose_b, type) ||
        !describe(c, call.m, call.n, call.ldc, false, kFloat32) ||
        describe_layout_(&any, 2, b_sizes, type, kAnyLayout) != 0 ||
        describe_product_(&product, &a, &any, nullptr, &c) != 0)
      return false;
    void *chosen = nullptr, *attributes = nullptr;
    if (type_ == NumberType::int8) {
      const float scale = 1.0f / (kLargestInt8 * kLargestInt8);
      if (create_attributes_(&attributes) != 0 || set_scales_(attributes, 1, 0, &scale) != 0) return false;
    }
    if (choose_(&chosen, &product, attributes, engine_, nullptr) != 0 || create_(&product_, chosen) != 0) return false;
    const Description* const packed = query_(chosen, kQueryWeights, 0);
    void *reorder = nullptr, *chosen_reorder = nullptr, *plain_b = nullptr, *packed_b = nullptr;
    void* const allocate = reinterpret_cast<void*>(~std::uintptr_t{0});
    a_ = stored(type_, call.a, (call.transpose_a ? call.k : call.m) * call.lda);
    std::vector<std::byte> b_numbers = stored(type_, call.b, (call.transpose_b ? call.n : call.k) * call.ldb);
    if (!packed || !memory(&plain_b, b, b_numbers.data()) ||
        create_memory_(&packed_b, packed, engine_, allocate) != 0 ||
        choose_reorder_(&chosen_reorder, &b, engine_, packed, engine_, nullptr) != 0 ||
        create_(&reorder, chosen_reorder) != 0 || !run(reorder, {{kSource, plain_b}, {kDestination, packed_b}}))
      return false;
    arguments_ = {{kSource, nullptr}, {kWeights, packed_b}, {kDestination, nullptr}};
    return memory(&arguments_[0].memory, a, a_.data()) && memory(&arguments_[2].memory, c, call.c);
  }

  bool multiply() { return run(product_, arguments_); }

 private:
  template <class Layout>
  using Describe = int(Description*, int, const std::int64_t* sizes, int type, Layout);

  // A matrix row by row, or as the transpose of one.
  bool describe(Description& matrix, std::int64_t rows, std::int64_t columns, std::int64_t leading, bool transposed,
                int type) {
    const std::int64_t sizes[] = {rows, columns}, strides[] = {transposed ? 1 : leading, transposed ? leading : 1};
    return describe_strides_(&matrix, 2, sizes, type, strides) == 0;
  }
  bool memory(void** made, const Description& matrix, void* data) {
    return create_memory_(made, &matrix, engine_, data) == 0;
  }
  bool run(void* primitive, const std::vector<Argument>& arguments) {
    return execute_(primitive, stream_, static_cast<int>(arguments.size()), arguments.data()) == 0 &&
           wait_(stream_) == 0;
  }

  NumberType type_;
  std::vector<std::byte> a_;
  int (*create_engine_)(void**, int, std::size_t);
  int (*create_stream_)(void**, void*, unsigned);
  Describe<int>* describe_layout_;
  Describe<const std::int64_t*>* describe_strides_;
  int (*describe_product_)(Description*, const Description*, const Description*, const Description*,
                           const Description*);
  int (*choose_)(void**, const Description*, const void*, void*, const void*);
  const Description* (*query_)(const void*, int, int);
  int (*choose_reorder_)(void**, const Description*, void*, const Description*, void*, const void*);
  int (*create_attributes_)(void**);
  int (*set_scales_)(void*, std::int64_t, int, const float*);
  int (*create_)(void**, const void*);
  int (*create_memory_)(void**, const Description*, void*, void*);
  int (*execute_)(const void*, void*, int, const Argument*);
  int (*wait_)(void*);

  void *engine_ = nullptr, *stream_ = nullptr, *product_ = nullptr;
  std::vector<Argument> arguments_;
};

}  // namespace

std::function<void()> onednn_packed_product(const SharedLibrary& library, const SgemmCall& call, NumberType type) {
  const auto product = std::make_shared<Matmul>(library, type);
  if (!product->prepare(call)) return {};
  return [product] { product->multiply(); };
}

}  // namespace headlight::bench
