// What each family's config.json says of its network, key by key.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "files/json_value.h"
#include "headlight/layers/network.h"
#include "models/families/encoder_form.h"
#include "models/families/family.h"
#include "models/families/rope.h"
#include "models/golden_family.h"
#include "models/scratch_folder.h"

namespace headlight::models::family_specs_test {

using nlohmann::json;
using test::contains;
using test::file_error;
using test::golden_families;

files::JsonValue parsed(const json& config) { return files::JsonValue::parse_object("config.json", config.dump()); }

json config_of(const std::string& name) {
  for (const test::GoldenFamily& family : golden_families()) {
    if (family.name == name) return family.described.at("config");
  }
  throw std::runtime_error("no family " + name);
}

FamilyConfig read(const json& config) {
  const Family* const family = find_family(config.at("model_type").get<std::string>());
  std::vector<std::string> unknown;
  check_keys(parsed(config), "config.json", "", unknown, family->keys);
  EXPECT_TRUE(unknown.empty()) << testing::PrintToString(unknown);
  return family->read(parsed(config));
}

NormSpec layer(float epsilon, bool bias = true) { return {.kind = NormKind::layer, .epsilon = epsilon, .bias = bias}; }
NormSpec rms(float epsilon, bool one_plus_weight = false) {
  return {.kind = NormKind::rms, .epsilon = epsilon, .one_plus_weight = one_plus_weight};
}

// With these changes of a configuration. null takes a key away.
json with(json config, const json& changes) {
  config.merge_patch(changes);
  return config;
}

BlockSpec bert_block(float epsilon, Activation activation) {
  BlockSpec block;
  block.attention = {.heads = 4, .key_value_heads = 4, .head_dim = 8, .input_bias = true, .output_bias = true};
  block.feed_forward = {.hidden_width = 40, .activation = activation, .input_bias = true, .output_bias = true};
  block.attention_residual.sum = block.feed_forward_residual.sum = layer(epsilon);
  return block;
}

NetworkSpec bert(std::int64_t vocabulary, std::int64_t token_types, float epsilon, Activation activation) {
  NetworkSpec spec{.width = 32};
  spec.embedding = {.vocabulary = vocabulary, .positions = 40, .token_types = token_types, .norm = layer(epsilon)};
  spec.blocks.assign(3, bert_block(epsilon, activation));
  return spec;
}

TEST(FamilySpecs, BertsKin) {
  const FamilyConfig distilbert = read(config_of("distilbert"));
  EXPECT_EQ(distilbert.network, bert(450, 0, 1e-12f, Activation::gelu));
  EXPECT_EQ(distilbert.longest, 40);
  EXPECT_EQ(distilbert.positions, PositionRule());
  const FamilyConfig roberta = read(config_of("roberta"));
  EXPECT_EQ(roberta.network, bert(421, 1, 1e-5f, Activation::gelu));
  EXPECT_EQ(roberta.longest, 38);
  EXPECT_EQ(roberta.positions, (PositionRule{2, 1}));
  EXPECT_EQ(read(config_of("xlm-roberta")).network, bert(628, 1, 1e-12f, Activation::relu));
  const FamilyConfig camembert = read(with(config_of("roberta"), {{"model_type", "camembert"}, {"pad_token_id", 5}}));
  EXPECT_EQ(camembert.longest, 34);
  EXPECT_EQ(camembert.positions, (PositionRule{6, 5}));
}

TEST(FamilySpecs, ThoseOfBertsLayersAreEncoders) {
  const auto options = as_encoder(read(config_of("roberta")).network);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->max_positions, 40);
  EXPECT_EQ(options->heads, 4);
  EXPECT_EQ(options->layers, 3);
  EXPECT_EQ(options->feed_forward_width, 40);
  EXPECT_EQ(options->layer_norm_epsilon, 1e-5f);
  for (const char* name :
       {"modernbert", "nomic_bert", "gemma3_text", "qwen3", "eurobert", "llama", "new", "gte", "mpnet"}) {
    EXPECT_FALSE(as_encoder(read(config_of(name)).network)) << name;
  }
  NetworkSpec other = bert(9, 0, 1e-5f, Activation::gelu);
  other.blocks[1].attention.window_before = 3;
  EXPECT_FALSE(as_encoder(other));
}

