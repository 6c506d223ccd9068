// Folders as they are found, and folders that do not fit together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/tiny_bert.h"
#include "support/compare.h"
#include "support/quick.h"

namespace headlight::models::model_folder_test {

using test::contains;
using test::file_error;
using test::ScratchFolder;
using test::TinyBert;

std::vector<float> hidden_of(const std::string& folder) {
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a b c", "q"};
  const HiddenStates states = load(folder).encode(engine, texts);
  return {states.hidden.begin(), states.hidden.end()};
}

TEST(ModelFolder, TensorsUnderAllTheirNames) {
  const ScratchFolder folder;
  const TinyBert bert;
  const std::string path = bert.write(folder);
  const std::vector<float> expected = hidden_of(path);
  const auto old_norm = [](std::string name) {
    const std::size_t at = name.find("LayerNorm.");
    if (at == std::string::npos) return name;
    return name.substr(0, at + 10) + (name.ends_with("weight") ? "gamma" : "beta");
  };
  const auto check = [&](Weights weights) {
    write_safetensors(folder.path("bert/model.safetensors"), weights);
    EXPECT_EQ(hidden_of(path), expected);
  };
  check(bert.renamed([](const std::string& name) { return "bert." + name; }));
  check(bert.renamed(old_norm));
  Weights full = bert.renamed([&](const std::string& name) { return "bert." + old_norm(name); });
  const std::vector<float> numbers(48, 1.0f);
  full["bert.embeddings.position_ids"] = {{1, 12}, std::span(numbers).first(12)};
  full["bert.pooler.dense.weight"] = {{6, 8}, numbers};
  full["bert.pooler.dense.bias"] = {{2}, std::span(numbers).first(2)};
  full["cls.predictions.bias"] = {{3}, std::span(numbers).first(3)};
  full["classifier.weight"] = {{2, 24}, numbers};
  check(full);
}

// The weights are read where the file is mapped, which outlives its name.
TEST(ModelFolder, MayBeRemovedOrReplacedOnceItIsLoaded) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  const std::vector<float> expected = hidden_of(path);
  const TextEncoder encoder = load(path);
  const TextEncoder again = load(path);
  again.save(path);
  std::filesystem::remove_all(path);
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a b c", "q"};
  const HiddenStates states = encoder.encode(engine, texts);
  EXPECT_TRUE(std::ranges::equal(states.hidden, expected));
}

TEST(ModelFolder, FromMemoryItIsTheSame) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  const std::vector<const char*> names = {"config.json", "model.safetensors", "vocab.txt"};
  std::vector<std::string> contents;
  for (const char* name : names) contents.push_back(folder.read(std::string("bert/") + name));
  std::vector<FileInMemory> files;
  for (std::size_t n = 0; n < names.size(); ++n) files.push_back({names[n], std::as_bytes(std::span(contents[n]))});
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a b c", "q"};
  const HiddenStates states = load("mine", files).encode(engine, texts);
  EXPECT_EQ(std::vector<float>(states.hidden.begin(), states.hidden.end()), hidden_of(path));
  const auto refuses = [&](std::size_t file, std::string_view bytes, const char* expected) {
    std::vector<FileInMemory> changed = files;
    changed[file].bytes = std::as_bytes(std::span(bytes));
    EXPECT_TRUE(contains(file_error([&] { (void)load("mine", changed); }), expected));
  };
  refuses(0, "{", "mine/config.json");
  refuses(1, "none", "mine/model.safetensors");
  refuses(2, "none", "mine/vocab.txt");
  refuses(0, std::string((16u << 20) + 1, ' '), "has 16777217 bytes, expected at most 16777216");
  EXPECT_TRUE(contains(file_error([&] { (void)load("mine", std::span(files).first(2)); }),
                       "mine: holds neither tokenizer.json nor vocab.txt"));
}

