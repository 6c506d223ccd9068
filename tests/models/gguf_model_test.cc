// Models out of GGUF files: the same bits as the folder that they were made from, and what is not built is refused by
// its key.
#include "models/gguf_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "files/json_value.h"
#include "headlight/layers/network.h"
#include "headlight/models/gguf.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "headlight/storage_types.h"
#include "models/families/family.h"
#include "models/families/family_weights.h"
#include "models/scratch_folder.h"
#include "support/compare.h"

namespace headlight::models::gguf_model_test {

using test::contains;
using test::file_error;
using test::gguf_models;
using test::GgufModel;
using test::GgufWriter;
using test::ScratchFolder;

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all{"a city", "", "the streets are long and the lights are many",
                                            "New  York é <mask>",
                                            "What is café society? [MASK] <|endoftext|> \xE4\xB8\xAD\xE6\x96\x87"};
  return all;
}

const GgufModel& named(const std::string& family) {
  for (const GgufModel& model : gguf_models()) {
    if (model.family->name == family) return model;
  }
  throw std::runtime_error("no GGUF model of " + family);
}

TEST(GgufModels, HaveTheBitsOfTheFolder) {
  const ScratchFolder scratch;
  std::set<std::string> seen;
  Engine engine({.threads = 2});
  for (const GgufModel& model : gguf_models()) {
    // Angles of Llama 3, and scores that are summed in another order.
    if (model.family->name == "eurobert with biases" || model.architecture == "llama") continue;
    SCOPED_TRACE(model.family->name);
    const TextEncoder folder = load(model.family->write(scratch.path("family"), model.sayable_config()));
    const TextEncoder file = load(scratch.write("model.gguf", model.writer().file()));
    EXPECT_TRUE(file.options().unknown_keys.empty()) << testing::PrintToString(file.options().unknown_keys);
    EXPECT_EQ(file.options().encoder.max_positions, folder.options().encoder.max_positions);
    EXPECT_EQ(file.options().encoder.width, folder.options().encoder.width);
    const HiddenStates expected = folder.encode(engine, texts()), found = file.encode(engine, texts());
    EXPECT_EQ(found.ids, expected.ids);
    EXPECT_TRUE(test::same_bits(found.hidden, expected.hidden));
    EXPECT_TRUE(test::same_bits(file.embed(engine, texts()), folder.embed(engine, texts())));
    seen.insert(model.architecture);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"bert", "eurobert", "gemma-embedding", "gemma3", "modern-bert", "nomic-bert",
                                         "qwen3"}));
}

// By ggml's own package, in float16: as the folder whose matrices are written in that.
TEST(GgufModels, OfGgmlsPackageHaveTheBitsOfTheFolder) {
  const ScratchFolder scratch;
  const GgufModel& model = named("qwen3");
  const std::string folder = model.family->write(scratch.path("family"));
  const test::GoldenFamily::Tensors tensors = model.family->tensors();
  write_safetensors(folder + "/model.safetensors", test::GoldenFamily::views(tensors), {}, NumberType::float16);
  Engine engine({.threads = 1});
  const TextEncoder expected = load(folder, {.pooling = std::vector{PoolingMode::last_token}}),
                    found = load(test::golden_path("gguf_qwen3.gguf"));
  EXPECT_TRUE(found.options().unknown_keys.empty()) << testing::PrintToString(found.options().unknown_keys);
  EXPECT_EQ(found.options().model_type, "qwen3");
  EXPECT_EQ(found.options().pooling, std::vector{PoolingMode::last_token});
  EXPECT_TRUE(test::same_bits(found.embed(engine, texts()), expected.embed(engine, texts())));
}

// Every number of a tensor with rows of 32 as blocks of Q8_0; what it then is stands in `values`.
std::string as_q8_0(std::vector<float>& values) {
  std::string blocks;
  for (std::size_t at = 0; at < values.size(); at += 32) {
    float most = 0;
    for (std::size_t n = at; n < at + 32; ++n) most = std::max(most, std::abs(values[n]));
    const Float16 scale(most / 127);
    const auto d = static_cast<float>(scale);
    blocks.append(reinterpret_cast<const char*>(&scale.bits), sizeof scale.bits);
    for (std::size_t n = at; n < at + 32; ++n) {
      const auto q = static_cast<std::int8_t>(std::clamp(std::nearbyint(values[n] / d), -127.0f, 127.0f));
      blocks += static_cast<char>(q);
      values[n] = d * static_cast<float>(q);
    }
  }
  return blocks;
}

