// Heads of scores in GGUF files: the bits of the folder that they were made from.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/gguf_model.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::models::gguf_score_test {

using nlohmann::json;
using test::contains;
using test::file_error;
using test::GgufModel;
using test::GgufWriter;
using test::GoldenFamily;
using test::ScratchFolder;

const GgufModel& named(const std::string& family) {
  for (const GgufModel& model : test::gguf_models()) {
    if (model.family->name == family) return model;
  }
  throw std::runtime_error("no GGUF model of " + family);
}

// A tensor of a head: its name in the folder, in the GGUF file, and its shape.
struct HeadTensor {
  std::string folder, gguf;
  std::vector<std::int64_t> shape;
};

GoldenFamily::Tensors drawn(const std::vector<HeadTensor>& head) {
  test::Random random(5);
  GoldenFamily::Tensors tensors;
  for (const HeadTensor& one : head) {
    std::int64_t count = 1;
    for (const std::int64_t extent : one.shape) count *= extent;
    std::vector<float> values;
    for (std::int64_t n = 0; n < count; ++n) values.push_back(random.normal());
    tensors.emplace(one.folder, std::pair(one.shape, std::move(values)));
  }
  return tensors;
}

// The file with that head and pooling_type 4.
std::string file_of(const GgufModel& model, const std::vector<HeadTensor>& head) {
  GgufWriter writer = model.writer();
  const GoldenFamily::Tensors tensors = drawn(head);
  for (const HeadTensor& one : head) writer.floats(one.gguf, one.shape, tensors.at(one.folder).second);
  std::string bytes = writer.file();
  const std::string key = model.architecture + ".pooling_type";
  bytes.at(bytes.find(key) + key.size() + sizeof(std::uint32_t)) = 4;
  return bytes;
}

std::string folder_of(const GgufModel& model, const std::vector<HeadTensor>& head, const ScratchFolder& scratch,
                      const json& changes) {
  json config = model.sayable_config();
  config.merge_patch(changes);
  GoldenFamily::Tensors tensors = model.family->tensors(), own = drawn(head);
  tensors.insert(own.begin(), own.end());
  const std::string folder = model.family->write(scratch.path("family"), config, GoldenFamily::views(tensors));
  if (model.architecture == "modern-bert") {  // whose pairs have one token between them, and not RoBERTa's two
    json tokenizer = model.family->tokenizer_json();
    const json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
               other = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}},
               end = {{"SpecialToken", {{"id", "<|endoftext|>"}, {"type_id", 0}}}};
    tokenizer["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {end, text, end}},
        {"pair", {end, text, end, other, end}},
        {"special_tokens",
         {{"<|endoftext|>", {{"id", "<|endoftext|>"}, {"ids", {420}}, {"tokens", {"<|endoftext|>"}}}}}}};
    scratch.write("family/tokenizer.json", tokenizer.dump());
  }
  return folder;
}

const std::vector<HeadTensor> kRoberta{{"classifier.dense.weight", "cls.weight", {32, 32}},
                                       {"classifier.dense.bias", "cls.bias", {32}},
                                       {"classifier.out_proj.weight", "cls.output.weight", {1, 32}},
                                       {"classifier.out_proj.bias", "cls.output.bias", {1}}};
const std::vector<HeadTensor> kModernBert{{"head.dense.weight", "cls.weight", {32, 32}},
                                          {"head.norm.weight", "cls.norm.weight", {32}},
                                          {"classifier.weight", "cls.output.weight", {2, 32}},
                                          {"classifier.bias", "cls.output.bias", {2}}};

