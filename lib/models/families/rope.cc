#include "models/families/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "headlight/models/errors.h"
#include "models/families/config_values.h"
#include "models/folder_keys.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// A kind of scaling, and the keys of its parameters beside the base and the type, "|" between two.
struct Kind {
  std::string_view name;
  RotaryScalingKind kind;
  std::string_view keys;
};
constexpr std::array<Kind, 7> kKinds{{
    {"default", RotaryScalingKind::none, ""},
    {"linear", RotaryScalingKind::linear, "factor"},
    {"dynamic", RotaryScalingKind::dynamic, "factor"},
    {"llama3", RotaryScalingKind::llama3, "factor|low_freq_factor|high_freq_factor|original_max_position_embeddings"},
    {"yarn", RotaryScalingKind::yarn,
     "factor|attention_factor|beta_fast|beta_slow|mscale|mscale_all_dim|original_max_position_embeddings|truncate"},
    {"longrope", RotaryScalingKind::longrope,
     "factor|attention_factor|short_factor|long_factor|original_max_position_embeddings"},
    {"proportional", RotaryScalingKind::proportional, "factor"},
}};

constexpr double kLeastBase = 2;

// The parameters of a layer's type, if there are some.
std::optional<JsonValue> parameters_of(const JsonValue& config, const RopeDefaults& defaults, std::string_view type) {
  auto scaling = defaults.scaled ? config.object("rope_scaling") : std::nullopt;
  if (scaling && scaling->members().empty()) scaling.reset();
  if (scaling && !type.empty() && scaling->find("type") && !scaling->find("rope_type")) {
    scaling->fail("type", "is there without rope_type: Transformers 4 reads it and 5 does not; expected rope_type");
  }
  auto found = scaling ? scaling : config.object("rope_parameters");
  if (!found) return found;
  if (scaling || type.empty()) return found;
  const bool by_type = found->find("full_attention") || found->find("sliding_attention");
  if (!by_type) config.fail("rope_parameters", "has no parameters by type of layer, expected full_attention");
  for (const auto& [key, value] : found->members()) {
    if (value.is_null() || is_among("full_attention|sliding_attention", key)) continue;
    value.fail("is " + value.described() + ", beside parameters by type of layer");
  }
  return found->object(type);
}

const Kind& kind_of(const JsonValue& parameters) {
  const std::string_view key = spelling(parameters, "rope_type", "type");
  const std::string name = parameters.string(key).value_or("default");
  std::string expected;
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
    runtime::append_item(expected, kind.name);
  }
  parameters.fail(key, "is " + in_quotes(name) + ", expected one of " + expected);
}

void check_keys(const JsonValue& parameters, const Kind& kind) {
  for (const auto& [key, value] : parameters.members()) {
    if (value.is_null() || is_among("rope_type|type|rope_theta|partial_rotary_factor", key)) continue;
    if (is_among(kind.keys, key)) continue;
    value.fail("is " + value.described() + ", which the type " + std::string(kind.name) + " does not know");
  }
}

double needed(const JsonValue& parameters, std::string_view key, double least) {
  if (!parameters.number(key)) parameters.fail(key, "is missing");
  return number(parameters, key, 0, least, kLargestNumber);
}

std::vector<double> factors(const JsonValue& parameters, std::string_view key, std::int64_t count) {
  const auto list = parameters.array(key);
  const std::size_t size = list ? list->elements().size() : 0;
  if (static_cast<std::int64_t>(size) != count) {
    parameters.fail(key, "has " + std::to_string(size) + " numbers, expected " + std::to_string(count));
  }
  std::vector<double> numbers;
  if (!list) return numbers;
  for (const JsonValue& value : list->elements()) {
    const double factor = value.as_number().value_or(0);
    if (!(factor > 0 && factor <= kLargestNumber)) {
      value.fail("is " + value.described() + ", expected a positive number");
    }
    numbers.push_back(factor);
  }
  return numbers;
}

// 0.1 · m · ln(s) + 1 (Peng et al. 2023)
double magnitude(double scale, double factor) { return scale <= 1 ? 1.0 : 0.1 * factor * std::log(scale) + 1.0; }

