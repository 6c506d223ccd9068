// Folders that ask for another tokenizer, or for vectors that are not built: who refuses them, and how.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/golden_folder.h"
#include "support/compare.h"
#include "support/refusal.h"

namespace headlight::models::model_vectors_test {

using nlohmann::json;
using test::contains;
using test::file_error;
using test::golden_folders;
using test::GoldenFolder;
using test::ScratchFolder;

// A change of one file of a folder: members that are replaced, or the whole.
struct Change {
  const char* folder;
  const char* file;
  const char* json;
  const char* says;
};

std::string changed(const ScratchFolder& scratch, const Change& change) {
  GoldenFolder folder = golden_folders().named(change.folder);
  const json value = json::parse(change.json);
  json& file = folder.files[change.file];
  if (value.is_object() && file.is_object()) {
    file.merge_patch(value);
  } else {
    file = value;
  }
  return folder.write(scratch);
}

TEST(ModelVectors, TokenizersOfOtherKindsAreRefused) {
  const ScratchFolder scratch;
  const char* const kJson = "tokenizer.json alone";
  const char* const kWhole = "cased by tokenizer.json";
  const Change changes[] = {
      {"plain", "tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})",
       "tokenizer_config.json: tokenizer_class is 'BertJapaneseTokenizer', expected BertTokenizer or another"},
      {"plain", "config.json", R"({"tokenizer_class": "MPNetTokenizer"})",
       "tokenizer.json: is not there, expected it for the tokenizer_class 'MPNetTokenizer'"},
      {"plain", "tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})",
       "expected a tokenizer.json in the folder"},
      {"plain", "tokenizer_config.json", R"({"word_tokenizer_type": "mecab"})",
       "word_tokenizer_type is 'mecab', expected basic"},
      {"plain", "tokenizer_config.json", R"({"model_max_length": 1})",
       "model_max_length is 1.000000, expected 2 or more"},
      {"plain", "tokenizer_config.json", R"({"cls_token": 7})",
       "tokenizer_config.json: cls_token is 7, expected a text or an object"},
      {"plain", "tokenizer_config.json", R"({"cls_token": "nowhere", "bos_token": "x"})", ""},
      {"plain", "tokenizer_config.json", R"({"extra_special_tokens": ["A1"], "additional_special_tokens": ["A2"]})",
       "tokenizer_config.json: additional_special_tokens has tokens, expected none beside extra_special_tokens"},
      {"plain", "special_tokens_map.json", R"({"sep_token": null})",
       "special_tokens_map.json: sep_token is null, expected a token"},
      {"plain", "special_tokens_map.json", R"({"do_lower_case": false})",
       "special_tokens_map.json: do_lower_case is false, expected it in tokenizer_config.json"},
      {"plain", "tokenizer_config.json", R"({"image_token": {"content": "A1"}})",
       "tokenizer_config.json: image_token is an object, expected a text"},
      {"plain", "special_tokens_map.json",
       R"({"eos_token": {"content": "A1", "lstrip": true}, "extra_special_tokens": ["A1"]})",
       "special_tokens_map.json: extra_special_tokens[0] is 'A1' with other options than where it stands, too"},
      {"plain", "vocab.txt", R"("[PAD]\n[UNK]\n[CLS]\n[SEP]\na \n")",
       "vocab.txt: line 5 is 'a ', expected no white space at its end"},
      {"plain", "vocab.txt", R"("[PAD]\n[UNK]\n[CLS]\n[SEP]\n\n \n")", "line 6 is ' ', expected no white space"},
      {"plain", "vocab.txt", R"("\ufeff[PAD]\n[UNK]\n[CLS]\n[SEP]\n")", "vocab.txt: begins with a byte order mark"},
      {kJson, "tokenizer.json", R"({"padding": {"pad_token": "[MORE]"}})",
       "tokenizer.json: padding.pad_token is '[MORE]', expected one of added_tokens"},
      {kJson, "tokenizer.json", R"({"model": {"vocab": {"zz": 55}}, "added_tokens": [{"content": "A1", "id": 49}]})",
       "tokenizer.json: leaves out ids in model.vocab, expected none beside 'A1'"},
      {"plain", "tokenizer_config.json", R"({"added_tokens_decoder": {"50": {"content": "tok2"}}})",
       "added_tokens_decoder.50 gives 'tok2' the id 50, expected 48"},
      {"plain", "tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "tok2"}}})",
       "added_tokens_decoder.x has a key that is no id"},
      {"plain", "tokenizer_config.json", R"({"added_tokens_decoder": {"48": {"content": "t2", "color": 1}}})",
       "48.color is 1, a key that is not known"},
      {"plain", "tokenizer_config.json",
       R"({"extra_special_tokens": ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9"]})",
       "extra_special_tokens[8] gives 'A9' the id 56, expected less than the vocab_size of config.json, 56"},
      {"plain", "added_tokens.json", R"({"tok2": "48"})",
       "added_tokens.json: tok2 is '48', expected the id of a token"},
      {"plain", "added_tokens.json", R"({"tok2": 5})", "added_tokens.json: tok2 gives 'tok2' the id 5, expected 48"},
      {kJson, "tokenizer.json", R"({"model": {"type": "BPE"}})",
       "tokenizer.json: model.type is 'BPE', expected WordPiece"},
      {kJson, "tokenizer.json", R"({"normalizer": {"type": "NFC"}})",
       "normalizer.type is 'NFC', expected BertNormalizer"},
      {kJson, "tokenizer.json", R"({"normalizer": null})", "normalizer is null, expected BertNormalizer"},
      {kJson, "tokenizer.json", R"({"normalizer": {"clean_text": false}})",
       "normalizer.clean_text is false, expected true"},
      {kJson, "tokenizer.json", R"({"pre_tokenizer": {"type": "Whitespace"}})",
       "pre_tokenizer.type is 'Whitespace', expected BertPreTokenizer"},
      {kJson, "tokenizer.json", R"({"post_processor": null})", "post_processor is missing, expected that of BERT"},
      {kJson, "tokenizer.json", R"({"post_processor": {"type": "RobertaProcessing"}})",
       "post_processor.type is 'RobertaProcessing'"},
      {kJson, "tokenizer.json", R"({"post_processor": {"single": []}})",
       "post_processor.single is no token, the text and a token"},
      {kJson, "tokenizer.json", R"({"post_processor": {"special_tokens": {"[CLS]": {"ids": [7]}}}})",
       "special_tokens.[CLS].ids is not the id of '[CLS]'"},
      {kJson, "tokenizer.json", R"({"truncation": {"direction": "Left"}})",
       "truncation.direction is 'Left', expected Right"},
      {kJson, "tokenizer.json", R"({"model": {"unk_token": "x"}})", "model.unk_token is 'x', expected '[UNK]'"},
      {kJson, "tokenizer.json", R"({"model": {"continuing_subword_prefix": "@@"}})",
       "continuing_subword_prefix is '@@', expected '##'"},
      {kJson, "tokenizer.json", R"({"model": {"max_input_chars_per_word": 90}})",
       "max_input_chars_per_word is 90, expected 100"},
      {kJson, "tokenizer.json", R"({"model": {"vocab": {"a": 6}}})", "is 6, the id of another token"},
      {kJson, "tokenizer.json", R"({"model": {"vocab": {"a": -1}}})", "model.vocab.a is -1, expected an id of 0 to"},
      {kJson, "tokenizer_config.json", R"({"whole_words": true})",
       "whole_words is true, expected no tokenizer.json beside it"},
      {kJson, "tokenizer_config.json", R"({"cls_token": "x"})", "post_processor is begun by '[CLS]', expected 'x'"},
      {kJson, "tokenizer_config.json", R"({"added_tokens_decoder": {"2": {"content": "[CLS]"}}})", ""},
      {"added tokens of tokenizer.json", "tokenizer_config.json", R"({"added_tokens_decoder": {}})",
       "tokenizer.json: added_tokens[5] is 'tok.', expected the same in added_tokens_decoder"},
      {kJson, "tokenizer_config.json", R"({"tokenizer_class": "DistilBertTokenizer", "do_lower_case": false})",
       "normalizer.lowercase is true, expected false"},
      {kJson, "tokenizer_config.json", R"({"tokenizer_class": "DistilBertTokenizer"})", ""},
      {kWhole, "tokenizer.json", R"({"model": {"max_input_chars_per_word": 101}})",
       "max_input_chars_per_word is 101, expected 1 to 100"},
      {kWhole, "tokenizer.json", R"({"model": {"unk_token": "nowhere"}})", "lacks the token nowhere"},
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(std::string(change.file) + " " + change.json);
    const std::string path = changed(scratch, change);
    if (change.says[0] == '\0') {
      EXPECT_NO_THROW((void)load(path));
    } else {
      EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), change.says));
    }
  }
}

