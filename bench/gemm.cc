// Matrix products: weights packed once, as float32 or narrower, B as it lies, all four transpositions; beside
// OpenBLAS, BLIS and oneDNN. Sizes are MxNxK: A [M, K] · B [K, N].
#include "headlight/gemm.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/case_name.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "native_peers/sgemm_peer.h"

namespace headlight::bench {
namespace {

struct Product {
  std::int64_t m, n, k;
  bool packed = true;
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  Activation activation = Activation::none;
  NumberType type = NumberType::float32;  // of a packed B
};

struct Operands {
  Operands(Engine& engine, const Product& shape_)
      : shape(shape_),
        a(shape.transpose_a == Transpose::yes ? filled<2>({shape.k, shape.m}, 1) : filled<2>({shape.m, shape.k}, 1)),
        b(shape.transpose_b == Transpose::yes ? filled<2>({shape.n, shape.k}, 2) : filled<2>({shape.k, shape.n}, 2)),
        c({shape.m, shape.n}) {
    if (shape.packed) packed = PackedMatrix(engine, b, shape.transpose_b, shape.type);
    options.transpose_a = shape.transpose_a;
    options.transpose_b = shape.transpose_b;
    options.activation = shape.activation;
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  Product shape;
  Tensor<float, 2> a, b, c;
  PackedMatrix packed;
  GemmOptions options;
};

// Some elements against float64.
bool is_right(const Operands& operands) {
  const Product& shape = operands.shape;
  for (std::int64_t probe = 0; probe < 64; ++probe) {
    const std::int64_t m = (probe * 7919 + shape.m - 1) % shape.m;
    const std::int64_t n = (probe * 104729 + shape.n - 1) % shape.n;
    double sum = 0;
    double size = 0;
    for (std::int64_t k = 0; k < shape.k; ++k) {
      const double left = shape.transpose_a == Transpose::yes ? operands.a(k, m) : operands.a(m, k);
      const double right = shape.transpose_b == Transpose::yes ? operands.b(n, k) : operands.b(k, n);
      sum += left * right;
      size += std::abs(left * right);
    }
    if (shape.activation == Activation::gelu) sum *= std::erfc(-sum / std::sqrt(2.0)) / 2;
    // Each of two rounded operands is off by at most 2⁻⁸ of itself, or by half of a scale: those of numbers of −1 … 1
    // are 2 / 255 and 1 / 127 at most, in groups of int4 1 / 127 and 1 / 7.
    const double rounding = shape.type == NumberType::bfloat16  ? 0x1p-7 * size
                            : shape.type == NumberType::float16 ? 0x1p-11 * size
                                                                : 0;
    const double half_scales = shape.type == NumberType::int8   ? static_cast<double>(shape.k) / 127
                               : shape.type == NumberType::int4 ? static_cast<double>(shape.k) / 12
                                                                : 0;
    if (!(std::abs(operands.c(m, n) - sum) <= 1e-5 * size + rounding + half_scales + 1e-6)) return false;
  }
  return true;
}

SgemmCall call_of(Operands& operands) {
  SgemmCall call;
  call.m = operands.shape.m;
  call.n = operands.shape.n;
  call.k = operands.shape.k;
  call.a = operands.a.data();
  call.lda = operands.a.shape()[1];
  call.transpose_a = operands.shape.transpose_a == Transpose::yes;
  call.b = operands.b.data();
  call.ldb = operands.b.shape()[1];
  call.transpose_b = operands.shape.transpose_b == Transpose::yes;
  call.c = operands.c.data();
  call.ldc = operands.shape.n;
  return call;
}

// No library here has the activation, float16 or int4. Of bfloat16 and int8 A is narrowed before the peer is timed,
// which ours does on the way; and of int8 the peer leaves the scales out.
void add_peers(const std::shared_ptr<Operands>& operands, int threads, Work& work) {
  const Product& shape = operands->shape;
  if (shape.activation != Activation::none) return;
  for (const auto& peer : sgemm_peers()) {
    SgemmPeer* const other = peer.get();
    if (shape.type == NumberType::float32) {
      work.peers.push_back({other->name(), other->version(), [other, operands, threads] {
                              other->set_threads(threads);
                              other->multiply(call_of(*operands));
                            }});
    }
    if (!shape.packed || shape.type == NumberType::float16 || shape.type == NumberType::int4) continue;
    if (const auto packed = other->packed(call_of(*operands), threads, shape.type))
      work.peers.push_back({"packed " + other->name(), other->version(), packed});
  }
}

Work product_work(const Product& shape, const CaseContext& context) {
  const auto operands = std::make_shared<Operands>(context.engine, shape);
  Engine* engine = &context.engine;
  Work work;
  if (shape.packed) {
    work.run = [operands, engine] { gemm(*engine, operands->a, operands->packed, operands->c, operands->options); };
  } else {
    work.run = [operands, engine] { gemm(*engine, operands->a, operands->b, operands->c, operands->options); };
  }
  work.is_right = [operands] { return is_right(*operands); };
  work.operations = 2.0 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
  work.reads = shape.packed ? reads_of(operands->a) : reads_of(operands->a, operands->b);
  if (shape.packed) {
    work.reads.emplace_back(static_cast<const float*>(operands->packed.data()),
                            operands->packed.bytes() / sizeof(float));
  }
  // The peak that is in reach: of a B that is widened, that of what it is widened to.
  work.type = shape.type == NumberType::float16 ? NumberType::float32
              : shape.type == NumberType::int4  ? NumberType::int8
                                                : shape.type;
  work.writes = writes_of(operands->c);
  // One row reads every weight once for two operations.
  work.bound_by_reading = shape.m == 1;
  if (context.options.peers) add_peers(operands, engine->threads(), work);
  return work;
}

std::string name_of(const Product& shape) {
  const auto letter = [](Transpose transpose) { return transpose == Transpose::yes ? 't' : 'n'; };
  const bool plain = shape.transpose_a == Transpose::no && shape.transpose_b == Transpose::no;
  return case_name(shape.packed ? "packed" : "unpacked", shape.type == NumberType::float32 ? "" : "_",
                   shape.type == NumberType::float32 ? "" : name(shape.type),
                   shape.packed && plain ? "" : case_name("_", letter(shape.transpose_a), letter(shape.transpose_b)),
                   shape.activation == Activation::gelu ? "_gelu/" : "/", shape.m, "x", shape.n, "x", shape.k);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const Product& shape, bool quick) {
    all.push_back({name_of(shape), [shape](const CaseContext& context) { return product_work(shape, context); }, quick,
                   shape.m == 16 && shape.type == NumberType::float32});
  };
  for (const std::int64_t size : {256, 512, 1024, 2048}) add({size, size, size}, true);
  add({128, 768, 768}, true);
  add({128, 3072, 768}, true);
  add({128, 768, 3072}, true);
  add({16, 768, 768}, true);
  add({1, 768, 768}, true);
  for (const NumberType type : {NumberType::bfloat16, NumberType::float16, NumberType::int8, NumberType::int4}) {
    const auto add_typed = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool quick) {
      add({.m = m, .n = n, .k = k, .type = type}, quick);
    };
    for (const std::int64_t size : {512, 1024, 2048}) add_typed(size, size, size, size == 512);
    add_typed(128, 768, 768, false);
    add_typed(128, 3072, 768, false);
    add_typed(128, 768, 3072, true);
    add_typed(16, 768, 768, false);
    add_typed(1, 4096, 4096, false);
  }
  // MiniLM's projections and feed-forward.
  add({128, 384, 384}, false);
  add({128, 1536, 384}, false);
  add({128, 384, 1536}, false);
  add({128, 1536, 384, true, Transpose::no, Transpose::no, Activation::gelu}, false);
  add({100, 4096, 4096}, false);
  for (const Transpose a : {Transpose::no, Transpose::yes}) {
    for (const Transpose b : {Transpose::no, Transpose::yes}) add({512, 512, 512, false, a, b}, false);
  }
  add({1024, 1024, 1024, true, Transpose::yes}, false);
  add({128, 768, 768, false}, false);
  add({1, 768, 768, false}, false);
  add({1, 768, 768, false, Transpose::no, Transpose::yes}, false);
  add({1, 4096, 4096, false, Transpose::no, Transpose::yes}, false);
  add({2, 1024, 1024, false, Transpose::no, Transpose::yes}, false);
  // The two products of attention at L = 1024 and D = 64.
  add({1024, 1024, 64, false, Transpose::no, Transpose::yes}, false);
  add({1024, 64, 1024, false}, false);
  add({8, 8, 8, false}, false);
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("gemm", headlight::bench::cases(), argc, argv); }
