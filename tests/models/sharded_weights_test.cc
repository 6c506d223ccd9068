// Weights in several files, as an index says which tensor lies in which.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/scratch_folder.h"
#include "models/tensor_files/safetensors_index.h"
#include "models/tiny_bert.h"
#include "support/compare.h"

namespace headlight::models::sharded_weights_test {

using test::contains;
using test::file_error;
using test::same_bits;
using test::ScratchFolder;
using test::TinyBert;

const std::vector<float> kOne{1, 2, 3}, kTwo{4, 5};
constexpr const char* kIndex = "model.safetensors.index.json";

// Two shards, "a" with the tensor "one" and "b" with "two", and what an index says of them.
struct TwoShards {
  explicit TwoShards(std::string_view index) {
    write_safetensors(folder.path("a.safetensors"), {{"one", {{3}, kOne}}}, {{"of", "a"}});
    write_safetensors(folder.path("b.safetensors"), {{"two", {{2}, kTwo}}});
    path = folder.write(kIndex, index);
  }
  std::string refusal() const {
    return file_error([&] { (void)SafetensorsFile::sharded(path); });
  }

  ScratchFolder folder;
  std::string path;
};

TEST(ShardedWeights, AreReadAsOneFile) {
  const TwoShards shards(
      R"({"metadata":{"total_size":20},"weight_map":{"one":"a.safetensors","two":"b.safetensors"}})");
  WeightView one, two;
  {
    SafetensorsFile file = SafetensorsFile::sharded(shards.path);
    EXPECT_EQ(file.path(), shards.path);
    EXPECT_EQ(file.tensors().size(), 2u);
    EXPECT_EQ(file.metadata().at("of"), "a");
    EXPECT_EQ(file.weights().size(), 2u);
    one = file.float32("one");
    two = file.stored("two");
    EXPECT_TRUE(contains(file_error([&] { (void)file.float32("three"); }), shards.path, "lacks the tensor 'three'"));
  }
  EXPECT_TRUE(test::holds(one.values, {1, 2, 3})) << "its owner keeps the file";
  EXPECT_TRUE(test::holds(two.values, {4, 5}));
}

TEST(ShardedWeights, RefusalsNameTheFileAndTheKey) {
  const std::string start = R"({"weight_map":{"one":"a.safetensors",)";
  EXPECT_TRUE(contains(TwoShards("{}").refusal(), kIndex, "weight_map", "is missing"));
  EXPECT_TRUE(contains(TwoShards(R"({"weight_map":{}})").refusal(), kIndex, "weight_map", "is empty"));
  EXPECT_TRUE(contains(TwoShards(R"({"weight_map":[]})").refusal(), kIndex, "weight_map"));
  EXPECT_TRUE(contains(TwoShards(R"({"metadata":3,"weight_map":{"one":"a.safetensors"}})").refusal(), "metadata"));
  EXPECT_TRUE(contains(TwoShards(R"({"weights":1})").refusal(), kIndex, "weights", "is unknown"));
  EXPECT_TRUE(contains(TwoShards("[").refusal(), kIndex));
  EXPECT_TRUE(
      contains(TwoShards(start + R"("two":2}})").refusal(), kIndex, "weight_map.two", "is 2, expected the plain"));
  EXPECT_TRUE(contains(TwoShards(start + R"("one":"b.safetensors"}})").refusal(), kIndex, "one"));
  // Nothing leads out of the folder.
  const std::string longest(256, 'x');
  for (const std::string name : {"", ".", "..", "../b.safetensors", "/etc/passwd", "x/../b.safetensors", "b\\\\c",
                                 "b\\u0000", "b\\n", longest.c_str()}) {
    EXPECT_TRUE(contains(TwoShards(start + R"("two":")" + name + R"("}})").refusal(), kIndex, "weight_map.two",
                         "expected the plain name of a file in this folder"))
        << name;
  }
  // Every tensor lies where the index says, and nowhere else.
  EXPECT_TRUE(contains(TwoShards(start + R"("two":"c.safetensors"}})").refusal(), "c.safetensors", "cannot open"));
  EXPECT_TRUE(contains(TwoShards(start + R"("two":"a.safetensors"}})").refusal(), "a.safetensors",
                       "lacks the tensor 'two', which the index says is in it"));
  EXPECT_TRUE(contains(TwoShards(start + R"("two":"b.safetensors","three":"b.safetensors"}})").refusal(),
                       "b.safetensors", "lacks the tensor 'three'"));
  TwoShards both(start + R"("two":"b.safetensors"}})");
  write_safetensors(both.folder.path("b.safetensors"), {{"one", {{3}, kOne}}, {"two", {{2}, kTwo}}});
  EXPECT_TRUE(contains(both.refusal(), "b.safetensors", "holds the tensor 'one', which the index says is in 'a.safet"));
  write_safetensors(both.folder.path("b.safetensors"), {{"four", {{3}, kOne}}, {"two", {{2}, kTwo}}});
  EXPECT_TRUE(contains(both.refusal(), "b.safetensors", "holds the tensor 'four', which the index says is nowhere"));
}

TEST(ShardedWeights, OfOneNameInTwoFilesAreRefused) {
  const ScratchFolder folder;
  std::vector<SafetensorsFile> shards;
  for (const char* name : {"a", "b"}) {
    write_safetensors(folder.path(name), {{"one", {{3}, kOne}}});
    shards.emplace_back(folder.path(name));
  }
  EXPECT_TRUE(contains(file_error([&] { (void)SafetensorsFile("both", std::move(shards)); }), folder.path("b"),
                       "holds the tensor 'one', which another file holds, too"));
}

// A model's folder, and the same in memory.
TEST(ShardedWeights, OfAModelGiveItsVectors) {
  const ScratchFolder folder;
  Engine engine({.threads = 1});
  const std::vector<std::string> texts{"a b", "", "q é"};
  const std::string path = TinyBert().write(folder);
  const auto expected = load(path).embed(engine, texts);

  SafetensorsFile whole(path + "/model.safetensors");
  std::vector<Weights> parts(3);
  nlohmann::json map;
  std::size_t number = 0;
  for (const auto& [name, weight] : whole.weights()) {
    const std::size_t part = number++ % parts.size();
    parts[part].emplace(name, weight);
    map[name] = "shard-" + std::to_string(part) + ".safetensors";
  }
  for (std::size_t part = 0; part < parts.size(); ++part) {
    write_safetensors(path + "/shard-" + std::to_string(part) + ".safetensors", parts[part]);
  }
  const std::string index = nlohmann::json{{"weight_map", map}}.dump();
  // Where the one file is there, the index is not read.
  folder.write("bert/model.safetensors.index.json", "broken");
  EXPECT_TRUE(same_bits(load(path).embed(engine, texts), expected));
  folder.write("bert/model.safetensors.index.json", index);
  std::filesystem::remove(path + "/model.safetensors");
  EXPECT_TRUE(same_bits(load(path).embed(engine, texts), expected));

  std::map<std::string, std::string> texts_of;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    texts_of[name] = folder.read("bert/" + name);
  }
  std::vector<FileInMemory> files;
  for (const auto& [name, text] : texts_of) files.push_back({name, std::as_bytes(std::span(text))});
  EXPECT_TRUE(same_bits(load("memory", files).embed(engine, texts), expected));

  std::filesystem::remove(path + "/model.safetensors.index.json");
  EXPECT_TRUE(contains(file_error([&] { (void)load(path); }), "holds no model.safetensors and no model."));
}

}  // namespace headlight::models::sharded_weights_test
