// What folders of every family are refused for, and what their models do not have.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "models/golden_folder.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/quick.h"
#include "support/refusal.h"

namespace headlight::models::family_refusals_test {

using nlohmann::json;
using test::contains;
using test::families_of_hidden_states;
using test::file_error;
using test::golden_family;
using test::golden_folders;
using test::GoldenFamily;
using test::quick;
using test::ScratchFolder;

// Weights under other names, or without one of them.
TEST(FamilyRefusals, WeightsThatDoNotFitAreNamed) {
  const ScratchFolder scratch;
  for (const GoldenFamily* family : families_of_hidden_states()) {
    SCOPED_TRACE(family->name);
    const json config = family->described.at("config");
    const GoldenFamily::Tensors tensors = family->tensors();
    const Weights all = GoldenFamily::views(tensors);
    const auto refusal = [&](const Weights& weights) {
      return file_error([&] { static_cast<void>(load(family->write(scratch.path("family"), {}, weights))); });
    };
    int tried = 0;
    for (const auto& [name, view] : all) {
      // One of the first block stands for those of others.
      if (name.find("pooler") != std::string::npos || name.find(".1.") != std::string::npos ||
          name.find(".2.") != std::string::npos) {
        continue;
      }
      ++tried;
      if (quick() && tried % 4 != 1 && tried % 4 != 0) continue;
      Weights less = all;
      less.erase(name);
      ASSERT_TRUE(contains(refusal(less), "model.safetensors: lacks the tensor '" + name + "'"));
      if (tried % 4 != 0) continue;
      Weights cut = all;
      cut[name].shape[0] -= 1;
      cut[name].values = view.values.first(view.values.size() / static_cast<std::size_t>(view.shape[0]) *
                                           static_cast<std::size_t>(view.shape[0] - 1));
      ASSERT_TRUE(contains(refusal(cut), "tensor '" + name + "' has shape"));
    }
    // One of another model; what is computed, and what stands beside the network, is left aside.
    Weights more = all;
    const std::vector<float> numbers{1, 2, 3};
    const std::string first = all.begin()->first;
    more.emplace(first.substr(0, first.find('.')) + ".other.weight", WeightView{{3}, numbers});
    EXPECT_TRUE(contains(refusal(more), ".other.weight', which config.json does not ask for"));
  }
}

// A network of so many blocks is not made.
TEST(FamilyRefusals, MoreBlocksThanTensorsAreRefused) {
  const ScratchFolder scratch;
  for (const GoldenFamily* family : families_of_hidden_states()) {
    SCOPED_TRACE(family->name);
    for (const std::string key : {"num_hidden_layers", "n_layers", "n_layer"}) {
      json config = family->described.at("config");
      if (!config.contains(key)) continue;
      config[key] = 1000;
      const std::string said =
          file_error([&] { static_cast<void>(load(family->write(scratch.path("family"), config))); });
      EXPECT_TRUE(contains(said, "config.json: " + key + " is 1000, expected at most as many as there are tensors in ",
                           "model.safetensors, "));
    }
  }
}

// tokenizer_config.json beside a tokenizer.json of another kind.
TEST(FamilyRefusals, TokenizersThatContradictThemselvesAreRefused) {
  const ScratchFolder scratch;
  struct Case {
    const char* family;
    const char* file;
    json content;
    const char* says;
  };
  const char* const kFile = "tokenizer_config.json";
  const json end{{"content", "<|endoftext|>"}, {"single_word", false}, {"lstrip", false}, {"rstrip", false},
                 {"normalized", false},        {"special", true}};
  const std::vector<Case> cases = {
      {"qwen3", kFile, {{"tokenizer_class", "PreTrainedTokenizer"}, {"add_prefix_space", false}}, ""},
      {"qwen3", kFile, {{"add_prefix_space", true}}, "add_prefix_space is true, expected what the pre_tokenizer"},
      {"qwen3", kFile, {{"eos_token", "<|endoftext|>"}, {"add_eos_token", true}, {"add_bos_token", false}}, ""},
      {"qwen3",
       kFile,
       {{"eos_token", "<|endoftext|>"}, {"add_eos_token", false}},
       "add_eos_token is false, expected what"},
      {"qwen3",
       kFile,
       {{"bos_token", "<|endoftext|>"}, {"add_bos_token", true}},
       "add_bos_token is true, expected what"},
      {"qwen3", kFile, {{"added_tokens_decoder", {{"420", end}}}}, ""},
      {"qwen3",
       kFile,
       {{"added_tokens_decoder", {{"419", end}}}},
       "expected the same in added_tokens of tokenizer.json"},
      {"qwen3", kFile, {{"mask_token", "<mask>"}}, "mask_token is '<mask>', expected one of added_tokens"},
      {"qwen3", kFile, {{"image_token", "<image>"}}, "image_token is '<image>', expected one of added_tokens"},
      {"qwen3",
       "special_tokens_map.json",
       {{"pad_token", "<pad>"}},
       "pad_token is '<pad>', expected one of added_tokens"},
      {"qwen3", kFile, {{"truncation_side", "left"}}, "truncation_side is 'left'"},
      {"qwen3", "added_tokens.json", {{"<|endoftext|>", 420}}, ""},
      {"qwen3", "added_tokens.json", {{"<|endoftext|>", 7}}, "<|endoftext|> is 7, expected the same in added_tokens"},
      {"qwen3",
       "added_tokens.json",
       {{"city", 421}},
       "added_tokens.json: city is 421, expected the same in added_tokens"},
      {"qwen3", kFile, {{"tokenizer_class", "TikTokenTokenizer"}}, "tokenizer_class is 'TikTokenTokenizer'"},
      {"qwen3", "sentence_bert_config.json", {{"max_seq_length", 2}}, ""},
      {"roberta", kFile, {{"model_max_length", 30}, {"tokenizer_class", "TokenizersBackend"}}, ""},
      {"roberta", "special_tokens_map.json", {{"add_bos_token", nullptr}}, "add_bos_token is null, expected it in"},
      {"roberta", "special_tokens_map.json", {{"note", "mine"}}, "note is 'mine', a key that is not known here"},
      {"roberta",
       "processor_config.json",
       {{"processor_class", "CLIPProcessor"}},
       "processor_class is 'CLIPProcessor'"},
      {"roberta", kFile, {{"processor_class", "RobertaTokenizerFast"}}, "processor_class is 'RobertaTokenizerFast'"},
      {"roberta", kFile, {{"processor_class", "Gemma3Processor"}}, ""},
      {"roberta", kFile, {{"vocab", json::object()}}, "vocab is {}, expected nothing"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.content);
    const std::string folder = golden_family(one.family).write(scratch.path("family"));
    json content = one.content;
    if (one.file == kFile) content.emplace("tokenizer_class", "TokenizersBackend");
    scratch.write(std::string("family/") + one.file, content.dump());
    if (std::string_view(one.says).empty()) {
      EXPECT_TRUE(load(folder).options().unknown_keys.empty());
    } else {
      EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(folder)); }), one.says));
    }
  }
  const std::string folder = golden_family("modernbert").write(scratch.path("family"));
  std::filesystem::remove(folder + "/tokenizer.json");
  EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(folder)); }), "tokenizer.json"));
}

