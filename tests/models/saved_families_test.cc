// Models of every family, saved and loaded again: the same bits, under the names of the files that they came from.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/gguf_model.h"
#include "models/golden_family.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/refusal.h"

namespace headlight::models::saved_families_test {

using nlohmann::json;
using test::contains;
using test::golden_families;
using test::golden_family;
using test::GoldenFamily;
using test::ScratchFolder;

constexpr const char* kWeights = "/model.safetensors";

const std::vector<std::string>& texts() {
  static const std::vector<std::string> all{"the city of New York", "long streets", ""};
  return all;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What a model gives: its vectors, and where it has a head, scores.
void expect_same(const TextEncoder& found, const TextEncoder& expected) {
  Engine engine({.threads = 1});
  EXPECT_EQ(found.options().model_type, expected.options().model_type);
  EXPECT_EQ(found.options().max_length, expected.options().max_length);
  EXPECT_EQ(found.options().embed_max_length, expected.options().embed_max_length);
  for (const std::string& text : texts()) EXPECT_EQ(found.tokenize(text), expected.tokenize(text));
  EXPECT_TRUE(test::same_bits(found.embed(engine, texts()), expected.embed(engine, texts())));
  ASSERT_EQ(found.score_width(), expected.score_width());
  if (found.score_width() == 0) return;
  const std::vector<TextPair> pairs{{"a city", "New York"}, {"the streets", "are long"}};
  EXPECT_TRUE(test::same_bits(found.score(engine, pairs), expected.score(engine, pairs)));
}

void expect_same_tensors(const std::string& found_path, const std::string& expected_path) {
  SafetensorsFile found(found_path), expected(expected_path);
  std::set<std::string> names;
  for (const SafetensorsEntry& entry : expected.tensors()) {
    names.insert(entry.name);
    const SafetensorsEntry* const other = found.find(entry.name);
    if (entry.name.find("pooler") != std::string::npos && other == nullptr) continue;  // of no vector, nor score
    ASSERT_NE(other, nullptr) << entry.name;
    EXPECT_EQ(other->dtype, entry.dtype) << entry.name;
    EXPECT_EQ(other->shape, entry.shape) << entry.name;
    EXPECT_TRUE(std::equal(other->bytes.begin(), other->bytes.end(), entry.bytes.begin(), entry.bytes.end()))
        << entry.name;
  }
  for (const SafetensorsEntry& entry : found.tensors()) EXPECT_TRUE(names.contains(entry.name)) << entry.name;
}

TEST(SavedFamilies, AreTheSameModelsOfTheSameTensors) {
  const ScratchFolder scratch;
  for (const GoldenFamily& family : golden_families()) {
    SCOPED_TRACE(family.name + (family.scores ? " with scores" : ""));
    const std::string folder = family.write(scratch.path("family"));
    const TextEncoder model = load(folder);
    model.save(scratch.path("saved"));  // over the files of another family
    expect_same(load(scratch.path("saved")), model);
    expect_same_tensors(scratch.path("saved") + kWeights, folder + kWeights);
    const json config = json::parse(bytes_of(scratch.path("saved") + "/config.json"));
    EXPECT_EQ(config, family.described.at("config"));
  }
}

TEST(SavedFamilies, InEveryTypeSavedAgainAreTheSameFile) {
  const ScratchFolder scratch;
  const std::string once = scratch.path("once"), twice = scratch.path("twice");
  for (const GoldenFamily& family : golden_families()) {
    SCOPED_TRACE(family.name + (family.scores ? " with scores" : ""));
    const TextEncoder model = load(family.write(scratch.path("family")));
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8, NumberType::int4}) {
      SCOPED_TRACE(headlight::name(type));
      model.save(once, type);
      const TextEncoder narrow = load(once);
      narrow.save(twice);
      // A head of scores is read as floats, and what was rounded is written as such.
      if (!family.scores) {
        EXPECT_EQ(bytes_of(twice + kWeights), bytes_of(once + kWeights));
      }
      expect_same(load(twice), narrow);
      const TextEncoder packed = load(once, {.precision = type});
      packed.save(twice);
      expect_same(load(twice), narrow);
      if (type == NumberType::float32) expect_same(narrow, model);
    }
  }
}

