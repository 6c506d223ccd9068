// Architectures of GGUF files, each as the family of config.json that it is. What a key means is what llama.cpp reads
// in it and its converters write (src/llama-model.cpp and conversion/ of https://github.com/ggml-org/llama.cpp).
#include "models/gguf/network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "models/describe.h"
#include "models/families/config_values.h"
#include "models/families/family_weights.h"
#include "models/families/tables.h"
#include "models/gguf/names.h"
#include "models/json_text.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

using files::JsonValue;

constexpr std::string_view kScalingType = "rope.scaling.type", kFactors = "rope_freqs.weight";

// The sizes of every architecture.
struct Sizes {
  std::int64_t width, blocks, heads, key_value_heads, head_dim, longest;
};

// An architecture: which family it is, the keys of that family's config.json that it has beside the sizes, and what its
// converter changed.
struct Architecture {
  std::string_view name;
  std::string_view model_type;
  std::span<const TensorName> names;
  FamilyConfig (*read)(const JsonValue& config);
  void (*add)(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config);
  void (*adjust)(FamilyConfig& config, Converted& converted);
  bool causal = false;
};

bool has_tensor(const GgufMetadata& metadata, std::string_view name) { return metadata.file().find(name) != nullptr; }

// Rows of a table; 0 without one.
std::int64_t rows_of(const GgufMetadata& metadata, std::string_view table) {
  const GgufTensor* const tensor = metadata.file().find(table);
  return tensor == nullptr || tensor->shape().empty() ? 0 : tensor->shape().front();
}

Sizes read_sizes(const GgufMetadata& metadata) {
  Sizes sizes{};
  sizes.width = metadata.size("embedding_length", 1);
  sizes.blocks = metadata.size("block_count", 0, std::nullopt, kMostBlocks);
  // A block takes memory before anybody looks for its weights, and a file few bytes to ask for many.
  if (const std::int64_t tensors = std::ssize(metadata.file().tensors()); sizes.blocks > tensors) {
    metadata.fail("block_count", "is " + std::to_string(sizes.blocks) +
                                     ", expected at most as many as there are tensors, " + std::to_string(tensors));
  }
  sizes.heads = metadata.size("attention.head_count", 1);
  sizes.key_value_heads = metadata.size("attention.head_count_kv", 1, sizes.heads);
  if (sizes.heads % sizes.key_value_heads != 0) {
    metadata.fail("attention.head_count_kv", "is " + std::to_string(sizes.key_value_heads) +
                                                 ", which does not divide attention.head_count " +
                                                 std::to_string(sizes.heads));
  }
  if (!metadata.has("attention.key_length") && sizes.width % sizes.heads != 0) {
    metadata.fail("attention.head_count", "is " + std::to_string(sizes.heads) + ", which does not divide the width " +
                                              std::to_string(sizes.width));
  }
  sizes.head_dim =
      metadata.size("attention.key_length", 1, std::max<std::int64_t>(sizes.width / sizes.heads, 1), kWidestHead);
  sizes.longest = metadata.size("context_length", 2);
  return sizes;
}

// Keys that ask for what is not built, with what they may say.
void refuse_others(const GgufMetadata& metadata, const Sizes& sizes, bool causal) {
  const auto expect = [&](std::string_view key, std::int64_t expected) {
    const std::int64_t value = metadata.size(key, 0, expected);
    if (value != expected) {
      metadata.fail(key, "is " + std::to_string(value) + ", expected " + std::to_string(expected));
    }
  };
  expect("attention.value_length", sizes.head_dim);
  expect("rope.dimension_count", sizes.head_dim);
  for (const char* const key : {"expert_count", "expert_used_count", "moe_every_n_layers"}) expect(key, 0);
  for (const char* const key : {"attention.max_alibi_bias", "attention.clamp_kqv", "attn_logit_softcapping"}) {
    if (metadata.number(key, 0, -kLargestNumber, kLargestNumber) != 0) {
      metadata.fail(key, "is not 0, which is not built");
    }
  }
  if (metadata.flag("use_parallel_residual", false)) {
    metadata.fail("use_parallel_residual", "is true, expected false");
  }
  if (metadata.flag("attention.causal", causal) != causal) {
    metadata.fail("attention.causal",
                  std::string("is ") + (causal ? "false" : "true") + ", which this architecture is not built for");
  }
  // Of generation, and what tensors say as well.
  for (const char* const key :
       {"final_logit_softcapping", "vocab_size", "tensor_data_layout", "logit_scale", "classifier.output_labels"}) {
    metadata.pass_over(key);
  }
}

