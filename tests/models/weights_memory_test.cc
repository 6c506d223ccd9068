// Weights of a large file take the memory of their panels, and no more on the way there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "headlight/layers/linear.h"
#include "headlight/models/safetensors.h"
#include "headlight/models/text_encoder.h"
#include "models/scratch_folder.h"
#include "support/memory_limit.h"
#include "support/process_status.h"
#include "support/quick.h"
#include "support/workers.h"

namespace headlight::models::weights_memory_test {

using test::ScratchFolder;

// Beside panels: rows on their way, a few at a time for each worker, and what lists and the allocator take.
constexpr std::size_t kMore = std::size_t{24} << 20;

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape, std::uint64_t begin,
                  std::uint64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// A folder of Qwen3 in int4, whose weights lie in two files and take no room on a disk.
struct SparseModel {
  std::int64_t width, layers, heads, feed_forward, vocabulary;

  // All numbers of matrices.
  [[nodiscard]] std::int64_t weights() const {
    return layers * (4 * width * width + 3 * width * feed_forward) + vocabulary * width;
  }

  [[nodiscard]] std::string write(const ScratchFolder& folder) const {
    using std::to_string;
    folder.write("model/config.json",
                 R"({"model_type":"qwen3","tokenizer_class":"PreTrainedTokenizerFast","hidden_size":)" +
                     to_string(width) + R"(,"num_hidden_layers":)" + to_string(layers) + R"(,"num_attention_heads":)" +
                     to_string(heads) + R"(,"head_dim":)" + to_string(width / heads) + R"(,"intermediate_size":)" +
                     to_string(feed_forward) + R"(,"vocab_size":)" + to_string(vocabulary) +
                     R"(,"max_position_embeddings":512})");
    folder.write(
        "model/tokenizer.json",
        R"({"added_tokens":[],"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{"type":"BPE","unk_token":"u","vocab":{"u":0,"a":1},"merges":[]}})");
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> first{{"embed_tokens", {vocabulary, width}},
                                                                         {"norm", {width}}};
    std::vector<std::pair<std::string, std::vector<std::int64_t>>> second;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      auto& shard = layer % 2 == 0 ? first : second;
      const std::string prefix = "layers." + to_string(layer) + ".";
      const std::int64_t head_dim = width / heads;
      for (const char* one : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
        shard.push_back({prefix + "self_attn." + one, {width, width}});
      }
      for (const char* one : {"q_norm", "k_norm"}) shard.push_back({prefix + "self_attn." + one, {head_dim}});
      for (const char* one : {"gate_proj", "up_proj"}) shard.push_back({prefix + "mlp." + one, {feed_forward, width}});
      shard.push_back({prefix + "mlp.down_proj", {width, feed_forward}});
      for (const char* one : {"input_layernorm", "post_attention_layernorm"}) shard.push_back({prefix + one, {width}});
    }
    std::string index;
    write_shard(folder, "1.safetensors", first, index);
    write_shard(folder, "2.safetensors", second, index);
    folder.write("model/model.safetensors.index.json", "{\"weight_map\":{" + index + "}}");
    return folder.path("model");
  }

 private:
  using Tensors = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  static void write_shard(const ScratchFolder& folder, const std::string& name, const Tensors& tensors,
                          std::string& index) {
    std::string entries;
    std::uint64_t size = 0;
    std::vector<std::pair<std::uint64_t, std::vector<std::int64_t>>> shapes;  // and where they lie
    const auto add = [&](const std::string& tensor, const std::string& dtype, const std::string& shape,
                         std::int64_t bytes) {
      const std::uint64_t end = size + static_cast<std::uint64_t>(bytes);
      entries += (entries.empty() ? "{" : ",") + entry(tensor, dtype, shape, size, end);
      index += (index.empty() ? "\"" : ",\"") + tensor + "\":\"" + name + "\"";
      size = end;
    };
    for (const auto& [tensor, shape] : tensors) {
      const std::string weight = tensor + ".weight", rows = std::to_string(shape[0]);
      if (shape.size() == 1) {
        add(weight, "F32", rows, shape[0] * 4);
        continue;
      }
      const std::int64_t columns = shape[1];
      add(weight, "U8", rows + "," + std::to_string(columns / 2), shape[0] * columns / 2);
      add(weight + "_scale", "BF16", rows + "," + std::to_string(columns / 32), shape[0] * columns / 16);
      shapes.emplace_back(size, shape);
      add(weight + "_shape", "I64", "2", 16);
    }
    entries += "}";
    entries.resize((entries.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = entries.size();
    std::string start(8, '\0');
    std::memcpy(start.data(), &length, 8);
    const std::string path = folder.write("model/" + name, start + entries);
    std::filesystem::resize_file(path, 8 + length + size);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    for (const auto& [at, shape] : shapes) {
      file.seekp(static_cast<std::streamoff>(8 + length + at));
      file.write(reinterpret_cast<const char*>(shape.data()), 16);
    }
  }
};

// A file with one weight [rows, columns], all of whose bytes are zeros that take no room on a disk.
std::string sparse_file(const ScratchFolder& folder, NumberType type, std::int64_t rows, std::int64_t columns) {
  const auto side = [](std::int64_t n) { return std::to_string(n); };
  std::string entries;
  std::uint64_t size = 0, shape_at = 0;
  const auto add = [&](const std::string& name, const std::string& dtype, const std::string& shape,
                       std::int64_t bytes) {
    const std::uint64_t end = size + static_cast<std::uint64_t>(bytes);
    entries += (entries.empty() ? "{" : ",") + entry(name, dtype, shape, size, end);
    shape_at = std::exchange(size, end);
  };
  const std::string of_rows = side(rows) + ",";
  if (type == NumberType::int4) {
    add("weight", "U8", of_rows + side(columns / 2), rows * columns / 2);
    add("weight_scale", "BF16", of_rows + side(columns / 32), rows * columns / 16);
    add("weight_shape", "I64", "2", 16);
  } else {
    add("weight", "BF16", of_rows + side(columns), rows * columns * 2);
  }
  entries += "}";
  entries.resize((entries.size() + 7) / 8 * 8, ' ');  // so that numbers lie at even addresses
  const std::uint64_t length = entries.size();
  std::string start(8, '\0');
  std::memcpy(start.data(), &length, 8);
  const std::string path = folder.write("w.safetensors", start + entries);
  std::filesystem::resize_file(path, 8 + length + size);
  if (type == NumberType::int4) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(8 + length + shape_at));
    const std::int64_t shape[] = {rows, columns};
    file.write(reinterpret_cast<const char*>(shape), sizeof shape);
  }
  return path;
}