// Weights that were changed lie in memory, shares of a tensor apart from each other.
TEST(SavedFamilies, SaveWhatWasChanged) {
  const ScratchFolder scratch;
  for (const char* const name : {"roberta", "modernbert", "nomic_bert", "new", "gemma3_text"}) {
    SCOPED_TRACE(name);
    const std::string folder = golden_family(name).write(scratch.path("family"));
    TextEncoder model = load(folder);
    for (Parameter& parameter : model.layer().parameters()) {
      for (float& value : parameter.values) value /= 2;
    }
    model.layer().freeze();
    model.save(scratch.path("saved"));
    expect_same(load(scratch.path("saved")), model);
    SafetensorsFile before(folder + kWeights), after(scratch.path("saved") + kWeights);
    for (const SafetensorsEntry& entry : after.tensors()) {
      const WeightView found = after.float32(entry.name), expected = before.float32(entry.name);
      ASSERT_EQ(found.values.size(), expected.values.size());
      for (std::size_t n = 0; n < found.values.size(); ++n) ASSERT_EQ(found.values[n], expected.values[n] / 2);
    }
  }
}

// Behind a prefix and by older names: the prefix stays, the names are those of today.
TEST(SavedFamilies, KeepThePrefix) {
  const ScratchFolder scratch;
  const GoldenFamily& family = golden_family("roberta");
  const GoldenFamily::Tensors tensors = family.tensors();
  Weights renamed;
  for (const auto& [name, view] : GoldenFamily::views(tensors)) {
    const std::size_t at = name.find("LayerNorm.weight");
    renamed.emplace("roberta." + (at == std::string::npos ? name : name.substr(0, at) + "LayerNorm.gamma"), view);
  }
  const TextEncoder model = load(family.write(scratch.path("family"), {}, renamed));
  model.save(scratch.path("saved"));
  expect_same(load(scratch.path("saved")), model);
  const SafetensorsFile file(scratch.path("saved") + kWeights);
  EXPECT_NE(file.find("roberta.embeddings.LayerNorm.weight"), nullptr);
  EXPECT_EQ(file.find("roberta.embeddings.LayerNorm.gamma"), nullptr);
}