TEST(ModelVectors, WhatVectorsAskForIsRefusedWhereVectorsAre) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const char* const kDense = "dense ReLU";
  const Change changes[] = {
      {"plain", "modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""}])",
       "modules.json: [0].type is the last one, expected a Pooling"},
      {"plain", "modules.json", R"([{"type": "sentence_transformers.models.CLIPModel", "path": ""}])",
       "[0].type is 'CLIPModel', expected Transformer first"},
      {"plain", "modules.json",
       R"([{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.WeightedLayerPooling", "path": "1_W"}])",
       "[1].type is 'WeightedLayerPooling', expected Pooling"},
      {kDense, "modules.json",
       R"([{"type": "sentence_transformers.models.Transformer", "path": ""}, {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}, {"type": "mine.Dense", "path": "2_Dense"}])",
       "[2].type is 'mine.Dense'"},
      {"plain", "1_Pooling/config.json", R"({"pooling_mode": "attention"})",
       "1_Pooling/config.json: pooling_mode is 'attention', expected cls, max"},
      {"plain", "1_Pooling/config.json", R"({"pooling_mode": ["cls", "all"]})", "pooling_mode[1] is 'all'"},
      {kDense, "2_Dense/config.json", R"({"activation_function": "mine.Snake"})",
       "2_Dense/config.json: activation_function is 'mine.Snake'"},
      {kDense, "2_Dense/config.json", R"({"use_residual": true})", "use_residual is true, expected false"},
      {kDense, "2_Dense/config.json", R"({"module_input_name": "token_embeddings"})",
       "module_input_name is 'token_embeddings', expected sentence_embedding"},
      {"prompt by name", "config_sentence_transformers.json", R"({"default_prompt_name": "other"})",
       "default_prompt_name is 'other', expected the name of one of prompts"},
      {"prompt by name", "config_sentence_transformers.json", R"({"model_type": "SparseEncoder"})",
       "model_type is 'SparseEncoder', expected SentenceTransformer"},
      {"plain", "sentence_bert_config.json", R"({"model_args": {"revision": "x"}})",
       "sentence_bert_config.json: model_args.revision is 'x', expected nothing"},
      {"plain", "sentence_bert_config.json",
       R"({"modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}})",
       "modality_config is not that of hidden states"},
      {"plain", "sentence_bert_config.json",
       R"({"modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}, "message": {}}})",
       "sentence_bert_config.json: modality_config.message is a chat's"},
      {"plain", "sentence_bert_config.json", R"({"transformer_task": "sequence-classification"})",
       "transformer_task is 'sequence-classification', expected feature-extraction"},
      {"plain", "sentence_bert_config.json", R"({"module_output_name": "scores"})",
       "module_output_name is 'scores', expected token_embeddings"},
      {"plain", "sentence_roberta_config.json", R"({"transformer_task": "fill-mask"})",
       "sentence_roberta_config.json: transformer_task is 'fill-mask'"},
  };
  const std::vector<std::string> texts{"a new city"};
  for (const Change& change : changes) {
    SCOPED_TRACE(std::string(change.file) + " " + change.json);
    const TextEncoder model = load(changed(scratch, change));
    EXPECT_EQ(model.encode(engine, texts).hidden.shape()[1], 5);  // whoever pools himself may
    EXPECT_TRUE(contains(test::refusal([&] { (void)model.embed(engine, texts); }), change.says));
    EXPECT_TRUE(contains(test::refusal([&] { model.save(scratch.path("copy")); }), change.says));
    EXPECT_FALSE(std::filesystem::exists(scratch.path("copy")));
  }
}