void add_sizes(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  config.add("hidden_size", sizes.width);
  config.add("num_hidden_layers", sizes.blocks);
  config.add("num_attention_heads", sizes.heads);
  config.add("intermediate_size", metadata.size("feed_forward_length", 1));
  config.add("max_position_embeddings", sizes.longest);
  config.add("vocab_size", rows_of(metadata, "token_embd.weight"));
}

void add_epsilon(const GgufMetadata& metadata, std::string_view key, std::string_view config_key, JsonObject& config) {
  config.add(config_key, metadata.number(key, std::nullopt, 0, 1));
}

void add_heads(const Sizes& sizes, JsonObject& config) {
  config.add("num_key_value_heads", sizes.key_value_heads);
  config.add("head_dim", sizes.head_dim);
}

// rope.scaling.* as rope_scaling; "" for none.
std::string scaling_text(const GgufMetadata& metadata) {
  const std::string type = metadata.text(kScalingType).value_or("none");
  metadata.pass_over("rope.scaling.finetuned");
  if (type == "none" || type.empty()) return "";
  if (type != "linear" && type != "yarn") {
    metadata.fail(kScalingType, "is " + in_quotes(type) + ", expected none, linear or yarn");
  }
  JsonObject scaling(":", ",");
  scaling.add("rope_type", type);
  scaling.add("factor", metadata.number("rope.scaling.factor", std::nullopt, 1e-6, kLargestNumber));
  if (type == "yarn") {
    scaling.add("original_max_position_embeddings", metadata.size("rope.scaling.original_context_length", 1));
    if (metadata.has("rope.scaling.yarn_beta_fast")) {
      scaling.add("beta_fast", metadata.number("rope.scaling.yarn_beta_fast", std::nullopt, 1e-6, kLargestNumber));
    }
    if (metadata.has("rope.scaling.yarn_beta_slow")) {
      scaling.add("beta_slow", metadata.number("rope.scaling.yarn_beta_slow", std::nullopt, 1e-6, kLargestNumber));
    }
    for (const char* const key :
         {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.attn_factor"}) {
      if (metadata.number(key, 1, -kLargestNumber, kLargestNumber) != 1) {
        metadata.fail(key, "is not 1, which is not built");
      }
    }
  }
  return scaling.document();
}

void add_rope(const GgufMetadata& metadata, std::string_view config_key, double otherwise, JsonObject& config) {
  config.add(config_key, metadata.number("rope.freq_base", otherwise, 2, kLargestNumber));
  const std::string scaling = scaling_text(metadata);
  if (!scaling.empty()) config.add_text("rope_scaling", scaling);
}

void add_bert(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  if (sizes.key_value_heads != sizes.heads) metadata.fail("attention.head_count_kv", "is not attention.head_count");
  add_epsilon(metadata, "attention.layer_norm_epsilon", "layer_norm_eps", config);
  config.add("type_vocab_size", rows_of(metadata, "token_types.weight"));
}

// Positions begin at 0, also of RoBERTa's: its converter takes away the rows in front.
FamilyConfig read_bert(const JsonValue& config) {
  FamilyConfig read{.network = post_norm(post_norm_sizes(config))};
  read.network.embedding.vocabulary = size(config, "vocab_size", 1);
  read.network.embedding.token_types = size(config, "type_vocab_size", 0);
  read.longest = read.network.embedding.positions = size(config, "max_position_embeddings", 2);
  return read;
}

void add_nomic_bert(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  add_bert(metadata, sizes, config);
  add_rope(metadata, "rope_theta", 10000, config);
}

void add_modern_bert(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  if (sizes.key_value_heads != sizes.heads) metadata.fail("attention.head_count_kv", "is not attention.head_count");
  add_epsilon(metadata, "attention.layer_norm_epsilon", "norm_eps", config);
  config.add("local_attention", metadata.size("attention.sliding_window", 1));
  config.add("global_attn_every_n_layers", metadata.size("attention.sliding_window_pattern", 1, 3));
  add_rope(metadata, "global_rope_theta", 160000, config);
  config.add("local_rope_theta", metadata.number("rope.freq_base_swa", 10000, 2, kLargestNumber));
  config.add("norm_bias", has_tensor(metadata, "output_norm.bias"));
  config.add("attention_bias", has_tensor(metadata, "blk.0.attn_qkv.bias"));
  config.add("mlp_bias", has_tensor(metadata, "blk.0.ffn_up.bias"));
}

void add_llama(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  add_heads(sizes, config);
  add_epsilon(metadata, "attention.layer_norm_rms_epsilon", "rms_norm_eps", config);
  add_rope(metadata, "rope_theta", 10000, config);
  config.add("attention_bias", has_tensor(metadata, "blk.0.attn_q.bias"));
}

void add_eurobert(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  add_llama(metadata, sizes, config);
  config.add("mlp_bias", has_tensor(metadata, "blk.0.ffn_up.bias"));
}

void add_gemma(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  constexpr std::int64_t kBlocksOfLargest = 62;  // 27 billion weights, whose scores are divided by √(width / heads)
  add_heads(sizes, config);
  add_epsilon(metadata, "attention.layer_norm_rms_epsilon", "rms_norm_eps", config);
  add_rope(metadata, "rope_theta", 1e6, config);
  config.add("rope_local_base_freq", metadata.number("rope.freq_base_swa", 10000, 2, kLargestNumber));
  config.add("sliding_window_pattern", metadata.size("attention.sliding_window_pattern", 1, 6));
  config.add("sliding_window", metadata.size("attention.sliding_window", 1));
  config.add("query_pre_attn_scalar", sizes.blocks == kBlocksOfLargest ? sizes.width / sizes.heads : sizes.head_dim);
}

void add_gemma_embedding(const GgufMetadata& metadata, const Sizes& sizes, JsonObject& config) {
  add_gemma(metadata, sizes, config);
  config.add("use_bidirectional_attention", true);
}

// The converter has added the 1 to the weights of norms.
void adjust_gemma(FamilyConfig& config, Converted& converted) {
  converted.one_added_to_norms = true;
  NetworkSpec& network = config.network;
  network.last_norm.one_plus_weight = false;
  for (BlockSpec& block : network.blocks) {
    for (ResidualSpec* const residual : {&block.attention_residual, &block.feed_forward_residual}) {
      residual->before.one_plus_weight = residual->after.one_plus_weight = false;
    }
    block.attention.query_norm.one_plus_weight = block.attention.key_norm.one_plus_weight = false;
  }
}

// The converter has put the rows of queries and keys into the order of pairs that stand side by side.
void adjust_llama(FamilyConfig& config, Converted& converted) {
  for (BlockSpec& block : config.network.blocks) {
    block.attention.rotary.pairing = RotaryPairing::interleaved;
    converted.head_dim = block.attention.head_dim;
  }
}

const std::array<Architecture, 8>& architectures() {
  static const std::array<Architecture, 8> all{{
      {"bert", "bert", kGgufBertNames, &read_bert, &add_bert, nullptr},
      {"nomic-bert", "nomic_bert", kGgufBertNames, kNomicBert.read, &add_nomic_bert, nullptr},
      {"modern-bert", "modernbert", kGgufModernBertNames, kModernBert.read, &add_modern_bert, nullptr},
      {"eurobert", "eurobert", kGgufLlamaNames, kEuroBert.read, &add_eurobert, nullptr},
      {"qwen3", "qwen3", kGgufLlamaNames, kQwen3.read, &add_llama, nullptr, true},
      {"gemma3", "gemma3_text", kGgufLlamaNames, kGemma3Text.read, &add_gemma, &adjust_gemma, true},
      {"gemma-embedding", "gemma3_text", kGgufLlamaNames, kGemma3Text.read, &add_gemma_embedding, &adjust_gemma},
      {"llama", "llama", kGgufLlamaNames, kLlama.read, &add_eurobert, &adjust_llama, true},
  }};
  return all;
}

const Architecture& architecture_of(const GgufMetadata& metadata) {
  std::string expected;
  for (const Architecture& known : architectures()) {
    if (known.name == metadata.architecture()) return known;
    runtime::append_item(expected, known.name);
  }
  metadata.fail("general.architecture", "is " + in_quotes(metadata.architecture()) + ", expected one of " + expected);
}

// What config.json says of such angles.
std::string longrope_text(std::span<const double> factors, std::int64_t longest) {
  std::string list;
  for (const double factor : factors) runtime::append_item(list, json_text(factor));
  JsonObject scaling(": ", ", ");
  scaling.add("rope_type", "longrope");
  scaling.add("factor", 1.0);
  scaling.add("attention_factor", 1.0);
  scaling.add("original_max_position_embeddings", longest);
  scaling.add_text("short_factor", "[" + list + "]");
  scaling.add_text("long_factor", "[" + list + "]");
  return "{" + scaling.members() + "}";
}

// Llama 3's angles, of which the converter makes a tensor: what each frequency is divided by. It stands for
// rope.scaling.*, which the converter then does not write.
void read_factors(const GgufMetadata& metadata, GgufFile& file, GgufNetwork& into) {
  if (file.find(kFactors) == nullptr) return;
  if (!scaling_text(metadata).empty()) {
    metadata.fail(kScalingType, "is " + in_quotes(*metadata.text(kScalingType)) + " beside the tensor " +
                                    in_quotes(kFactors) + ", expected one of the two");
  }
  const WeightView view = file.float32(kFactors);
  const std::vector<double> factors(view.values.begin(), view.values.end());
  for (BlockSpec& block : into.config.network.blocks) {
    RotarySpec& rotary = block.attention.rotary;
    const bool whole = view.shape == std::vector<std::int64_t>{rotary.dims / 2};
    if (!whole ||
        !std::all_of(factors.begin(), factors.end(), [](double one) { return one > 0 && one < kLargestNumber; })) {
      throw FileError(file.path(), "tensor " + in_quotes(kFactors) + " is not that of " +
                                       std::to_string(rotary.dims / 2) + " positive numbers");
    }
    rotary.scaling = {.kind = RotaryScalingKind::longrope,
                      .original_length = into.config.longest,
                      .attention_factor = 1,
                      .short_factors = factors,
                      .long_factors = factors};
  }
  if (into.model_type == kGemma3Text.model_type) {  // whose folders scale those of some layers alone
    into.refusal = "the tensor " + in_quotes(kFactors) + " divides the frequencies of all layers, which no folder of " +
                   std::string(into.model_type) + " says";
  }
  into.written.add_text("rope_scaling", longrope_text(factors, into.config.longest));
}

}  // namespace

