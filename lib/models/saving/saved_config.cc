#include "models/saving/saved_config.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "models/families/config_values.h"
#include "models/json_text.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

using files::JsonValue;

// Throws for an activation that no file can name: no encoder that was read has one.
const char* name_of(Activation activation) {
  for (const ActivationName& known : kActivationNames) {
    if (known.activation == activation) return known.name;
  }
  throw std::invalid_argument("models::TextEncoder: save: config.json has no name for the encoder's activation");
}

// The shortest decimal that is the same float32: 1e-12, not the 9.999999960041972e-13 of its double.
double shortest(float value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double same = 0;
  std::from_chars(digits.data(), end, same);
  return same;
}

// Nothing nests deeper than a file may (JsonValue).
std::string text_of(const JsonValue& value) {
  if (value.is_object()) {
    JsonObject object(": ", ", ");
    for (const auto& [key, member] : value.members()) object.add_text(key, text_of(member));
    return "{" + object.members() + "}";
  }
  if (value.is_array()) {
    std::string list;
    for (const JsonValue& element : value.elements()) runtime::append_item(list, text_of(element));
    return "[" + list + "]";
  }
  if (const auto text = value.as_string()) return json_text(*text);
  if (const auto truth = value.as_boolean()) return json_text(*truth);
  if (const auto integer = value.as_integer()) return json_text(*integer);
  if (const auto number = value.as_number()) return json_text(*number);
  return json_text(nullptr);
}

}  // namespace

std::string config_text(const EncoderOptions& encoder) {
  JsonObject config(": ", ",\n  ");
  config.add_text("architectures", "[\"BertModel\"]");
  config.add("model_type", "bert");
  config.add("vocab_size", encoder.vocabulary);
  config.add("max_position_embeddings", encoder.max_positions);
  config.add("type_vocab_size", encoder.token_types);
  config.add("hidden_size", encoder.width);
  config.add("num_hidden_layers", encoder.layers);
  config.add("num_attention_heads", encoder.heads);
  config.add("intermediate_size", encoder.feed_forward_width);
  config.add("hidden_act", name_of(encoder.activation));
  config.add("layer_norm_eps", shortest(encoder.layer_norm_epsilon));
  config.add("hidden_dropout_prob", shortest(encoder.dropout));
  config.add("attention_probs_dropout_prob", shortest(encoder.dropout));
  config.add("position_embedding_type", "absolute");
  if (encoder.merge != Merge::concatenate) config.add("head_merge", name(encoder.merge));
  return config.document();
}

std::string config_text(const JsonValue& config) {
  JsonObject text(": ", ",\n  ");
  for (const auto& [key, member] : config.members()) {
    if (key != "dtype" && key != "torch_dtype") text.add_text(key, text_of(member));
  }
  return text.document();
}

}  // namespace headlight::models