// What tokenizer.json says where tokenizer_config.json is silent.
TEST(FamilyRefusals, TokenizersThatSayOtherThanTheirClassAreRefused) {
  const ScratchFolder scratch;
  const auto changed = [&](const char* family, const char* tokenizer_class, const json& changes) {
    std::string folder = golden_family(family).write(scratch.path("family"));
    json tokenizer = golden_family(family).tokenizer_json();
    tokenizer.merge_patch(changes);
    scratch.write("family/tokenizer.json", tokenizer.dump());
    scratch.write("family/tokenizer_config.json", json{{"tokenizer_class", tokenizer_class}}.dump());
    return folder;
  };
  const auto refusal = [](const std::string& folder) { return file_error([&] { static_cast<void>(load(folder)); }); };
  EXPECT_TRUE(contains(refusal(changed("qwen3", "TokenizersBackend", {{"truncation", {{"direction", "Left"}}}})),
                       "tokenizer.json: truncation.direction is 'Left', expected Right"));
  const json spaced{{"pre_tokenizer", {{"add_prefix_space", true}}}};
  EXPECT_NO_THROW(static_cast<void>(load(changed("roberta", "TokenizersBackend", spaced))));
  // BERT's class in a folder of ModernBERT.
  const std::string folder = changed("modernbert", "BertTokenizer", {});
  json cased = golden_folders().named("cased by tokenizer.json").files.at("tokenizer.json");
  scratch.write("family/tokenizer.json", cased.dump());
  EXPECT_TRUE(contains(refusal(folder), "normalizer.lowercase is false, expected true"));
  cased["normalizer"]["lowercase"] = true;
  cased["added_tokens"] = json::array();
  scratch.write("family/tokenizer.json", cased.dump());
  EXPECT_TRUE(contains(refusal(folder), "added_tokens lacks '[UNK]', the unk_token for this tokenizer_class"));
}

