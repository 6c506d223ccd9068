#include "tools/headlight/commands/attend_types.h"

#include <cstdint>

#include "headlight/attention_backward.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/stored_array.h"

namespace headlight::program {
namespace {

constexpr NumberType kStoredTypes[] = {NumberType::float32, NumberType::bfloat16, NumberType::float16};

}  // namespace

void TypeArguments::add_to(Command& command) {
  take_number_type(
      command.add_option(
          "--type", type,
          "Round query, key, value and the result, and the gradients of these, to this type, as memory of 16 bits "
          "a number would hold them (default: float32). Arithmetic and files stay float32; float16 ends at "
          "65504"),
      kStoredTypes);
  take_number_type(
      command.add_option("--cache-type", cache_type,
                         "The same for key and value alone, as a cache would hold them (default: as --type); int8: "
                         "with a scale for each row and head, and gradients in float32"),
      cache_types());
}

NumberType TypeArguments::of_query() const { return *parse_number_type(type); }
NumberType TypeArguments::of_cache() const { return *parse_number_type(cache_type.empty() ? type : cache_type); }

NumberType TypeArguments::of_cache_backward() const {
  return of_cache() == NumberType::int8 ? NumberType::float32 : of_cache();
}

Int8Rows::Int8Rows(const View<float, 4>& rows)
    : numbers(rows.shape), scales({rows.extent(0), rows.extent(1), rows.extent(2)}) {
  EngineOptions options;
  options.threads = 1;
  Engine engine(options);
  quantize_rows(engine, rows, numbers, scales);
  for (std::int64_t n = 0; n < numbers.size(); ++n) {
    rows.data[n] = scales.data()[n / rows.extent(3)] * static_cast<float>(numbers.data()[n]);
  }
}

void round_to(NumberType type, std::span<float> numbers) {
  for (float& number : numbers) {
    if (type == NumberType::bfloat16) number = static_cast<float>(BFloat16(number));
    if (type == NumberType::float16) number = static_cast<float>(Float16(number));
  }
}

void attend_typed(Engine& engine, const TypeArguments& types, const View<const float, 4>& query,
                  const View<const float, 4>& key, const View<const float, 4>& value, const Int8Cache& cache,
                  const View<float, 4>& out, const AttentionOptions& options) {
  StoredArray of_query(types.of_query(), query), of_out(types.of_query(), out);
  if (cache.key) {
    AttentionOptions with_scales = options;
    with_scales.key_scales = cache.key->scales;
    with_scales.value_scales = cache.value->scales;
    attention(engine, of_query.view(), cache.key->numbers, cache.value->numbers, of_out.view(), with_scales);
  } else {
    StoredArray of_key(types.of_cache(), key), of_value(types.of_cache(), value);
    attention(engine, of_query.view(), of_key.view(), of_value.view(), of_out.view(), options);
  }
  of_out.widen_into(out);
}

void differentiate_typed(Engine& engine, const TypeArguments& types, const FloatOperands& operands,
                         const AttentionGradients& gradients, const AttentionOptions& options) {
  StoredArray query(types.of_query(), operands.query), key(types.of_cache_backward(), operands.key);
  StoredArray value(types.of_cache_backward(), operands.value), out(types.of_query(), operands.out);
  StoredArray out_gradient(types.of_query(), operands.out_gradient);
  StoredArray of_query(types.of_query(), gradients.query), of_key(types.of_cache_backward(), gradients.key);
  StoredArray of_value(types.of_cache_backward(), gradients.value);
  attention_backward(
      engine, query.view(), key.view(), value.view(), out.view(), operands.log_sum_exp, out_gradient.view(),
      {of_query.view(), of_key.view(), of_value.view(), gradients.bias, gradients.sinks, gradients.accumulate},
      options);
  of_query.widen_into(gradients.query);
  of_key.widen_into(gradients.key);
  of_value.widen_into(gradients.value);
}

}  // namespace headlight::program
