#include "models/bert_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "models/json_scalars.h"
#include "models/json_text.h"
#include "models/pooling.h"

namespace headlight::models {
namespace {

// Larger than any model, small enough that products of two stay far below 2⁶³.
constexpr std::int64_t kLargestSize = std::numeric_limits<std::int32_t>::max();

std::int64_t size(const JsonScalars& config, std::string_view key, std::int64_t least) {
  const auto value = config.integer(key);
  if (!value) config.fail(key, "is missing");
  if (*value < least || *value > kLargestSize) {
    config.fail(key, "is " + std::to_string(*value) + ", expected " + std::to_string(least) + " to " +
                         std::to_string(kLargestSize));
  }
  return *value;
}

Activation activation(const JsonScalars& config) {
  const std::string name = config.string("hidden_act").value_or("gelu");
  if (name == "gelu" || name == "gelu_python") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  config.fail("hidden_act", "is " + in_quotes(name) + ", expected gelu, gelu_new, gelu_pytorch_tanh or relu");
}

// How heads are put together: a key of our own, absent where they are concatenated as in all published files.
Merge merge(const JsonScalars& config) {
  const std::string given = config.string("head_merge").value_or("concatenate");
  const std::optional<Merge> known = parse_merge(given);
  if (!known) config.fail("head_merge", "is " + in_quotes(given) + ", expected the name of a Merge");
  return *known;
}

const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "relu";
    case Activation::gelu_tanh:
      return "gelu_new";
    default:
      return "gelu";
  }
}

void check_family(const JsonScalars& config) {
  const std::string family = config.string("model_type").value_or("bert");  // the oldest files do not say
  if (family != "bert") config.fail("model_type", "is " + in_quotes(family) + ", expected bert");
  const std::string positions = config.string("position_embedding_type").value_or("absolute");
  if (positions != "absolute") {
    config.fail("position_embedding_type", "is " + in_quotes(positions) + ", expected absolute");
  }
  if (config.boolean("is_decoder").value_or(false)) config.fail("is_decoder", "is true, expected an encoder");
}

EncoderOptions read_encoder(const ModelFolder& folder) {
  const JsonScalars config = folder.json(kConfigFile);
  check_family(config);
  EncoderOptions options;
  options.vocabulary = size(config, "vocab_size", 1);
  options.max_positions = size(config, "max_position_embeddings", 2);
  options.token_types = config.integer("type_vocab_size") ? size(config, "type_vocab_size", 0) : 2;
  options.width = size(config, "hidden_size", 1);
  options.heads = size(config, "num_attention_heads", 1);
  options.feed_forward_width = size(config, "intermediate_size", 1);
  options.layers = size(config, "num_hidden_layers", 0);
  options.norm = Norm::post;
  options.merge = merge(config);
  options.activation = activation(config);
  if (options.width % options.heads != 0) {
    config.fail("num_attention_heads", "is " + std::to_string(options.heads) + ", which does not divide hidden_size " +
                                           std::to_string(options.width));
  }
  const double epsilon = config.number("layer_norm_eps").value_or(1e-12);
  if (!(epsilon >= 0 && epsilon <= 1)) {
    config.fail("layer_norm_eps", "is " + std::to_string(epsilon) + ", expected 0 to 1");
  }
  options.layer_norm_epsilon = static_cast<float>(epsilon);
  const double dropout = config.number("hidden_dropout_prob").value_or(0.1);
  if (!(dropout >= 0 && dropout < 1)) {
    config.fail("hidden_dropout_prob", "is " + std::to_string(dropout) + ", expected 0 to below 1");
  }
  options.dropout = static_cast<float>(dropout);
  return options;
}

TokenizerOptions read_tokenizer(const ModelFolder& folder) {
  TokenizerOptions options;
  if (!folder.has(kTokenizerConfigFile)) return options;
  const JsonScalars config = folder.json(kTokenizerConfigFile);
  options.lower_case = config.boolean("do_lower_case").value_or(true);
  options.strip_accents = config.boolean("strip_accents");
  options.split_ideographs = config.boolean("tokenize_chinese_chars").value_or(true);
  options.whole_words = config.boolean("whole_words").value_or(false);
  return options;
}

// The shortest decimal that is the same float32: 1e-12, not the 9.999999960041972e-13 of its double.
double shortest(float value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double same = 0;
  std::from_chars(digits.data(), end, same);
  return same;
}

void write_json(const std::string& path, const JsonObject& json) {
  const std::string text = "{\n  " + json.members() + "\n}\n";
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace

ModelOptions read_bert_config(const ModelFolder& folder) {
  ModelOptions options;
  options.encoder = read_encoder(folder);
  options.tokenizer = read_tokenizer(folder);
  options.max_length = options.encoder.max_positions;
  options.embed_max_length = options.max_length;
  options.unread_pooling = unread_pooling(folder);
  if (folder.has(kSentenceConfigFile)) {
    const JsonScalars config = folder.json(kSentenceConfigFile);
    if (config.integer("max_seq_length")) {
      options.embed_max_length = std::min(options.max_length, size(config, "max_seq_length", 2));
    }
  }
  return options;
}

void write_bert_config(const std::string& folder, const ModelOptions& options) {
  const EncoderOptions& encoder = options.encoder;
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
  write_json(path_in(folder, kConfigFile), config);
  JsonObject tokenizer(": ", ",\n  ");
  tokenizer.add("tokenizer_class", "BertTokenizer");
  tokenizer.add("do_lower_case", options.tokenizer.lower_case);
  if (options.tokenizer.strip_accents) {
    tokenizer.add("strip_accents", *options.tokenizer.strip_accents);
  } else {
    tokenizer.add("strip_accents", nullptr);
  }
  tokenizer.add("tokenize_chinese_chars", options.tokenizer.split_ideographs);
  tokenizer.add("model_max_length", options.max_length);
  if (options.tokenizer.whole_words) tokenizer.add("whole_words", true);
  write_json(path_in(folder, kTokenizerConfigFile), tokenizer);
  JsonObject sentences(": ", ",\n  ");
  sentences.add("max_seq_length", options.embed_max_length);
  sentences.add("do_lower_case", false);
  write_json(path_in(folder, kSentenceConfigFile), sentences);
}

}  // namespace headlight::models