// The type of the weights is no word of config.json, and a tokenizer's files outlive their folder.
TEST(SavedFamilies, OfFoldersThatAreGoneOrWereInMemory) {
  const ScratchFolder scratch;
  json config = golden_family("qwen3").described.at("config");
  config["dtype"] = "bfloat16";
  config["torch_dtype"] = "bfloat16";
  config["rope_scaling"] = nullptr;
  const std::string folder = golden_family("qwen3").write(scratch.path("family"), config);
  scratch.write("family/tokenizer_config.json", R"({"tokenizer_class": "TokenizersBackend", "model_max_length": 20})");
  const std::vector<const char*> names{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"};
  std::vector<std::string> contents;
  for (const char* const name : names) contents.push_back(scratch.read(std::string("family/") + name));
  std::vector<FileInMemory> files;
  for (std::size_t n = 0; n < names.size(); ++n) files.push_back({names[n], std::as_bytes(std::span(contents[n]))});
  const std::filesystem::path listed = "/proc/self/fd";
  const bool counts = std::filesystem::exists(listed);
  const auto descriptors = [&] { return counts ? std::distance(std::filesystem::directory_iterator(listed), {}) : 0; };
  const auto before = descriptors();
  const TextEncoder mapped = load(folder), copied = load("mine", files);
  EXPECT_EQ(descriptors(), before);  // a mapping does without
  std::filesystem::remove_all(folder);
  files.clear();
  contents.clear();
  for (const TextEncoder* const model : {&mapped, &copied}) {
    model->save(scratch.path("saved"));
    expect_same(load(scratch.path("saved")), mapped);
    const json written = json::parse(scratch.read("saved/config.json"));
    EXPECT_FALSE(written.contains("dtype") || written.contains("torch_dtype"));
    EXPECT_TRUE(written.contains("rope_scaling") && written.at("rope_scaling").is_null());
    EXPECT_EQ(json::parse(scratch.read("saved/tokenizer_config.json")).at("model_max_length"), 20);
  }
  mapped.save(scratch.path("saved"));  // over the file that another one of it reads
  expect_same(load(scratch.path("saved")), mapped);
}

// A model out of a GGUF file becomes the folder that it was made from, also where the converter changed tensors: of
// Llama, whose scores are summed in another order out of the file, the bits are those of that folder. Of the weights of
// Gemma's norms the sums with 1 are.
TEST(SavedFamilies, OutOfGgufFiles) {
  const ScratchFolder scratch;
  std::set<std::string> seen;
  for (const test::GgufModel& one : test::gguf_models()) {
    SCOPED_TRACE(one.family->name);
    if (one.family->name == "eurobert with biases") continue;  // whose angles are those of Llama 3
    const TextEncoder model = load(scratch.write("model.gguf", one.writer().file()));
    const std::string folder = one.family->write(scratch.path("family"), one.sayable_config());
    const bool changed = one.architecture.starts_with("gemma") || one.architecture == "llama";
    const TextEncoder before = load(changed ? folder : scratch.path("model.gguf"));
    std::string bytes = one.writer().file();
    const FileInMemory file{"model.gguf", std::as_bytes(std::span(bytes))};
    const TextEncoder copied = load("mine", std::span(&file, 1));
    bytes.clear();
    bytes.shrink_to_fit();
    std::filesystem::remove(scratch.path("model.gguf"));
    for (const TextEncoder* const each : {&model, &copied}) {
      each->save(scratch.path("saved"));
      expect_same(load(scratch.path("saved")), before);
      if (one.architecture == "llama") expect_same_tensors(scratch.path("saved") + kWeights, folder + kWeights);
    }
    seen.insert(one.architecture);
  }
  EXPECT_EQ(seen.size(), 8u);
}

// Frequencies that a tensor divides become those of longrope, which every length divides alike. Of Llama, whose rows
// return into the folder's order, the bits are those of a folder that says so.
TEST(SavedFamilies, OutOfGgufFilesWithFactors) {
  const ScratchFolder scratch;
  std::set<std::string> saved;
  for (const test::GgufModel& one : test::gguf_models()) {
    const std::string& name = one.family->name;
    // Without angles, or with others already.
    if (one.architecture == "bert" || name == "gemma3_text causal" || name == "eurobert with biases") continue;
    SCOPED_TRACE(name);
    json config = one.sayable_config();
    const auto of = [&](const char* key, const char* other) {
      return config.contains(key) ? config.at(key).get<std::int64_t>() : config.at(other).get<std::int64_t>();
    };
    const std::int64_t head_dim =
        config.value("head_dim", of("hidden_size", "n_embd") / of("num_attention_heads", "n_head"));
    std::vector<float> factors(static_cast<std::size_t>(head_dim / 2), 1.0f);
    for (std::size_t n = 0; n < factors.size(); ++n) factors[n] += 0.3f * static_cast<float>(n);
    test::GgufWriter file = one.writer();
    file.floats("rope_freqs.weight", {head_dim / 2}, factors);
    const TextEncoder model = load(scratch.write("model.gguf", file.file()));
    const std::string path = scratch.path("saved " + name);
    if (one.architecture.starts_with("gemma")) {
      EXPECT_TRUE(contains(test::refusal([&] { model.save(path); }),
                           "divides the frequencies of all layers, which no folder of gemma3_text says"));
      EXPECT_FALSE(std::filesystem::exists(path));
      continue;
    }
    model.save(path);
    config["rope_scaling"] = {{"rope_type", "longrope"}, {"factor", 1},
                              {"attention_factor", 1},   {"original_max_position_embeddings", 40},
                              {"short_factor", factors}, {"long_factor", factors}};
    const TextEncoder folder = load(one.family->write(scratch.path("family"), config));
    expect_same(load(path), one.architecture == "llama" ? folder : model);
    saved.insert(one.architecture);
    // And the file's factors are at work: with them it is the folder's model, but for the order of sums.
    Engine engine({.threads = 1});
    const Tensor<float, 2> found = model.embed(engine, texts()), expected = folder.embed(engine, texts());
    ASSERT_EQ(found.shape(), expected.shape());
    for (std::int64_t n = 0; n < found.size(); ++n) ASSERT_NEAR(found.data()[n], expected.data()[n], 1e-4) << n;
  }
  EXPECT_EQ(saved, (std::set<std::string>{"eurobert", "llama", "modern-bert", "nomic-bert", "qwen3"}));
}

// What no converter gives: 1 + w, of which there is no w.
TEST(SavedFamilies, OutOfGgufFilesWithNormsOfNoConverter) {
  const ScratchFolder scratch;
  for (const test::GgufModel& one : test::gguf_models()) {
    if (one.architecture != "gemma3") continue;
    test::GgufWriter file = one.writer_without_tensors();
    for (auto [name, tensor] : one.tensors()) {
      if (name == "output_norm.weight") tensor.second[3] = 0x1p-30f;
      file.floats(name, tensor.first, tensor.second);
    }
    const TextEncoder model = load(scratch.write("model.gguf", file.file()));
    EXPECT_TRUE(contains(test::refusal([&] { model.save(scratch.path("refused")); }), "'norm.weight' holds",
                         "which is no float32's sum with 1"));
  }
}

}  // namespace headlight::models::saved_families_test