TEST(FamilySpecs, Mpnet) {
  const FamilyConfig mpnet = read(config_of("mpnet"));
  NetworkSpec spec = bert(450, 0, 1e-5f, Activation::gelu);
  for (BlockSpec& block : spec.blocks) block.attention.relative_bias = {.buckets = 32, .max_distance = 128};
  EXPECT_EQ(mpnet.network, spec);
  EXPECT_EQ(mpnet.longest, 38);
  EXPECT_EQ(mpnet.positions, (PositionRule{2, 1}));
  // Positions begin behind 1 whatever the folder pads with.
  EXPECT_EQ(read(with(config_of("mpnet"), {{"pad_token_id", 5}})).positions, (PositionRule{2, 1}));
  EXPECT_TRUE(contains(file_error([] {
                         static_cast<void>(read(with(config_of("mpnet"), {{"relative_attention_num_buckets", 16}})));
                       }),
                       "relative_attention_num_buckets is 16, expected 32"));
}

TEST(FamilySpecs, ModernBert) {
  BlockSpec local;
  local.attention = {.heads = 4, .key_value_heads = 4, .head_dim = 8, .window_before = 3, .window_after = 3};
  local.attention.rotary = {.dims = 8, .base = 100};
  local.attention_residual.before = local.feed_forward_residual.before = layer(1e-5f, false);
  local.feed_forward = {.hidden_width = 40, .activation = Activation::gelu, .gated = true};
  BlockSpec whole = local;
  whole.attention.window_before = whole.attention.window_after = -1;
  whole.attention.rotary.base = 160000;
  NetworkSpec spec{.width = 32};
  spec.embedding = {.vocabulary = 421, .norm = layer(1e-5f, false)};
  spec.blocks = {whole, local, whole};
  spec.blocks[0].attention_residual.before = {};
  spec.last_norm = layer(1e-5f, false);
  EXPECT_EQ(read(config_of("modernbert")).network, spec);

  const NetworkSpec by_layer = read(config_of("modernbert by layer")).network;
  EXPECT_EQ(by_layer.last_norm, layer(1e-4f, true));
  const auto& [first, second, third] = std::tie(by_layer.blocks[0], by_layer.blocks[1], by_layer.blocks[2]);
  EXPECT_EQ(first.attention_residual.before, NormSpec());
  EXPECT_EQ(first.attention, third.attention);
  EXPECT_TRUE(first.attention.input_bias && first.attention.output_bias && first.feed_forward.input_bias &&
              first.feed_forward.output_bias);
  EXPECT_EQ(first.attention.window_before, 2);
  EXPECT_EQ(first.attention.rotary, (RotarySpec{.dims = 8, .base = 50}));
  EXPECT_EQ(second.attention.window_before, -1);
  EXPECT_EQ(second.attention.rotary.base, 700);
  EXPECT_EQ(second.attention.rotary.scaling.kind, RotaryScalingKind::linear);
  EXPECT_EQ(second.attention.rotary.scaling.factor, 2);
  // Where nothing says so: a whole layer every third, windows of 128.
  const NetworkSpec plain = read(with(config_of("modernbert"), {{"num_hidden_layers", 7},
                                                                {"local_attention", nullptr},
                                                                {"global_attn_every_n_layers", nullptr},
                                                                {"global_rope_theta", nullptr},
                                                                {"local_rope_theta", nullptr}}))
                                .network;
  for (std::size_t block = 0; block < 7; ++block) {
    EXPECT_EQ(plain.blocks[block].attention.window_after, block % 3 == 0 ? -1 : 64) << block;
    EXPECT_EQ(plain.blocks[block].attention.rotary.base, block % 3 == 0 ? 160000 : 10000) << block;
  }
}

TEST(FamilySpecs, GatedKinOfBert) {
  NetworkSpec spec = bert(450, 2, 1e-6f, Activation::silu);
  spec.embedding.positions = 0;
  for (BlockSpec& block : spec.blocks) {
    block.attention.input_bias = block.attention.output_bias = false;
    block.attention.rotary = {.dims = 8, .base = 1000};
    block.feed_forward = {.hidden_width = 40, .activation = Activation::silu, .gated = true};
  }
  EXPECT_EQ(read(config_of("nomic_bert")).network, spec);
  EXPECT_EQ(read(config_of("nomic_bert")).longest, 40);
  for (BlockSpec& block : spec.blocks) block.attention.rotary.base = 90;
  EXPECT_EQ(read(config_of("nomic_bert by other keys")).network, spec);
  EXPECT_EQ(read(with(config_of("nomic_bert"), {{"n_inner", nullptr}})).network.blocks[0].feed_forward.hidden_width,
            128);

  spec = bert(628, 1, 1e-6f, Activation::gelu);
  spec.embedding.positions = 0;
  for (BlockSpec& block : spec.blocks) {
    block.feed_forward.gated = true;
    block.feed_forward.input_bias = false;
    block.attention.rotary = {.dims = 8, .base = 2000};
    block.attention.rotary.scaling = {
        .kind = RotaryScalingKind::linear, .factor = std::pow(4.0, 0.25), .original_length = 40};
  }
  EXPECT_EQ(read(config_of("new")).network, spec);
  EXPECT_EQ(read(config_of("gte")).network.embedding.token_types, 0);
  EXPECT_EQ(read(config_of("gte")).network.blocks[0].attention.rotary, (RotarySpec{.dims = 8, .base = 500}));
  const json bare = with(config_of("gte"), {{"rope_parameters", nullptr}});
  EXPECT_EQ(read(bare).network.blocks[0].attention.rotary.base, 160000);
}