// What some versions of Transformers take for another key, and what two keys say.
TEST(FamilyRefusals, KeysThatContradictOthersAreRefused) {
  const ScratchFolder scratch;
  struct Case {
    const char* family;
    json change;
    const char* says;
  };
  const Case cases[] = {
      {"modernbert", {{"sliding_window", 4}}, "config.json: sliding_window is 4, expected nothing"},
      {"modernbert", {{"rope_theta", 900}}, "config.json: rope_theta is 900, expected nothing"},
      {"gemma3_text", {{"is_causal", false}}, "config.json: is_causal is false, expected true"},
      {"qwen3", {{"is_causal", nullptr}}, "config.json: is_causal is null, expected true or false"},
      {"gemma3_text", {{"is_causal", nullptr}}, "config.json: is_causal is null, expected true or false"},
      {"gemma3_text",
       {{"original_max_position_embeddings", 9}},
       "original_max_position_embeddings is 9, expected nothing"},
      {"modernbert",
       {{"original_max_position_embeddings", 9}},
       "original_max_position_embeddings is 9, expected nothing"},
      {"distilbert", {{"num_attention_heads", 8}}, "num_attention_heads is 8, and n_heads is 4, expected the same"},
      {"distilbert", {{"num_hidden_layers", 1}}, "num_hidden_layers is 1, and n_layers is 3, expected the same"},
      {"nomic_bert", {{"layer_norm_eps", 0.5}}, "layer_norm_eps is 0.500000, and layer_norm_epsilon is"},
      {"nomic_bert", {{"hidden_act", "gelu"}}, "activation_function is 'swiglu', which hidden_act is not"},
      {"nomic_bert by other keys",
       {{"n_positions", 10}, {"max_position_embeddings", nullptr}},
       "n_positions is there beside hidden_size, expected max_position_embeddings"},
      {"nomic_bert by other keys",
       {{"rotary_emb_base", 10}, {"rope_parameters", nullptr}},
       "rotary_emb_base is there beside hidden_size, expected rope_theta"},
      {"llama",
       {{"processor_class", "BertTokenizer"}},
       "processor_class is 'BertTokenizer', expected a processor's class"},
      {"eurobert", {{"is_causal", true}}, "config.json: is_causal is true, expected false"},
      {"llama", {{"per_layer_config", {{"1", {{"hidden_act", "relu"}}}}}}, "config.json: per_layer_config is"},
      {"llama", {{"transformers_weights", "a.safetensors"}}, "config.json: transformers_weights is 'a.safetensors'"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.change);
    json config = golden_family(one.family).described.at("config");
    for (const auto& [key, value] : one.change.items()) config[key] = value;  // null, too
    const std::string folder = golden_family(one.family).write(scratch.path("family"), config);
    EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(folder)); }), one.says));
  }
}

// The same tensor by the names of the network alone and with its model's in front.
TEST(FamilyRefusals, TensorsOfTwoNamesAreRefused) {
  const ScratchFolder scratch;
  for (const auto& [family, prefix] : {std::pair("qwen3", "model."), {"distilbert", "distilbert."}}) {
    SCOPED_TRACE(family);
    const GoldenFamily::Tensors drawn = golden_family(family).tensors();
    Weights weights = GoldenFamily::views(drawn);
    const std::string name = weights.begin()->first;
    const bool has_prefix = name.starts_with(prefix);
    weights.emplace(has_prefix ? name.substr(std::string_view(prefix).size()) : prefix + name, weights.begin()->second);
    const std::string folder = golden_family(family).write(scratch.path("family"), {}, weights);
    EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(folder)); }), ", expected one of them"));
  }
}