GgufNetwork read_gguf_network(const GgufMetadata& metadata, GgufFile& file) {
  const Architecture& architecture = architecture_of(metadata);
  const Sizes sizes = read_sizes(metadata);
  refuse_others(metadata, sizes, architecture.causal);
  if (rows_of(metadata, "token_embd.weight") == 0) {
    throw FileError(file.path(), "lacks the tensor 'token_embd.weight', or it is empty");
  }
  JsonObject config(": ", ",\n  ");
  config.add("model_type", architecture.model_type);
  add_sizes(metadata, sizes, config);
  architecture.add(metadata, sizes, config);
  const JsonValue document = JsonValue::parse_object(file.path(), config.document());
  GgufNetwork read{.model_type = architecture.model_type,
                   .config = architecture.read(document),
                   .names = architecture.names,
                   .written = std::move(config)};
  if (architecture.adjust != nullptr) architecture.adjust(read.config, read.converted);
  read_factors(metadata, file, read);
  return read;
}

Weights find_gguf_weights(GgufFile& file, const GgufNetwork& network, std::span<const ParameterShape> parameters) {
  constexpr std::string_view kPrefixes[] = {""};
  constexpr std::string_view kOwn[] = {"token_embd.", "token_embd_norm.", "position_embd.", "token_types.",
                                       "blk.",        "output_norm."};
  const Family family{.model_type = network.model_type,
                      .read = nullptr,
                      .names = network.names,
                      .prefixes = kPrefixes,
                      .own = kOwn,
                      .computed = {},
                      .keys = {}};
  return find_family_weights(file, family, parameters).weights;
}

