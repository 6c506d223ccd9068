#include "tools/headlight/support/number_types.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "headlight/system.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {

void take_number_type(Option option, std::span<const NumberType> types) {
  std::vector<std::string> names;
  for (const NumberType type : types) names.emplace_back(name(type));
  option.type_name(alternatives(names))
      .check([known = std::vector(types.begin(), types.end()), by_name = one_of(names)](const std::string& text) {
        const std::optional<NumberType> type = parse_number_type(text);
        const bool is_known = type && std::find(known.begin(), known.end(), *type) != known.end();
        return is_known ? std::string() : by_name(text);
      });
}

namespace {

// The first of some features that the engine has, or else what its set does.
std::string first_of(const Engine& engine, std::initializer_list<InstructionFeature> features, const char* otherwise) {
  for (const InstructionFeature feature : features) {
    if (engine.features().has(feature)) return std::string(name(feature));
  }
  return otherwise + std::string(name(engine.isa()));
}

}  // namespace

std::string instructions_of(const Engine& engine, NumberType type) {
  using enum InstructionFeature;
  switch (type) {
    case NumberType::bfloat16:
      return first_of(engine, {amx_bf16, avx512_bf16, neon_bf16}, "widened to float32 on ");
    case NumberType::float16:
      return first_of(engine, {}, "widened to float32 on ");
    case NumberType::int8:
    case NumberType::int4:
      return first_of(engine, {amx_int8, avx512_vnni, avx_vnni, neon_i8mm, neon_dotprod}, "widened to 16 bits on ");
    case NumberType::float32:
      break;
  }
  return first_of(engine, {}, "");
}

std::vector<NumberType> cache_types() {
  std::vector<NumberType> types = available_types();
  std::erase(types, NumberType::int4);
  return types;
}

std::string attention_instructions_of(const Engine& engine, NumberType type) {
  if (type == NumberType::float32) return instructions_of(engine, type);
  if (type != NumberType::bfloat16) return first_of(engine, {}, "widened to float32 on ");
  return first_of(engine, {InstructionFeature::amx_bf16, InstructionFeature::avx512_bf16}, "widened to float32 on ");
}

}  // namespace headlight::program