TEST(ModelFolder, DefaultsOfOldFolders) {
  const ScratchFolder folder;
  TinyBert bert;
  const std::vector<float> expected = hidden_of(bert.write(folder));
  for (const char* key :
       {"model_type", "hidden_act", "type_vocab_size", "hidden_dropout_prob", "position_embedding_type", "id2label"}) {
    bert.config[key] = "";
  }
  bert.config["model_type"] = "null";
  const std::string path = bert.write(folder);
  EXPECT_EQ(hidden_of(path), expected);
  const TextEncoder plain = load(path);
  EXPECT_TRUE(plain.options().tokenizer.lower_case);
  EXPECT_EQ(plain.options().max_length, 12);
  EXPECT_EQ(plain.options().embed_max_length, 12);
  folder.write("bert/tokenizer_config.json",
               R"({"do_lower_case": false, "strip_accents": null, "tokenize_chinese_chars": false})");
  folder.write("bert/sentence_bert_config.json", R"({"max_seq_length": 6, "do_lower_case": false})");
  const TextEncoder cased = load(path);
  EXPECT_FALSE(cased.options().tokenizer.lower_case);
  EXPECT_FALSE(cased.options().tokenizer.split_ideographs);
  EXPECT_EQ(cased.options().max_length, 12);
  EXPECT_EQ(cased.options().embed_max_length, 6);
  folder.write("bert/sentence_bert_config.json", R"({"max_seq_length": 600})");
  EXPECT_EQ(load(path).options().embed_max_length, 12);
}

// Loads the folder with one member of config.json changed.
std::string error_with(const std::string& key, const std::string& value) {
  const ScratchFolder folder;
  TinyBert bert;
  bert.config[key] = value;
  const std::string path = bert.write(folder);
  return file_error([&] { (void)load(path); });
}

TEST(ModelFolder, ConfigurationsThatCannotBe) {
  const struct {
    const char* key;
    const char* value;
    const char* says;
  } cases[] = {
      {"model_type", "\"electra\"", "config.json: model_type is 'electra', expected one of bert, distilbert"},
      {"model_type", "\"t5\"", "config.json: model_type is 't5' (it is an encoder and a decoder"},
      {"model_type", "7", "config.json: model_type is no text"},
      {"position_embedding_type", "\"relative_key\"", "position_embedding_type is 'relative_key', expected absolute"},
      {"is_decoder", "true", "is_decoder is true"},
      {"hidden_act", "\"swish\\u001b\"", "hidden_act is 'swish\\x1b', expected one of gelu, gelu_python"},
      {"hidden_size", "", "config.json: hidden_size is missing"},
      {"hidden_size", "null", "hidden_size is missing"},
      {"hidden_size", "24.0", "hidden_size is no integer"},
      {"hidden_size", "\"24\"", "hidden_size is no integer"},
      {"hidden_size", "[24]", "hidden_size is no integer"},
      {"hidden_size", "0", "hidden_size is 0, expected 1 to"},
      {"hidden_size", "-24", "hidden_size is -24"},
      {"hidden_size", "9223372036854775807", "hidden_size is 9223372036854775807"},
      {"hidden_size", "99999999999999999999", "hidden_size is no integer"},
      {"num_attention_heads", "5", "num_attention_heads is 5, which does not divide hidden_size 24"},
      {"layer_norm_eps", "-1", "layer_norm_eps is -1"},
      {"layer_norm_eps", "\"small\"", "layer_norm_eps is no number"},
      {"layer_norm_eps", "1e999", "config.json: is not valid JSON"},
      {"hidden_dropout_prob", "1", "hidden_dropout_prob is 1"},
      {"max_position_embeddings", "1", "max_position_embeddings is 1, expected 2"},
      // Sizes that the weights do not bear out: named before anything of that size is allocated.
      {"hidden_size", "2147483646",
       "tensor 'embeddings.word_embeddings.weight' has shape [31, 24], but config.json says [31, 2147483646]"},
      {"vocab_size", "2147483647", "has shape [31, 24], but config.json says [2147483647, 24]"},
      {"vocab_size", "30", "vocab.txt: has 31 tokens, expected at most the vocab_size of config.json, 30"},
      {"vocab_size", "32", "'embeddings.word_embeddings.weight' has shape [31, 24], but config.json says [32, 24]"},
      {"max_position_embeddings", "512", "'embeddings.position_embeddings.weight' has shape [12, 24]"},
      {"type_vocab_size", "1", "'embeddings.token_type_embeddings.weight' has shape [2, 24]"},
      {"type_vocab_size", "0",
       "holds the tensor 'embeddings.token_type_embeddings.weight', which config.json does not ask for"},
      {"intermediate_size", "41",
       "'encoder.layer.0.intermediate.dense.weight' has shape [40, 24], but config.json says [41, 24]"},
      {"num_hidden_layers", "3", "lacks the tensor 'encoder.layer.2.attention.self.query.weight'"},
      {"num_hidden_layers", "2147483647",
       "config.json: num_hidden_layers is 2147483647, expected at most as many as there are tensors in "},
      {"num_hidden_layers", "1",
       "holds the tensor 'encoder.layer.1.attention.output.LayerNorm.bias', which config.json does not ask for"},
  };
  for (const auto& [key, value, says] : cases)
    EXPECT_TRUE(contains(error_with(key, value), says)) << key << " " << value;
}

