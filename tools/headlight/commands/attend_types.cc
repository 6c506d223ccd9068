#include "tools/headlight/commands/attend_types.h"

#include <cstddef>
#include <vector>

#include "headlight/typed_attention.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace {

constexpr const char* kTypes = "float32|bfloat16|float16";

NumberType type_named(const std::string& text) {
  for (const NumberType type : {NumberType::bfloat16, NumberType::float16}) {
    if (text == name(type)) return type;
  }
  return NumberType::float32;
}

// A contiguous array of numbers of one type.
template <class Stored>
class StoredArray {
 public:
  explicit StoredArray(const View<const float, 4>& from) : tensor_(from.shape) {
    for (std::int64_t n = 0; n < tensor_.size(); ++n) tensor_.data()[n] = Stored(from.data[n]);
  }
  void widen_into(const View<float, 4>& to) const {
    for (std::int64_t n = 0; n < tensor_.size(); ++n) to.data[n] = static_cast<float>(tensor_.data()[n]);
  }
  [[nodiscard]] MutableTypedView<4> view() { return tensor_; }

 private:
  Tensor<Stored, 4> tensor_;
};

// f(array) of that type with those numbers.
template <class Function>
void with_stored(NumberType type, const View<const float, 4>& numbers, const Function& f) {
  if (type == NumberType::bfloat16) return f(StoredArray<BFloat16>(numbers));
  if (type == NumberType::float16) return f(StoredArray<Float16>(numbers));
  f(StoredArray<float>(numbers));
}

}  // namespace

void TypeArguments::add_to(Command& command) {
  const auto types = one_of({"float32", "bfloat16", "float16"});
  command
      .add_option("--type", type,
                  "Round query, key, value and the result to this type, as memory of 16 bits a number would hold them "
                  "(default: float32). Arithmetic and files stay float32; float16 ends at 65504")
      .type_name(kTypes)
      .check(types);
  command
      .add_option("--cache-type", cache_type,
                  "The same for key and value alone, as a cache would hold them (default: as --type)")
      .type_name(kTypes)
      .check(types);
}

NumberType TypeArguments::of_query() const { return type_named(type); }
NumberType TypeArguments::of_cache() const { return type_named(cache_type.empty() ? type : cache_type); }

void round_to(NumberType type, std::span<float> numbers) {
  for (float& number : numbers) {
    if (type == NumberType::bfloat16) number = static_cast<float>(BFloat16(number));
    if (type == NumberType::float16) number = static_cast<float>(Float16(number));
  }
}

void attend_typed(Engine& engine, const TypeArguments& types, const View<const float, 4>& query,
                  const View<const float, 4>& key, const View<const float, 4>& value, const View<float, 4>& out,
                  const AttentionOptions& options) {
  with_stored(types.of_query(), query, [&](auto&& of_query) {
    with_stored(types.of_cache(), key, [&](auto&& of_key) {
      with_stored(types.of_cache(), value, [&](auto&& of_value) {
        with_stored(types.of_query(), out, [&](auto&& of_out) {
          attention(engine, AttentionOperands{of_query.view(), of_key.view(), of_value.view(), of_out.view()}, options);
          of_out.widen_into(out);
        });
      });
    });
  });
}

}  // namespace headlight::program
