#include "models/families/config_values.h"

#include <algorithm>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"

namespace headlight::models {

using files::JsonValue;

std::int64_t size(const JsonValue& config, std::string_view key, std::int64_t least,
                  std::optional<std::int64_t> otherwise, std::int64_t most) {
  const auto value = config.integer(key);
  if (!value && otherwise) return *otherwise;
  if (!value) config.fail(key, "is missing");
  if (*value < least || *value > most) {
    config.fail(key,
                "is " + std::to_string(*value) + ", expected " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *value;
}

double number(const JsonValue& config, std::string_view key, double otherwise, double least, double most) {
  const double value = config.number(key).value_or(otherwise);
  if (!(value >= least && value <= most)) {
    config.fail(key,
                "is " + std::to_string(value) + ", expected " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

bool flag(const JsonValue& config, std::string_view key, bool otherwise) {
  return config.boolean(key).value_or(otherwise);
}

Activation activation(const JsonValue& config, std::string_view key, std::string_view otherwise) {
  return activation_named(config, key, config.string(key).value_or(std::string(otherwise)));
}

Activation activation_named(const JsonValue& config, std::string_view key, std::string_view name) {
  std::string expected;
  for (const ActivationName& known : kActivationNames) {
    if (name == known.name) return known.activation;
    runtime::append_item(expected, known.name);
  }
  config.fail(key, "is " + in_quotes(name) + ", expected one of " + expected);
}

void expect_no_null(const JsonValue& config, std::string_view key) {
  if (config.contains(key) && !config.find(key)) config.fail(key, "is null, expected true or false");
}

std::string_view spelling(const JsonValue& config, std::string_view one, std::string_view other) {
  const auto first = config.find(one), second = config.find(other);
  if (first && second && first->described() != second->described()) {
    config.fail(other, "is " + second->described() + ", and " + std::string(one) + " is " + first->described() +
                           ", expected the same");
  }
  return !first && second ? other : one;
}

HeadSizes whole_heads(const JsonValue& config, std::int64_t width, std::string_view heads_key) {
  const std::int64_t heads = size(config, heads_key, 1);
  if (width % heads != 0 || width / heads > kWidestHead) {
    config.fail(heads_key, "is " + std::to_string(heads) + " for a width of " + std::to_string(width) +
                               ", expected heads of 1 to " + std::to_string(kWidestHead) + " numbers");
  }
  return {heads, heads, width / heads};
}

HeadSizes head_sizes(const JsonValue& config, std::int64_t width, std::string_view heads_key) {
  HeadSizes sizes;
  sizes.heads = size(config, heads_key, 1);
  sizes.key_value_heads = size(config, "num_key_value_heads", 1, sizes.heads);
  if (sizes.heads % sizes.key_value_heads != 0) {
    config.fail("num_key_value_heads", "is " + std::to_string(sizes.key_value_heads) + ", which does not divide " +
                                           std::string(heads_key) + " " + std::to_string(sizes.heads));
  }
  sizes.head_dim = size(config, "head_dim", 1, 0, kWidestHead);
  if (sizes.head_dim == 0) sizes.head_dim = whole_heads(config, width, heads_key).head_dim;
  return sizes;
}

std::vector<bool> sliding_blocks(const JsonValue& config, std::int64_t blocks,
                                 bool (*otherwise)(std::int64_t block, std::int64_t period), std::int64_t period) {
  std::vector<bool> sliding(static_cast<std::size_t>(blocks));
  const auto types = config.array("layer_types");
  if (!types) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      sliding[static_cast<std::size_t>(block)] = otherwise(block, period);
    }
    return sliding;
  }
  const std::size_t entries = types->elements().size();
  if (entries != sliding.size()) {
    config.fail("layer_types", "has " + std::to_string(entries) + " entries, expected one for each of " +
                                   std::to_string(blocks) + " layers");
  }
  std::size_t block = 0;
  for (const JsonValue& entry : types->elements()) {
    const auto type = entry.as_string();
    if (type != "sliding_attention" && type != "full_attention") {
      entry.fail("is " + entry.described() + ", expected full_attention or sliding_attention");
    }
    sliding[block++] = type == "sliding_attention";
  }
  return sliding;
}

}  // namespace headlight::models