TEST(ModelFolder, FilesThatAreMissingOrMalformed) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  const auto with = [&](const char* file, const std::string& bytes) {
    const std::string name = std::string("bert/") + file;
    const std::string before = folder.read(name);
    folder.write(name, bytes);
    const std::string message = file_error([&] { (void)load(path); });
    folder.write(name, before);
    return message;
  };
  EXPECT_TRUE(contains(with("config.json", ""), "config.json: is not valid JSON"));
  EXPECT_TRUE(contains(with("config.json", "[]"), "config.json: is no JSON object"));
  EXPECT_TRUE(contains(with("config.json", "7"), "config.json: is no JSON object"));
  EXPECT_TRUE(contains(with("config.json", R"({"a":1,"a":2})"), "holds the key 'a' twice"));
  EXPECT_TRUE(contains(with("config.json", "{\"a\":" + std::string(1'000'000, '[')), "nests deeper than 64"));
  EXPECT_TRUE(contains(with("config.json", std::string("{}\0", 3)), "holds a zero byte"));
  EXPECT_TRUE(contains(with("config.json", std::string((16u << 20) + 1, ' ')),
                       "has 16777217 bytes, expected at most 16777216"));
  EXPECT_TRUE(contains(with("model.safetensors", "x"), "model.safetensors: has 1 bytes"));
  EXPECT_TRUE(contains(with("vocab.txt", "[PAD]\n[UNK]\n[SEP]\n"), "vocab.txt: lacks the token [CLS]"));
  folder.write("bert/tokenizer_config.json", R"({"do_lower_case": "yes"})");
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }),
                       "tokenizer_config.json: do_lower_case is neither true nor false"));
  std::filesystem::remove(folder.path("bert/tokenizer_config.json"));
  folder.write("bert/sentence_bert_config.json", R"({"max_seq_length": 1})");
  EXPECT_TRUE(
      contains(file_error([&] { (void)load(path); }), "sentence_bert_config.json: max_seq_length is 1, expected 2"));
  std::filesystem::remove(folder.path("bert/sentence_bert_config.json"));
}

