#include "tools/headlight/support/number_types.h"

namespace headlight::program {

std::vector<NumberType> product_types() { return {NumberType::float32, NumberType::bfloat16}; }

std::vector<std::string> product_type_names() {
  std::vector<std::string> names;
  for (const NumberType type : product_types()) names.emplace_back(name(type));
  return names;
}

std::string instructions_of(const Engine& engine, NumberType type) {
  const std::string set(name(engine.isa()));
  if (type == NumberType::float32) return set;
  const InstructionFeature feature = InstructionFeature::avx512_bf16;
  return engine.features().has(feature) ? std::string(name(feature)) : "widened to float32 on " + set;
}

}  // namespace headlight::program