TEST(ModelVectors, FilesOfModulesThatAreMalformedAreNoModel) {
  const ScratchFolder scratch;
  const Change changes[] = {
      {"plain", "modules.json", "[]", "modules.json: is empty, expected modules"},
      {"plain", "modules.json", "{}", "modules.json: is no JSON array"},
      {"plain", "modules.json", "[7]", "modules.json: [0] is 7, expected an object"},
      {"plain", "modules.json", R"([{"path": ""}])", "[0].type is missing"},
      {"plain", "modules.json", R"([{"type": "x"}])", "[0].path is missing"},
      {"plain", "modules.json", R"([{"type": "x", "path": "../elsewhere"}])",
       "path is '../elsewhere', expected a folder within the model's"},
      {"plain", "modules.json", R"([{"type": "x", "path": "/etc"}])", "path is '/etc'"},
      {"plain", "modules.json",
       R"([{"type": "x", "path": "", "name": "0"}, {"type": "y", "path": "1_Y", "name": "0"}])",
       "modules.json: [1].name is '0', the name of another module"},
      {"plain", "1_Pooling/config.json", R"({"pooling_mode": 7})", "pooling_mode is 7, expected the name of a pooling"},
      {"plain", "1_Pooling/config.json", R"({"pooling_mode": []})", "pooling_mode is empty"},
      {"dense ReLU", "2_Dense/config.json", R"({"in_features": 23})",
       "in_features is 23, expected the width before it, 24"},
      {"prompt by name", "config_sentence_transformers.json", R"({"prompts": {"a": 7}})",
       "prompts.a is 7, expected a text"},
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(std::string(change.file) + " " + change.json);
    EXPECT_TRUE(contains(file_error([&] { (void)load(changed(scratch, change)); }), change.says));
  }
  const std::string path = golden_folders().named("dense ReLU").write(scratch);
  const std::vector<float> numbers(12 * 24);
  write_safetensors(path + "/2_Dense/model.safetensors", Weights{{"linear.weight", WeightView{{24, 12}, numbers}}});
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }),
                       "tensor 'linear.weight' has shape [24, 12], but config.json says [12, 24]"));
  write_safetensors(path + "/2_Dense/model.safetensors", Weights{{"linear.weight", WeightView{{12, 24}, numbers}}});
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), "lacks the tensor 'linear.bias'"));
  std::filesystem::remove(path + "/2_Dense/model.safetensors");
  EXPECT_TRUE(contains(load(path).options().unread_pooling, "2_Dense/model.safetensors: is not there"));
  // Where no modules.json says so, a layer has no place.
  std::filesystem::remove(path + "/modules.json");
  EXPECT_TRUE(contains(load(path).options().unread_pooling,
                       "2_Dense/config.json: a layer behind the pooling, expected a modules.json"));
}