TEST(FamilySpecs, Gemma) {
  BlockSpec local;
  local.attention = {.heads = 4, .key_value_heads = 2, .head_dim = 12};
  local.attention.query_norm = local.attention.key_norm = rms(1e-6f, true);
  local.attention.rotary = {.dims = 12, .base = 300};
  local.attention.window_before = local.attention.window_after = 3;
  local.attention.scale = static_cast<float>(1 / std::sqrt(10.0));
  local.attention_residual.before = local.attention_residual.after = rms(1e-6f, true);
  local.feed_forward_residual = local.attention_residual;
  local.feed_forward = {.hidden_width = 44, .activation = Activation::gelu_tanh, .gated = true};
  BlockSpec whole = local;
  whole.attention.window_before = whole.attention.window_after = -1;
  whole.attention.rotary.base = 1e6;
  NetworkSpec spec{.width = 32};
  spec.embedding = {.vocabulary = 421, .scale = static_cast<float>(std::sqrt(32.0))};
  spec.blocks = {local, whole, local};
  spec.last_norm = rms(1e-6f, true);
  EXPECT_EQ(read(config_of("gemma3_text")).network, spec);

  const NetworkSpec causal = read(config_of("gemma3_text causal")).network;
  EXPECT_TRUE(causal.blocks[0].attention.causal && causal.blocks[2].attention.causal);
  EXPECT_EQ(causal.blocks[0].attention.window_before, 5);
  EXPECT_EQ(causal.blocks[0].attention.rotary, (RotarySpec{.dims = 12, .base = 20}));
  EXPECT_EQ(causal.blocks[2].attention.window_before, -1);
  EXPECT_EQ(causal.blocks[2].attention.rotary.scaling.factor, 8);
}

TEST(FamilySpecs, LlamasKin) {
  BlockSpec block;
  block.attention = {.heads = 4, .key_value_heads = 2, .head_dim = 12};
  block.attention.query_norm = block.attention.key_norm = rms(1e-6f);
  block.attention.rotary = {.dims = 12, .base = 1e6};
  block.attention.causal = true;
  block.attention_residual.before = block.feed_forward_residual.before = rms(1e-6f);
  block.feed_forward = {.hidden_width = 44, .activation = Activation::silu, .gated = true};
  NetworkSpec spec{.width = 32};
  spec.embedding.vocabulary = 421;
  spec.blocks.assign(3, block);
  spec.last_norm = rms(1e-6f);
  EXPECT_EQ(read(config_of("qwen3")).network, spec);

  const NetworkSpec windows = read(config_of("qwen3 with windows")).network;
  EXPECT_EQ(windows.blocks[0].attention.window_before, -1);
  EXPECT_EQ(windows.blocks[1].attention.window_before, 3);
  EXPECT_TRUE(windows.blocks[2].attention.input_bias);

  for (BlockSpec& one : spec.blocks) {
    one.attention.query_norm = one.attention.key_norm = {};
    one.attention.causal = false;
    one.attention.rotary.base = 250000;
    one.attention_residual.before = one.feed_forward_residual.before = rms(1e-5f);
  }
  spec.last_norm = rms(1e-5f);
  EXPECT_EQ(read(config_of("eurobert")).network, spec);

  for (BlockSpec& one : spec.blocks) {
    one.attention.causal = true;
    one.attention.rotary.base = 900;
  }
  EXPECT_EQ(read(config_of("llama")).network, spec);
}

RotarySpec rope(const json& config, const std::string& type = "") {
  return read_rope(parsed(config), {.head_dim = 8, .longest = 400}, type);
}
RotaryScaling scaling(const json& parameters) { return rope({{"rope_parameters", parameters}}).scaling; }

