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

}  // namespace headlight::models::weights_memory_test