// Which Transformers would add to the model that the file names.
TEST(ModelVectors, AnAdapterIsRefused) {
  const ScratchFolder scratch;
  const std::string path = changed(scratch, {"plain", "adapter_config.json", R"({"peft_type": "LORA"})", ""});
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), "adapter_config.json: is an adapter's"));
}

TEST(ModelVectors, PoolingMayBeChosen) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::string>& texts = golden_folders().texts;
  const auto vectors = [&](const char* folder, const LoadModelOptions& options) {
    const std::string path = golden_folders().named(folder).write(scratch);
    return load(path, options).embed(engine, texts);
  };
  LoadModelOptions cls;
  cls.pooling = {PoolingMode::cls};
  EXPECT_TRUE(test::same_bits(vectors("plain", cls), vectors("pooling cls", {})));
  EXPECT_FALSE(test::same_bits(vectors("plain", cls), vectors("plain", {})));
  LoadModelOptions list;
  list.pooling = {PoolingMode::max, PoolingMode::cls, PoolingMode::mean};
  EXPECT_TRUE(test::same_bits(vectors("pooling max", list), vectors("poolings in a list", {})));
  // In place of one that is not built, too.
  const std::string path = changed(scratch, {"plain", "1_Pooling/config.json", R"({"pooling_mode": "attention"})", ""});
  EXPECT_EQ(load(path, cls).options().unread_pooling, "");
  for (const PoolingMode mode : {PoolingMode::cls, PoolingMode::max, PoolingMode::mean, PoolingMode::mean_sqrt_len,
                                 PoolingMode::weighted_mean, PoolingMode::last_token}) {
    EXPECT_EQ(parse_pooling_mode(name(mode)), mode);
  }
  EXPECT_EQ(parse_pooling_mode("median"), std::nullopt);
}