TEST(WeightsMemory, LoadsAndPacksWithoutACopy) {
  if (!test::kLimits) GTEST_SKIP() << "a sanitizer's addresses";
  const std::int64_t rows = test::quick() ? 2048 : 8192, columns = 8192;
  const ScratchFolder folder;
  Engine engine({.threads = 2});
  test::wait_for_workers(engine);
  for (const auto& [stored, type] : {std::pair{NumberType::int4, NumberType::int4},
                                     {NumberType::int4, NumberType::int8},
                                     {NumberType::int4, NumberType::float32},
                                     {NumberType::bfloat16, NumberType::int4},
                                     {NumberType::bfloat16, NumberType::bfloat16}}) {
    SCOPED_TRACE(std::string(name(stored)) + " as " + std::string(name(type)));
    SafetensorsFile file(sparse_file(folder, stored, rows, columns));
    const std::int64_t before = test::status_bytes("RssAnon"), files = test::status_bytes("RssFile");
    Linear layer(columns, rows, false);
    layer.set_precision(type);
    layer.load({{"weight", file.stored("weight")}});
    EXPECT_LE(test::status_bytes("RssAnon") - before, std::int64_t{4} << 20) << "read where it lies";

    const std::size_t panels = static_cast<std::size_t>(rows * columns) *
                               (type == NumberType::int4   ? 9
                                : type == NumberType::int8 ? 16
                                                           : 16 * bytes_of(type)) /
                               16;
    {
      const test::MemoryLimit limit(panels + kMore);
      layer.reserve(engine, 1);
    }
    EXPECT_LE(test::status_bytes("RssAnon") - before, static_cast<std::int64_t>(panels + kMore));
    EXPECT_LE(test::status_bytes("RssFile") - files, static_cast<std::int64_t>(kMore)) << "the file's pages are let go";
  }
}

