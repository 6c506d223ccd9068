#include "headlight/number_type.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "headlight/system.h"
#include "runtime/built_types.h"

namespace headlight {

namespace {

constexpr std::array<std::string_view, std::size(kNumberTypes)> kNames = {"float32", "bfloat16", "float16", "int8",
                                                                          "int4"};

struct ShortName {
  std::string_view name;
  NumberType type;
};
// What other libraries and their command lines call them.
constexpr ShortName kShortNames[] = {
    {"fp32", NumberType::float32}, {"bf16", NumberType::bfloat16}, {"fp16", NumberType::float16}};

}  // namespace

std::string_view name(NumberType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "";
}

std::optional<NumberType> parse_number_type(std::string_view name) noexcept {
  for (const ShortName& known : kShortNames) {
    if (known.name == name) return known.type;
  }
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<NumberType>(found - kNames.begin());
}

std::vector<NumberType> available_types() {
  std::vector<NumberType> types;
  std::copy_if(std::begin(kNumberTypes), std::end(kNumberTypes), std::back_inserter(types),
               [](NumberType type) { return runtime::is_built(type); });  // inlined always, also without optimisation
  return types;
}

}  // namespace headlight