// Tokens of ids may be a prompt's, and a vector need not have the length 1.
TEST(ModelVectors, OptionsOfACall) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const TextEncoder model = load(golden_folders().named("prompt left out of mean").write(scratch));
  const std::vector<std::string> text{"a new city"};
  Tensor<float, 2> of_text({1, model.embed_width()}), of_ids({1, model.embed_width()});
  model.embed(engine, text, of_text, {});
  const std::vector<std::int64_t> ids = model.tokenizer().encode("the city: a new city", 100);
  const View<const std::int64_t, 2> row(ids.data(), {1, static_cast<std::int64_t>(ids.size())});
  model.embed(engine, row, {}, of_ids, {.prompt_tokens = 4});  // [CLS] the city and a colon that is [UNK]
  EXPECT_TRUE(test::same_bits(of_text, of_ids));
  model.embed(engine, row, {}, of_ids, {.prompt_tokens = 100});
  EXPECT_EQ(of_ids(0, 0), 0.0f);
  EXPECT_TRUE(contains(test::refusal([&] { model.embed(engine, row, {}, of_ids, {.prompt_tokens = -1}); }),
                       "prompt_tokens is -1"));
  EXPECT_TRUE(contains(test::refusal([&] { model.embed(engine, text, of_text, {.prompt = "\xFF"}); }), "is not UTF-8"));
  EXPECT_EQ(model.prompt(), "the city: ");
  EXPECT_EQ(model.prompt({.prompt_name = "query"}), "the city: ");
  EXPECT_EQ(model.prompt({.prompt_name = "document"}), "");
  EXPECT_EQ(model.prompt({.prompt = "x", .prompt_name = "none"}), "x");
  Tensor<float, 2> of_name({1, model.embed_width()}), of_none({1, model.embed_width()});
  model.embed(engine, text, of_name, {.prompt_name = "passage"});
  model.embed(engine, text, of_none, {.prompt = ""});
  EXPECT_TRUE(test::same_bits(of_name, of_none));
  EXPECT_FALSE(test::same_bits(of_name, of_text));
  EXPECT_TRUE(contains(test::refusal([&] { model.embed(engine, text, of_name, {.prompt_name = "passages"}); }),
                       "prompt_name is 'passages', expected the name of one of the model's: document, passage, query"));
  Tensor<float, 2> longer({1, model.embed_width()});
  model.embed(engine, text, longer, {.normalize = false});
  double squares = 0, product = 0;
  for (std::int64_t e = 0; e < longer.size(); ++e) {
    squares += longer.data()[e] * longer.data()[e];
    product += longer.data()[e] * of_text.data()[e];
  }
  EXPECT_GT(std::abs(squares - 1), 0.1);
  EXPECT_NEAR(product / std::sqrt(squares), 1, 1e-6);
}