// What is lent is written from where it lies, and read a row at a time where another type is asked for.
TEST(WeightsMemory, SavesWithoutACopy) {
  if (!test::kLimits) GTEST_SKIP() << "a sanitizer's addresses";
  const std::int64_t rows = 2048, columns = 8192;
  const ScratchFolder folder;
  for (const NumberType stored : {NumberType::int4, NumberType::bfloat16}) {
    const std::string path = sparse_file(folder, stored, rows, columns);
    SafetensorsFile file(path);
    Linear layer(columns, rows, false);
    layer.load({{"weight", file.stored("weight")}});
    {
      const test::MemoryLimit limit(std::size_t{4} << 20);
      write_safetensors_as_stored(folder.path("as it is"), layer.weights_as_stored());
      write_safetensors(folder.path("bfloat16"), layer.weights_as_stored(), {}, NumberType::bfloat16);
    }
    // But for the header's spaces, the same bytes.
    EXPECT_LE(std::filesystem::file_size(folder.path("as it is")), std::filesystem::file_size(path) + 64);
    EXPECT_EQ(SafetensorsFile(folder.path("as it is")).find("weight")->dtype, file.find("weight")->dtype);
  }
}

// Seven billion weights are there before any of them is read, and a model that computes holds its panels alone.
TEST(WeightsMemory, AModelOfSevenBillionWeightsIsLentItsFiles) {
  if (!test::kLimits) GTEST_SKIP() << "a sanitizer's addresses";
  const SparseModel model{.width = 4096, .layers = 32, .heads = 32, .feed_forward = 11008, .vocabulary = 55000};
  ASSERT_GE(model.weights(), std::int64_t{6'700'000'000});
  const ScratchFolder folder;
  const std::string path = model.write(folder);
  const std::int64_t before = test::status_bytes("RssAnon") + test::status_bytes("RssFile");
  const TextEncoder loaded = load(path, {.precision = NumberType::int4});
  EXPECT_LE(test::status_bytes("RssAnon") + test::status_bytes("RssFile") - before, static_cast<std::int64_t>(kMore));
  EXPECT_EQ(loaded.options().encoder.layers, 32);
}

TEST(WeightsMemory, AModelThatComputesHoldsItsPanelsAlone) {
  if (!test::kLimits) GTEST_SKIP() << "a sanitizer's addresses";
  const std::int64_t layers = test::quick() ? 2 : 6;
  const SparseModel model{.width = 2048, .layers = layers, .heads = 16, .feed_forward = 5632, .vocabulary = 1000};
  const ScratchFolder folder;
  Engine engine({.threads = 2});
  test::wait_for_workers(engine);
  const TextEncoder loaded = load(model.write(folder), {.precision = NumberType::int4});
  const std::int64_t before = test::status_bytes("RssAnon"), files = test::status_bytes("RssFile");
  const std::vector<std::string> texts{"a a a"};
  (void)loaded.embed(engine, texts);
  const std::int64_t panels = (model.weights() - model.vocabulary * model.width) * 9 / 16;
  EXPECT_LE(test::status_bytes("RssAnon") - before, panels + static_cast<std::int64_t>(kMore));
  EXPECT_LE(test::status_bytes("RssFile") - files, static_cast<std::int64_t>(kMore)) << "the files' pages are let go";
}

}  // namespace headlight::models::weights_memory_test