TEST(FamilySpecs, Angles) {
  EXPECT_EQ(rope(json::object()), (RotarySpec{.dims = 8, .base = 10000}));
  EXPECT_EQ(rope({{"rope_theta", 77}}).base, 77);
  EXPECT_EQ(rope({{"rope_theta", 77}, {"rope_parameters", {{"rope_theta", 78}}}}).base, 78);
  // The older spelling comes first where both are there; an empty one is none.
  const json both{{"rope_scaling", {{"type", "linear"}, {"factor", 3}}}, {"rope_parameters", {{"rope_theta", 78}}}};
  EXPECT_EQ(rope(both).scaling.factor, 3);
  EXPECT_EQ(rope(with(both, {{"rope_scaling", {{"type", nullptr}, {"factor", nullptr}}}})).base, 78);

  EXPECT_EQ(scaling({{"rope_type", "dynamic"}, {"factor", 2}}).original_length, 400);
  const RotaryScaling llama3 = scaling({{"rope_type", "llama3"},
                                        {"factor", 8},
                                        {"low_freq_factor", 1},
                                        {"high_freq_factor", 4},
                                        {"original_max_position_embeddings", 100}});
  EXPECT_EQ(llama3.kind, RotaryScalingKind::llama3);
  EXPECT_EQ(llama3.original_length, 100);
  EXPECT_EQ(llama3.high_frequency_factor, 4);

  RotaryScaling yarn = scaling({{"rope_type", "yarn"}, {"factor", 4}, {"beta_fast", 16}, {"truncate", false}});
  EXPECT_EQ(yarn.original_length, 400);
  EXPECT_EQ(yarn.fast_turns, 16);
  EXPECT_EQ(yarn.slow_turns, 1);
  EXPECT_FALSE(yarn.whole_pairs);
  EXPECT_DOUBLE_EQ(yarn.attention_factor, 0.1 * std::log(4.0) + 1);
  yarn = scaling({{"rope_type", "yarn"}, {"factor", 4}, {"mscale", 0.5}, {"mscale_all_dim", 2}});
  EXPECT_DOUBLE_EQ(yarn.attention_factor, (0.05 * std::log(4.0) + 1) / (0.2 * std::log(4.0) + 1));
  EXPECT_EQ(scaling({{"rope_type", "yarn"}, {"factor", 4}, {"attention_factor", 1.5}}).attention_factor, 1.5);

  json parameters{{"rope_type", "longrope"},
                  {"short_factor", {1, 2, 3, 4}},
                  {"long_factor", {5, 6, 7, 8}},
                  {"original_max_position_embeddings", 100}};
  RotaryScaling longrope = scaling(parameters);
  EXPECT_EQ(longrope.factor, 4);
  EXPECT_DOUBLE_EQ(longrope.attention_factor, std::sqrt(1 + std::log(4.0) / std::log(100.0)));
  EXPECT_EQ(longrope.long_factors, (std::vector<double>{5, 6, 7, 8}));
  longrope = read_rope(parsed({{"original_max_position_embeddings", 200}, {"rope_parameters", parameters}}),
                       {.head_dim = 8, .longest = 400})
                 .scaling;
  EXPECT_EQ(longrope.original_length, 200);

  const RotarySpec proportional =
      rope({{"rope_parameters", {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.5}}}});
  EXPECT_EQ(proportional.dims, 4);
  EXPECT_EQ(proportional.scaling.factor, 1);
}