TEST(ModelFolder, WhatIsNotThereIsNamed) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  const auto refusal = [&] { return file_error([&] { (void)load(path); }); };
  const std::string expected =
      "expected a model's folder (config.json, model.safetensors, and vocab.txt or tokenizer.json) or a .gguf file";
  const std::vector<std::pair<std::string, std::string>> messages{
      {"config.json", "holds no config.json, " + expected},
      {"model.safetensors", "holds no model.safetensors and no model.safetensors.index.json, expected one of them"},
      {"vocab.txt", "holds neither tokenizer.json nor vocab.txt, expected one of them"},
  };
  for (const auto& [file, message] : messages) {
    const std::string before = folder.read("bert/" + file);
    std::filesystem::remove(folder.path("bert/" + file));
    EXPECT_EQ(refusal(), path + ": " + message);
    folder.write("bert/" + file, before);
  }
  EXPECT_FALSE(hidden_of(path).empty());
  const std::string config = path + "/config.json", nowhere = folder.path("some-organisation/some-model");
  EXPECT_EQ(file_error([&] { (void)load(config); }), config + ": is a file, " + expected);
  EXPECT_EQ(file_error([&] { (void)load(nowhere); }),
            nowhere + ": is not there, " + expected + "; nothing is downloaded");
  EXPECT_TRUE(contains(file_error([] { (void)load("memory", std::span<const FileInMemory>()); }),
                       "memory: holds no config.json, "));
  // Whether a family is read is known without its weights.
  std::filesystem::remove(path + "/model.safetensors");
  folder.write("bert/pytorch_model.bin", "x");
  EXPECT_TRUE(contains(refusal(), ".index.json, expected one of them; pytorch_model.bin is not read"));
  folder.write("bert/config.json", R"({"model_type": "clip"})");
  EXPECT_TRUE(contains(refusal(), "bert/config.json: model_type is 'clip'"));
}

TEST(ModelFolder, WeightsThatDoNotFit) {
  const ScratchFolder folder;
  const TinyBert bert;
  const std::string path = bert.write(folder);
  const auto with = [&](const std::string& name, WeightView view) {
    Weights weights = bert.weights();
    if (view.shape.empty()) {
      weights.erase(name);
    } else {
      weights[name] = std::move(view);
    }
    write_safetensors(folder.path("bert/model.safetensors"), weights);
    return file_error([&] { (void)load(path); });
  };
  const std::vector<float> numbers(24 * 40);
  EXPECT_TRUE(contains(with("encoder.layer.1.output.dense.bias", {}),
                       "model.safetensors: lacks the tensor 'encoder.layer.1.output.dense.bias'"));
  EXPECT_TRUE(contains(with("encoder.layer.1.output.LayerNorm.weight", {}),
                       "lacks the tensor 'encoder.layer.1.output.LayerNorm.weight'"));
  EXPECT_TRUE(
      contains(with("encoder.layer.0.output.dense.weight", {{40, 24}, numbers}),
               "tensor 'encoder.layer.0.output.dense.weight' has shape [40, 24], but config.json says [24, 40]"));
  EXPECT_TRUE(
      contains(with("encoder.layer.0.attention.self.key.bias", {{1, 24}, std::span(numbers).first(24)}),
               "tensor 'encoder.layer.0.attention.self.key.bias' has shape [1, 24], but config.json says [24]"));
  EXPECT_TRUE(contains(with("encoder.layer.2.output.dense.bias", {{24}, std::span(numbers).first(24)}),
                       "holds the tensor 'encoder.layer.2.output.dense.bias', which config.json does not ask for"));
  EXPECT_TRUE(
      contains(with("embeddings.word_embeddings.weight", {}), "lacks the tensor 'embeddings.word_embeddings.weight'"));
}

// A dtype that cannot become float32 where a weight should be.
TEST(ModelFolder, WeightsOfAnotherType) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  std::string bytes = folder.read("bert/model.safetensors");
  std::size_t at = 0;
  while ((at = bytes.find("\"F32\"", at)) != std::string::npos) bytes.replace(at, 5, "\"I32\"");
  folder.write("bert/model.safetensors", bytes);
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), "has dtype I32, expected F32, F16, BF16, or I8"));
}