void read_yarn(const JsonValue& parameters, RotaryScaling& into) {
  into.fast_turns = number(parameters, "beta_fast", 32, 1e-6, kLargestNumber);
  into.slow_turns = number(parameters, "beta_slow", 1, 1e-6, kLargestNumber);
  into.whole_pairs = flag(parameters, "truncate", true);
  const double one = number(parameters, "mscale", 0, 0, kLargestNumber),
               all = number(parameters, "mscale_all_dim", 0, 0, kLargestNumber);
  const double otherwise =
      one != 0 && all != 0 ? magnitude(into.factor, one) / magnitude(into.factor, all) : magnitude(into.factor, 1);
  into.attention_factor = number(parameters, "attention_factor", otherwise, 1e-6, kLargestNumber);
}

void read_longrope(const JsonValue& parameters, std::int64_t dims, RotaryScaling& into) {
  into.short_factors = factors(parameters, "short_factor", dims / 2);
  into.long_factors = factors(parameters, "long_factor", dims / 2);
  const double original = static_cast<double>(std::max<std::int64_t>(into.original_length, 2));
  const double otherwise = into.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(into.factor) / std::log(original));
  into.attention_factor = number(parameters, "attention_factor", otherwise, 1e-6, kLargestNumber);
}

void read_scaling(const JsonValue& config, const JsonValue& parameters, const Kind& kind, const RopeDefaults& defaults,
                  RotarySpec& into) {
  RotaryScaling& scaling = into.scaling;
  scaling.kind = kind.kind;
  scaling.original_length = defaults.longest;
  constexpr std::string_view kKey = "original_max_position_embeddings";
  if (is_among(kind.keys, kKey)) {
    scaling.original_length = size(config, kKey, 1, size(parameters, kKey, 1, defaults.longest));
  }
  // Where a file leaves the factor out, it is how much longer sequences are than those of training.
  const bool may_lack = kind.kind == RotaryScalingKind::longrope;
  const double longer = static_cast<double>(defaults.longest) / static_cast<double>(scaling.original_length);
  if (kind.kind == RotaryScalingKind::proportional) {
    scaling.factor = number(parameters, "factor", 1, 1e-6, kLargestNumber);
  } else {
    scaling.factor =
        may_lack ? number(parameters, "factor", longer, 1e-6, kLargestNumber) : needed(parameters, "factor", 1e-6);
  }
  if (kind.kind == RotaryScalingKind::llama3) {
    scaling.low_frequency_factor = needed(parameters, "low_freq_factor", 1e-6);
    scaling.high_frequency_factor = needed(parameters, "high_freq_factor", 1e-6);
    if (scaling.low_frequency_factor >= scaling.high_frequency_factor) {
      parameters.fail("high_freq_factor", "is not more than low_freq_factor");
    }
  }
  if (kind.kind == RotaryScalingKind::yarn) read_yarn(parameters, scaling);
  if (kind.kind == RotaryScalingKind::longrope) read_longrope(parameters, into.dims, scaling);
}

}  // namespace

RotarySpec read_rope(const JsonValue& config, const RopeDefaults& defaults, std::string_view layer_type) {
  RotarySpec rotary{.dims = defaults.head_dim};
  if (rotary.dims % 2 != 0) {
    config.fail("head_dim", "is " + std::to_string(rotary.dims) + ", expected an even number");
  }
  const auto parameters = parameters_of(config, defaults, layer_type);
  rotary.base = number(config, defaults.theta_key, defaults.theta, kLeastBase, kLargestNumber);
  double turned = number(config, "partial_rotary_factor", 1, 0, 1);
  if (parameters) {
    rotary.base = number(*parameters, "rope_theta", rotary.base, kLeastBase, kLargestNumber);
    turned = number(*parameters, "partial_rotary_factor", turned, 0, 1);
    const Kind& kind = kind_of(*parameters);
    check_keys(*parameters, kind);
    if (!layer_type.empty() && !flag(*parameters, "truncate", true)) {
      parameters->fail("truncate", "is false, which Transformers passes over in parameters of a type of layer");
    }
    if (kind.kind == RotaryScalingKind::proportional) {
      rotary.dims = 2 * static_cast<std::int64_t>(turned * static_cast<double>(defaults.head_dim) / 2);
      turned = 1;
    }
    if (kind.kind != RotaryScalingKind::none) read_scaling(config, *parameters, kind, defaults, rotary);
  }
  if (turned != 1) {
    const bool inside = parameters && parameters->find("partial_rotary_factor");
    (inside ? *parameters : config)
        .fail("partial_rotary_factor", "is " + std::to_string(turned) + ", expected 1 in this family");
  }
  return rotary;
}

}  // namespace headlight::models