TEST(GgufModels, InBlocksHaveTheBitsOfTheirNumbers) {
  const ScratchFolder scratch;
  const GgufModel& model = named("nomic_bert");
  GgufWriter blocks = model.writer_without_tensors(), floats = model.writer_without_tensors();
  for (auto [name, tensor] : model.tensors()) {
    const bool in_blocks = tensor.first.size() == 2 && tensor.first[1] == 32;
    const std::string stored = in_blocks ? as_q8_0(tensor.second) : "";
    if (in_blocks) {
      blocks.tensor(name, tensor.first, 8, stored);
    } else {
      blocks.floats(name, tensor.first, tensor.second);
    }
    floats.floats(name, tensor.first, tensor.second);
  }
  Engine engine({.threads = 2});
  const TextEncoder one = load(scratch.write("blocks.gguf", blocks.file())),
                    other = load(scratch.write("floats.gguf", floats.file()));
  // They are read where they lie, also when the file has no name any more.
  std::filesystem::remove(scratch.path("blocks.gguf"));
  EXPECT_TRUE(test::same_bits(one.encode(engine, texts()).hidden, other.encode(engine, texts()).hidden));
}

// Llama's own rows stand in another order, in which scores are summed; with factors of 1, the tensor of factors changes
// nothing.
TEST(GgufModels, OfLlamaAreNearTheirFolder) {
  const ScratchFolder scratch;
  const GgufModel& model = named("llama");
  GgufWriter file = model.writer();
  const auto dim = model.config().at("head_dim").get<std::int64_t>();
  file.floats("rope_freqs.weight", {dim / 2}, std::vector<float>(static_cast<std::size_t>(dim / 2), 1.0f));
  const TextEncoder folder = load(model.family->write(scratch.path("family")));
  const TextEncoder found = load(scratch.write("llama.gguf", file.file()));
  EXPECT_EQ(found.options().model_type, "llama");
  Engine engine({.threads = 1});
  const HiddenStates expected = folder.encode(engine, texts()), states = found.encode(engine, texts());
  EXPECT_EQ(states.ids, expected.ids);
  for (std::int64_t n = 0; n < expected.hidden.size(); ++n) {
    ASSERT_NEAR(states.hidden.data()[n], expected.hidden.data()[n], 1e-4) << n;
  }
}

TEST(GgufModels, AreFoundInAFolderAndInMemory) {
  const ScratchFolder scratch;
  const std::string bytes = named("nomic_bert").writer().file();
  const std::string path = scratch.write("folder/model.gguf", bytes);
  Engine engine({.threads = 1});
  const Tensor<float, 2> expected = load(path).embed(engine, texts());
  EXPECT_TRUE(test::same_bits(load(scratch.path("folder")).embed(engine, texts()), expected));
  TextEncoder from_memory = [&] {
    const std::string copy = bytes;
    const FileInMemory file{"model.gguf", std::as_bytes(std::span(copy))};
    return load("memory", std::span(&file, 1));
  }();
  EXPECT_TRUE(test::same_bits(from_memory.embed(engine, texts()), expected));
  scratch.write("folder/other.gguf", bytes);
  EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(scratch.path("folder"))); }), "folder",
                       "holds several GGUF files, 'model.gguf' and 'other.gguf'"));
  scratch.write("folder/config.json", "{}");
  EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(scratch.path("folder"))); }), "model.safetensors"));
}

// A GGUF model of BERT with a change of its file.
std::string refusal(const ScratchFolder& scratch, const std::string& family,
                    const std::function<void(GgufWriter&)>& change) {
  GgufWriter file = named(family).writer();
  change(file);
  return file_error([&] { static_cast<void>(load(scratch.write("refused.gguf", file.file()))); });
}