// What sentence-transformers makes of a folder without modules.json, and of one that is no CrossEncoder's.
TEST(FamilyRefusals, TemplatesOfChatsAndLengthsOfTextsAreRefusedWhereTheyCount) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::string> text{"a city"};
  const auto refusal = [&](const std::string& folder) {
    try {
      static_cast<void>(load(folder).embed(engine, text));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::string folder = golden_family("qwen3").write(scratch.path("family"));
  EXPECT_EQ(refusal(folder), "");
  scratch.write("family/chat_template.jinja", "{{ messages }}");
  EXPECT_TRUE(contains(refusal(folder), "chat_template.jinja is there, expected a modules.json beside it"));
  const char* const kModules = R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
                                   {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])";
  scratch.write("family/modules.json", kModules);
  EXPECT_EQ(refusal(folder), "");
  scratch.write("family/sentence_bert_config.json", R"({"max_seq_length": 41})");
  EXPECT_TRUE(contains(refusal(folder), "max_seq_length is 41, expected at most max_position_embeddings, 40"));
  scratch.write("family/sentence_bert_config.json", "{}");
  scratch.write("family/sentence_roberta_config.json", R"({"max_seq_length": 41})");
  EXPECT_TRUE(contains(refusal(folder), "max_seq_length is 41"));
  // The last token of a model that writes text.
  json config = golden_family("qwen3").described.at("config");
  config["architectures"] = {"Qwen3ForCausalLM"};
  folder = golden_family("qwen3").write(scratch.path("family"), config);
  EXPECT_EQ(load(folder).options().pooling, std::vector{PoolingMode::last_token});
  config["is_causal"] = false;
  folder = golden_family("qwen3").write(scratch.path("family"), config);
  EXPECT_EQ(load(folder).options().pooling, std::vector{PoolingMode::mean});
}

TEST(FamilyRefusals, AHoleInAMaskIsRefusedWhereThereAreWindows) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::int64_t> ids{7, 8, 9, 10}, mask{1, 0, 1, 1};
  const View<const std::int64_t, 2> tokens(ids.data(), {1, 4}), hole(mask.data(), {1, 4});
  const TextEncoder windows = load(golden_family("modernbert").write(scratch.path("family")));
  EXPECT_THROW(static_cast<void>(windows.encode(engine, tokens, hole)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(windows.embed(engine, tokens, hole)), std::invalid_argument);
  EXPECT_FALSE(windows.has_network());
  EXPECT_THROW(static_cast<void>(windows.network()), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(windows.probabilities(engine, ids, 99)), std::invalid_argument);
  EXPECT_EQ(windows.layer().precision(), NumberType::float32);
  // Where there are none, a token that is left out leaves its position.
  const TextEncoder whole = load(golden_family("eurobert").write(scratch.path("family")));
  const Tensor<float, 3> found = whole.encode(engine, tokens, hole);
  for (std::int64_t e = 0; e < 32; ++e) EXPECT_EQ(found(0, 1, e), 0);
}

TEST(FamilyRefusals, WhatOnlyBertHasIsRefused) {
  const ScratchFolder scratch;
  const TextEncoder model = load(golden_family("xlm-roberta").write(scratch.path("family")));
  EXPECT_TRUE(model.has_network());
  EXPECT_FALSE(model.has_tokenizer());
  EXPECT_EQ(model.options().model_type, "xlm-roberta");
  EXPECT_EQ(model.options().max_length, 38);
  EXPECT_EQ(model.token_count(), 627);
  EXPECT_THROW(static_cast<void>(model.tokenizer()), std::invalid_argument);
  const std::vector<std::int64_t> ids = model.tokenize("the city");
  EXPECT_EQ(model.decode(ids), "<s> the city</s>");
  EXPECT_EQ(model.tokenize("the city", 3).size(), 3u);
  EXPECT_EQ(model.tokenize("the city", 3).back(), ids.back());
  EXPECT_EQ(*model.token(ids[0]), "<s>");
  EXPECT_EQ(model.token_id("<s>"), ids[0]);
  EXPECT_EQ(model.token(628), std::nullopt);
  EXPECT_THROW(static_cast<void>(model.decode(std::vector<std::int64_t>{628})), std::invalid_argument);
}

}  // namespace headlight::models::family_refusals_test