TEST(ModelFolder, EveryMutationOfTheConfigurationIsReadOrRefused) {
  const ScratchFolder folder;
  const TinyBert bert;
  const std::string path = bert.write(folder);
  const std::string text = bert.config_text();
  const auto attempt = [&](const std::string& mutated) {
    folder.write("bert/config.json", mutated);
    try {
      (void)load(path);
    } catch (const FileError&) {
    }
  };
  const std::size_t step = test::count<std::size_t>(1, 5);
  for (std::size_t length = 0; length < text.size(); length += 3 * step) attempt(text.substr(0, length));
  for (std::size_t at = 0; at < text.size(); at += step) {
    std::string mutated = text;
    mutated[at] = static_cast<char>(mutated[at] ^ (at % 2 == 0 ? 0x01 : 0x80));
    attempt(mutated);
  }
}

TEST(ModelFolder, PoolingThatIsNotBuiltIsNamedWhereItIsAskedFor) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  Engine engine;
  const std::vector<std::string> texts = {"a b"};
  const Tensor<float, 2> mean = load(path).embed(engine, texts);
  const struct {
    const char* file;
    const char* json;
    const char* says;  // null: the mean
  } cases[] = {
      {"1_Pooling",
       R"({"word_embedding_dimension": 24, "pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false})",
       nullptr},
      {"1_Pooling", R"({"pooling_mode": "mean", "include_prompt": true})", nullptr},
      {"1_Pooling", R"({"pooling_mode_of_tomorrow": false})", nullptr},
      {"1_Pooling", R"({"pooling_mode": "attention"})", "1_Pooling/config.json: pooling_mode is 'attention', expected"},
      {"1_Pooling", R"({"pooling_mode_of_tomorrow": true})", "pooling_mode_of_tomorrow is true"},
      {"2_Dense", R"({"in_features": 24})", "2_Dense/config.json"},
  };
  for (const auto& c : cases) {
    folder.write(std::string("bert/") + c.file + "/config.json", c.json);
    const TextEncoder model = load(path);
    EXPECT_EQ(model.encode(engine, texts).hidden.shape()[1], 4);  // whoever pools himself may
    if (c.says == nullptr) {
      EXPECT_TRUE(test::same_bits(model.embed(engine, texts).view(), mean.view())) << c.json;
      continue;
    }
    const auto refusal = [&](auto call) {
      try {
        call();
      } catch (const std::invalid_argument& error) {
        return std::string(error.what());
      }
      return std::string("nothing");
    };
    const std::int64_t ids[] = {2, 5, 3};
    EXPECT_TRUE(contains(refusal([&] { (void)model.embed(engine, texts); }), c.says));
    EXPECT_TRUE(contains(refusal([&] {
                           (void)model.embed(engine, View<const std::int64_t, 2>(ids, {1, 3}));
                         }),
                         c.says));
    EXPECT_TRUE(contains(refusal([&] { model.save(folder.path("copy")); }), c.says));
    EXPECT_FALSE(std::filesystem::exists(folder.path("copy")));
  }
  std::filesystem::remove_all(path + "/2_Dense");
  folder.write("bert/1_Pooling/config.json", R"({"pooling_mode_mean_tokens": "yes"})");
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), "pooling_mode_mean_tokens is neither true nor false"));
}

TEST(ModelFolder, FilesThatCannotBeLookedForAreNamed) {
  const ScratchFolder folder;
  const std::string path = TinyBert().write(folder);
  std::filesystem::create_symlink("tokenizer_config.json", path + "/tokenizer_config.json");
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), "tokenizer_config.json: cannot be looked for"));
}

TEST(ModelFolder, SavingWhereNothingCanBeWritten) {
  const ScratchFolder folder;
  const TextEncoder encoder = load(TinyBert().write(folder));
  folder.write("file", "in the way");
  EXPECT_TRUE(
      contains(file_error([&] { encoder.save(folder.path("file/below")); }), "file/below: cannot make the folder"));
  EXPECT_EQ(folder.read("file"), "in the way");
}

}  // namespace headlight::models::model_folder_test