void read_gguf_pooling(const GgufMetadata& metadata, ModelOptions& into) {
  constexpr std::string_view kPooling = "pooling_type";
  constexpr std::array kModes{PoolingMode::mean, PoolingMode::cls, PoolingMode::last_token};
  for (const char* const key : {"dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out"}) {
    metadata.pass_over(key);  // which tensors say as well
  }
  const std::int64_t type = metadata.size(kPooling, 0, 0);
  if (type >= 1 && type <= static_cast<std::int64_t>(kModes.size())) {
    into.pooling = {kModes[static_cast<std::size_t>(type - 1)]};
  } else if (type != 0) {
    into.unread_pooling = printable(metadata.file().path()) + ": " + printable(metadata.architecture()) +
                          ".pooling_type is " + std::to_string(type) +
                          ", expected 0 to 3: none, mean, the first token, the last";
  }
}

void read_gguf_vector_layers(GgufFile& file, ModelOptions& into) {
  std::int64_t before = into.encoder.width;
  for (const std::string weight : {"dense_2.weight", "dense_3.weight"}) {
    if (file.find(weight) == nullptr) continue;
    const WeightView view = file.float32(weight);
    if (view.shape.size() != 2 || view.shape[0] < 1 || view.shape[1] != before) {
      throw FileError(file.path(), "tensor " + in_quotes(weight) + " has shape " + describe(view.shape) +
                                       ", expected rows of " + std::to_string(before) + ", the width before it");
    }
    before = view.shape[0];
    into.vector_layers.push_back(
        {.kind = VectorLayer::Kind::dense, .width = before, .weight = {view.values.begin(), view.values.end()}});
  }
}

}  // namespace headlight::models