// The first numbers of a vector, then its length, whatever path the pooling takes.
TEST(ModelVectors, TruncatedVectorsAreTheFirstNumbers) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a new city", "the city", ""};
  const char* const kNormalized = R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
      {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
      {"type": "sentence_transformers.models.Normalize", "path": ""}])";
  for (const Change& change :
       {Change{"plain", "unread.json", "{}", ""}, Change{"plain", "modules.json", kNormalized, ""},
        Change{"dense ReLU", "unread.json", "{}", ""}, Change{"layer norm", "unread.json", "{}", ""},
        Change{"poolings in a list", "unread.json", "{}", ""}}) {
    SCOPED_TRACE(std::string(change.folder) + " " + change.file);
    const TextEncoder model = load(changed(scratch, change));
    const std::int64_t width = model.embed_width({.truncate_dim = 0});
    EXPECT_EQ(model.embed_width(), width);
    const auto embedded = [&](const EmbedOptions& options) {
      Tensor<float, 2> vectors({3, model.embed_width(options)});
      model.embed(engine, texts, vectors, options);
      return vectors;
    };
    const Tensor<float, 2> whole = embedded({.normalize = false});
    for (const std::int64_t kept : {std::int64_t{1}, std::int64_t{7}, width - 1, width}) {
      SCOPED_TRACE(kept);
      const Tensor<float, 2> raw = embedded({.normalize = false, .truncate_dim = kept});
      const Tensor<float, 2> unit = embedded({.truncate_dim = kept});
      ASSERT_EQ(raw.shape()[1], kept);
      for (std::int64_t text = 0; text < 3; ++text) {
        double squares = 0;
        for (std::int64_t e = 0; e < kept; ++e) squares += static_cast<double>(whole(text, e)) * whole(text, e);
        for (std::int64_t e = 0; e < kept; ++e) {
          EXPECT_EQ(raw(text, e), whole(text, e)) << text << " " << e;
          // The sum of the squares, a root and a quotient in float32.
          EXPECT_NEAR(unit(text, e), whole(text, e) / std::max(std::sqrt(squares), 1e-12),
                      static_cast<double>(kept + 4) * test::kUnitRoundoff);
        }
      }
    }
    EXPECT_TRUE(contains(test::refusal([&] { (void)embedded({.truncate_dim = width + 1}); }),
                         "truncate_dim is " + std::to_string(width + 1) + ", expected 0 to the width of a vector, "));
    EXPECT_TRUE(contains(test::refusal([&] { (void)embedded({.truncate_dim = -1}); }), "truncate_dim is -1"));
  }
}

TEST(ModelVectors, TruncateDimOfAFolder) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a new city", "the city"};
  const auto loaded = [&](const char* config) {
    return load(changed(scratch, {"plain", "config_sentence_transformers.json", config, ""}));
  };
  const TextEncoder whole = loaded("{}"), short_one = loaded(R"({"truncate_dim": 6})");
  EXPECT_EQ(short_one.embed_width(), 6);
  EXPECT_EQ(short_one.embed_width({.truncate_dim = 0}), 24);
  Tensor<float, 2> expected({2, 6}), all({2, 24});
  whole.embed(engine, texts, expected, {.truncate_dim = 6});
  EXPECT_TRUE(test::same_bits(short_one.embed(engine, texts), expected));
  short_one.embed(engine, texts, all, {.truncate_dim = 0});
  EXPECT_TRUE(test::same_bits(all, whole.embed(engine, texts)));
  short_one.save(scratch.path("saved"));
  EXPECT_TRUE(test::same_bits(load(scratch.path("saved")).embed(engine, texts), expected));
  for (const char* const no_effect :
       {R"({"truncate_dim": null})", R"({"truncate_dim": 24})", R"({"truncate_dim": 99})"}) {
    EXPECT_EQ(loaded(no_effect).options().truncate_dim, 0);
  }
  EXPECT_TRUE(contains(file_error([&] { (void)loaded(R"({"truncate_dim": 0})"); }),
                       "config_sentence_transformers.json: truncate_dim is 0, expected 1 or more"));
}

TEST(ModelVectors, PartsThatDoNotFitAreRefused) {
  const ScratchFolder scratch;
  const TextEncoder model = load(golden_folders().named("plain").write(scratch));
  const auto refused = [&](auto change, const char* says) {
    ModelOptions options = model.options();
    change(options);
    EXPECT_TRUE(contains(test::refusal([&] { (void)make_random(options, model.tokenizer(), 1); }), says));
  };
  refused([](ModelOptions& options) { options.pooling.clear(); }, "pooling has 0 entries, expected 1 to 32");
  refused([](ModelOptions& options) { options.truncate_dim = 25; },
          "truncate_dim is 25, expected 0 to the width of a vector, 24");
  refused([](ModelOptions& options) { options.default_prompt = "x"; },
          "default_prompt is 'x', expected the name of one of prompts");
  refused(
      [](ModelOptions& options) {
        options.vector_layers = {{.kind = VectorLayer::Kind::dense, .width = 3, .weight = std::vector<float>(71)}};
      },
      "numbers do not fit the width before it, 24");
  refused([](ModelOptions& options) { options.vector_layers = {{.kind = VectorLayer::Kind::layer_norm}}; },
          "do not fit");
}

}  // namespace headlight::models::model_vectors_test