TEST(GgufScores, HaveTheBitsOfTheFolder) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<TextPair> pairs{{"a city", "New York"}, {"the streets", "are long"}, {"", "a"}};
  const struct {
    const char* family;
    const std::vector<HeadTensor>& head;
    json changes;
  } cases[] = {
      {"xlm-roberta", kRoberta, {{"architectures", {"XLMRobertaForSequenceClassification"}}}},
      {"modernbert",
       kModernBert,
       {{"architectures", {"ModernBertForSequenceClassification"}}, {"classifier_pooling", "mean"}}},
  };
  for (const auto& [family, head, changes] : cases) {
    SCOPED_TRACE(family);
    const TextEncoder expected = load(folder_of(named(family), head, scratch, changes));
    const TextEncoder found = load(scratch.write("model.gguf", file_of(named(family), head)));
    ASSERT_EQ(found.score_width(), expected.score_width());
    EXPECT_TRUE(test::same_bits(found.score(engine, pairs), expected.score(engine, pairs)));
    found.save(scratch.path("saved"));
    const TextEncoder saved = load(scratch.path("saved"));
    EXPECT_TRUE(test::same_bits(saved.score(engine, pairs), expected.score(engine, pairs)));
    EXPECT_EQ(saved.options().unknown_keys, expected.options().unknown_keys);
    EXPECT_TRUE(found.options().unknown_keys.empty()) << testing::PrintToString(found.options().unknown_keys);
    const std::vector<std::string> text{"a"};
    EXPECT_TRUE(contains(test::refusal([&] { static_cast<void>(found.embed(engine, text)); }), "pooling_type is 4"));
  }
}

// A head that its folder would have more layers or biases of.
TEST(GgufScores, NoFolderIsWrittenWithoutThem) {
  const ScratchFolder scratch;
  const struct {
    const char* family;
    std::vector<HeadTensor> head;
  } cases[] = {{"xlm-roberta", {kRoberta[2], kRoberta[3]}},
               {"xlm-roberta", {kRoberta[0], kRoberta[2], kRoberta[3]}},
               {"modernbert", {kModernBert[0], kModernBert[2], kModernBert[3]}},
               {"qwen3", {{"score.weight", "cls.output.weight", {2, 32}}}}};
  for (const auto& [family, head] : cases) {
    SCOPED_TRACE(family);
    const TextEncoder model =
        load(scratch.write("model.gguf", file_of(named(family), head)), {.pooling = std::vector{PoolingMode::mean}});
    EXPECT_TRUE(contains(test::refusal([&] { model.save(scratch.path("saved")); }), "the head of scores is of a GGUF"));
  }
}

TEST(GgufScores, WhatIsNotBuiltOrDoesNotFitIsSaid) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const std::vector<TextPair> pair{{"a city", "New York"}};
  const TextEncoder qwen =
      load(scratch.write("model.gguf", file_of(named("qwen3"), {{"score.weight", "cls.output.weight", {2, 32}}})));
  EXPECT_TRUE(contains(test::refusal([&] { static_cast<void>(qwen.score(engine, pair)); }),
                       "scores of the architecture qwen3 are not built"));
  const TextEncoder bare = load(scratch.write("bare.gguf", file_of(named("xlm-roberta"), {kRoberta[2], kRoberta[3]})));
  EXPECT_TRUE(contains(test::refusal([&] { static_cast<void>(bare.score(engine, pair)); }),
                       "bare.gguf: lacks the tensor 'cls.weight', which the head of scores needs"));
  std::vector<HeadTensor> wrong = kRoberta;
  wrong[2].shape = {1, 31};
  EXPECT_TRUE(contains(
      file_error([&] { static_cast<void>(load(scratch.write("wrong.gguf", file_of(named("xlm-roberta"), wrong)))); }),
      "tensor 'cls.output.weight' has shape [1, 31], expected rows of 32"));
  wrong = kRoberta;
  wrong[1].shape = {31};
  EXPECT_TRUE(contains(
      file_error([&] { static_cast<void>(load(scratch.write("wrong.gguf", file_of(named("xlm-roberta"), wrong)))); }),
      "tensor 'cls.bias' has shape [31], expected [32]"));
}

}  // namespace headlight::models::gguf_score_test
