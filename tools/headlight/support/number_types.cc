#include "tools/headlight/support/number_types.h"

#include <initializer_list>

namespace headlight::program {

std::vector<std::string> number_type_names() {
  std::vector<std::string> names;
  for (const NumberType type : kNumberTypes) names.emplace_back(name(type));
  return names;
}

namespace {

// Those that multiply numbers of that type in vectors.
std::string vector_instructions_of(const Engine& engine, NumberType type) {
  const std::string set(name(engine.isa()));
  // The first of them that the engine has.
  const auto has_one = [&](std::initializer_list<InstructionFeature> some) {
    for (const InstructionFeature feature : some) {
      if (engine.features().has(feature)) return std::string(name(feature));
    }
    return std::string();
  };
  std::string found = set;
  if (type == NumberType::bfloat16) {
    found = has_one({InstructionFeature::avx512_bf16});
    if (found.empty()) found = "widened to float32 on " + set;
  } else if (type == NumberType::float16) {
    found = "widened to float32 on " + set;
  } else if (type == NumberType::int8 || type == NumberType::int4) {
    found = has_one({InstructionFeature::avx512_vnni, InstructionFeature::avx_vnni, InstructionFeature::neon_i8mm,
                     InstructionFeature::neon_dotprod});
    if (found.empty()) found = "widened to 16 bits on " + set;
  }
  return found;
}

}  // namespace

std::string instructions_of(const Engine& engine, NumberType type) {
  using enum InstructionFeature;
  if (type == NumberType::bfloat16 && engine.features().has(amx_bf16)) return std::string(name(amx_bf16));
  if (type == NumberType::int8 && engine.features().has(amx_int8)) return std::string(name(amx_int8));
  return vector_instructions_of(engine, type);
}

std::vector<NumberType> cache_types() {
  return {NumberType::float32, NumberType::bfloat16, NumberType::float16, NumberType::int8};
}

std::string attention_instructions_of(const Engine& engine, NumberType type) {
  return vector_instructions_of(engine, type == NumberType::int8 ? NumberType::float16 : type);
}

}  // namespace headlight::program