TEST(GgufModels, WhatIsNotBuiltIsRefusedByItsKey) {
  const ScratchFolder scratch;
  const auto with = [&](const std::string& family, const auto& change) { return refusal(scratch, family, change); };
  EXPECT_TRUE(
      contains(file_error([&] { static_cast<void>(load(scratch.write("m.gguf", GgufWriter("mamba").file()))); }),
               "m.gguf: general.architecture is 'mamba', expected one of bert, nomic-bert"));
  EXPECT_TRUE(
      contains(file_error([&] { static_cast<void>(load(scratch.write("m.gguf", GgufWriter("qwen3").file()))); }),
               "qwen3.embedding_length is missing"));
  GgufWriter many("qwen3");
  many.integer("qwen3.embedding_length", 8);
  many.integer("qwen3.block_count", 1000);
  EXPECT_TRUE(contains(file_error([&] { static_cast<void>(load(scratch.write("m.gguf", many.file()))); }),
                       "qwen3.block_count is 1000, expected at most as many as there are tensors, 0"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.integer("qwen3.expert_count", 8); }),
                       "qwen3.expert_count is 8, expected 0"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.integer("qwen3.rope.dimension_count", 6); }),
                       "qwen3.rope.dimension_count is 6, expected 12"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.number("qwen3.attn_logit_softcapping", 30); }),
                       "qwen3.attn_logit_softcapping is not 0"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.flag("qwen3.attention.causal", false); }),
                       "qwen3.attention.causal is false"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.text("qwen3.rope.scaling.type", "longrope"); }),
                       "qwen3.rope.scaling.type is 'longrope', expected none, linear or yarn"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.flag("qwen3.use_parallel_residual", true); }),
                       "qwen3.use_parallel_residual is true"));
  EXPECT_TRUE(contains(with("qwen3",
                            [](GgufWriter& f) {
                              f.floats("rope_freqs.weight", {3}, {1, 1, 1});
                            }),
                       "tensor 'rope_freqs.weight' is not that of 6 positive numbers"));
  EXPECT_TRUE(contains(with("gemma3_text causal",
                            [](GgufWriter& f) {
                              f.floats("rope_freqs.weight", {6}, {1, 1, 1, 1, 1, 1});
                            }),
                       "gemma3.rope.scaling.type is 'linear' beside the tensor 'rope_freqs.weight'"));
  EXPECT_TRUE(contains(with("qwen3",
                            [](GgufWriter& f) {
                              f.floats("blk.0.attn_sinks.weight", {4}, {1, 1, 1, 1});
                            }),
                       "holds the tensor 'blk.0.attn_sinks.weight', which its metadata does not ask for"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.integer("split.count", 2); }), "split.no is missing"));
  EXPECT_TRUE(contains(with("nomic_bert", [](GgufWriter& f) { f.flag("tokenizer.ggml.add_eos_token", false); }),
                       "tokenizer.ggml.add_eos_token is false"));
  EXPECT_TRUE(contains(
      with("bert with another tokenizer", [](GgufWriter& f) { f.flag("tokenizer.ggml.add_space_prefix", false); }),
      "tokenizer.ggml.add_space_prefix is false"));
  EXPECT_TRUE(contains(with("qwen3", [](GgufWriter& f) { f.flag("tokenizer.ggml.normalizer.lowercase", true); }),
                       "tokenizer.ggml.normalizer.lowercase is true"));
  EXPECT_TRUE(contains(
      with("bert with another tokenizer", [](GgufWriter& f) { f.flag("tokenizer.ggml.normalizer.nfc", true); }),
      "tokenizer.ggml.normalizer.nfc is true"));
  // What only vectors need, and what nobody knows.
  GgufWriter file = named("qwen3").writer();
  file.integer("qwen3.of_tomorrow", 1);
  file.integer("split.no", 0);
  file.text("quantize.imatrix.file", "m.dat");
  const TextEncoder model = load(scratch.write("model.gguf", file.file()));
  EXPECT_EQ(model.options().unknown_keys, std::vector{scratch.path("model.gguf") + ": qwen3.of_tomorrow"});
}

TEST(GgufModels, NormalisersAreThoseOfTheirKeys) {
  const ScratchFolder scratch;
  const auto ids = [&](const std::string& family, const std::string& text, const auto& change) {
    GgufWriter file = named(family).writer();
    change(file);
    return load(scratch.write("model.gguf", file.file())).tokenize(text);
  };
  const auto nothing = [](GgufWriter&) {};
  const auto cased = [](GgufWriter& file) { file.flag("tokenizer.ggml.normalizer.lowercase", false); };
  EXPECT_EQ(ids("nomic_bert", "The city", nothing), ids("nomic_bert", "the city", nothing));
  EXPECT_NE(ids("nomic_bert", "The city", cased), ids("nomic_bert", "the city", cased));
  const auto accents = [](GgufWriter& file) { file.flag("tokenizer.ggml.normalizer.strip_accents", false); };
  EXPECT_EQ(ids("nomic_bert", "c\u00EDty", nothing), ids("nomic_bert", "city", nothing));
  EXPECT_NE(ids("nomic_bert", "c\u00EDty", accents), ids("nomic_bert", "city", accents));
  const auto composed = [](GgufWriter& file) { file.flag("tokenizer.ggml.normalizer.nfc", true); };
  EXPECT_NE(ids("qwen3", "e\u0301", nothing), ids("qwen3", "\u00E9", nothing));
  EXPECT_EQ(ids("qwen3", "e\u0301", composed), ids("qwen3", "\u00E9", composed));
}

// Keys of a writer that has them already are refused by the format; so these models are written anew.
TEST(GgufModels, OtherTokenizersAreRefusedByTheirNames) {
  const ScratchFolder scratch;
  const auto with = [&](const char* model, const char* pre) {
    GgufModel changed = named("qwen3");
    GgufWriter file = changed.writer_without_tokenizer();
    file.text("tokenizer.ggml.model", model);
    if (pre[0] != '\0') file.text("tokenizer.ggml.pre", pre);
    file.texts("tokenizer.ggml.tokens", {"a", "b"});
    return file_error([&] { static_cast<void>(load(scratch.write("refused.gguf", file.file()))); });
  };
  EXPECT_TRUE(contains(with("rwkv", ""), "tokenizer.ggml.model is 'rwkv', expected bert, gpt2, llama or t5"));
  EXPECT_TRUE(contains(with("gpt2", "viking"), "tokenizer.ggml.pre is 'viking', expected one of gpt-2"));
  EXPECT_TRUE(contains(with("gpt2", ""), "tokenizer.ggml.pre is 'default'"));
  EXPECT_TRUE(contains(with("llama", ""), "tokenizer.ggml.scores is missing"));
  EXPECT_TRUE(contains(with("t5", ""), "tokenizer.ggml.scores is missing"));
}

}  // namespace headlight::models::gguf_model_test