TEST(FamilySpecs, AnglesThatAreRefused) {
  const auto refused = [](const json& config, const std::string& type = "") {
    return file_error([&] { static_cast<void>(rope(config, type)); });
  };
  EXPECT_TRUE(contains(refused({{"rope_scaling", {{"type", "su"}, {"factor", 2}}}}),
                       "rope_scaling.type is 'su', expected one of default, linear"));
  EXPECT_TRUE(contains(refused({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}, "full_attention"),
                       "rope_scaling.type is there without rope_type"));
  const json yarn{{"rope_type", "yarn"}, {"factor", 4}};
  EXPECT_TRUE(
      contains(refused({{"rope_parameters", {{"full_attention", yarn}, {"truncate", false}}}}, "full_attention"),
               "rope_parameters.truncate is false, beside parameters by type of layer"));
  EXPECT_TRUE(contains(
      refused({{"rope_parameters", {{"full_attention", with(yarn, {{"truncate", false}})}}}}, "full_attention"),
      "rope_parameters.full_attention.truncate is false, which Transformers passes over"));
  EXPECT_TRUE(contains(refused({{"rope_parameters", {{"rope_type", "linear"}}}}), "rope_parameters.factor is missing"));
  EXPECT_TRUE(contains(refused({{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2}, {"beta_fast", 3}}}}),
                       "rope_parameters.beta_fast is 3, which the type linear does not know"));
  EXPECT_TRUE(contains(refused({{"partial_rotary_factor", 0.5}}), "partial_rotary_factor is 0.5"));
  EXPECT_TRUE(contains(refused({{"rope_parameters", {{"partial_rotary_factor", 0.5}}}}),
                       "rope_parameters.partial_rotary_factor is 0.5"));
  EXPECT_TRUE(contains(refused({{"rope_theta", 0}}), "rope_theta is 0"));
  EXPECT_TRUE(contains(refused({{"rope_parameters", {{"rope_theta", 10}}}}, "full_attention"),
                       "rope_parameters has no parameters by type of layer"));
  EXPECT_TRUE(contains(
      refused(
          {{"rope_parameters", {{"rope_type", "longrope"}, {"short_factor", {1, 2, 3}}, {"long_factor", {1, 2, 3}}}}}),
      "short_factor has 3 numbers, expected 4"));
}

TEST(FamilySpecs, WhatIsRefusedIsRefusedByItsName) {
  struct Case {
    const char* family;
    json changes;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"modernbert", {{"layer_types", {"full_attention"}}}, "layer_types has 1 entries, expected one for each of 3"},
      {"modernbert",
       {{"layer_types", {"full_attention", "chunked_attention", "full_attention"}}},
       "layer_types[1] is 'chunked_attention', expected full_attention or sliding_attention"},
      {"modernbert", {{"hidden_activation", "quick_gelu"}}, "hidden_activation is 'quick_gelu', expected one of gelu"},
      {"modernbert", {{"num_attention_heads", 5}}, "num_attention_heads is 5 for a width of 32"},
      {"modernbert", {{"num_hidden_layers", 100000}}, "num_hidden_layers is 100000, expected 0 to 1024"},
      {"gemma3_text", {{"attn_logit_softcapping", 50.0}}, "attn_logit_softcapping is 50"},
      {"gemma3_text", {{"num_key_value_heads", 3}}, "num_key_value_heads is 3, which does not divide"},
      {"qwen3",
       {{"layer_types", {"full_attention", "sliding_attention", "full_attention"}}},
       "use_sliding_window is false"},
      {"nomic_bert", {{"activation_function", "gelu"}}, "activation_function is 'gelu', expected swiglu or geglu"},
      {"new", {{"rope_scaling", {{"mixed_b", 0.5}}}}, "rope_scaling.mixed_b is 0.5"},
      {"roberta", {{"max_position_embeddings", 3}}, "max_position_embeddings is 3, expected at least 4 rows"},
      {"distilbert", {{"dim", nullptr}}, "dim is missing"},
  };
  for (const Case& one : cases) {
    const json config = with(config_of(one.family), one.changes);
    EXPECT_TRUE(contains(file_error([&] { static_cast<void>(read(config)); }), std::string("config.json: "), one.says));
  }
  // And every key that a table refuses.
  for (const Family& family : families()) {
    for (const FolderKey& key : family.keys) {
      if (key.treatment != Treatment::refused) continue;
      json config = config_of(family.model_type == "camembert" ? "roberta" : std::string(family.model_type));
      config["model_type"] = family.model_type;
      config[key.key] = "surprise";
      EXPECT_TRUE(
          contains(file_error([&] { static_cast<void>(read(config)); }), std::string(key.key) + " is 'surprise'"))
          << family.model_type;
    }
  }
}

TEST(FamilySpecs, ParametersOfAnEncodersNetworkAreItsOwn) {
  NetworkSpec spec = bert(9, 2, 1e-5f, Activation::gelu);
  std::int64_t numbers = 0;
  std::vector<std::string> names;
  for (const auto& [name, shape] : Network::parameter_shapes(spec)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    numbers += count;
    names.push_back(name);
  }
  EXPECT_EQ(numbers, headlight::Encoder(*as_encoder(spec)).parameter_count());
  EXPECT_EQ(names.size(), 5u + 3 * 16);
  EXPECT_EQ(names[5], "blocks.0.attention.query.weight");
}

}  // namespace headlight::models::family_specs_test
