#include "models/gguf/split.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

constexpr std::int64_t kMostSplits = 99999;

// "-00002-of-00003.gguf"
std::string ending(std::int64_t number, std::int64_t count) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "-%05lld-of-%05lld.gguf", static_cast<long long>(number),
                static_cast<long long>(count));
  return text.data();
}

[[noreturn]] void fail(const GgufFile& file, std::string_view key, const std::string& message) {
  throw FileError(file.path(), std::string(key) + " " + message);
}

std::optional<std::int64_t> integer(const GgufFile& file, std::string_view key) {
  const std::optional<GgufValue> value = file.find_value(key);
  if (!value) return std::nullopt;
  const std::optional<std::int64_t> found = value->integer();
  if (!found) fail(file, key, "is no integer");
  return found;
}

void expect(const GgufFile& file, std::string_view key, std::int64_t expected) {
  const std::optional<std::int64_t> found = integer(file, key);
  if (found == expected) return;
  fail(file, key,
       (found ? "is " + std::to_string(*found) : std::string("is missing")) + ", expected " + std::to_string(expected));
}

}  // namespace

GgufFile join_splits(GgufFile file, const std::function<GgufFile(const std::string& path)>& open) {
  constexpr std::string_view kCount = "split.count", kNumber = "split.no", kTensors = "split.tensors.count";
  const std::int64_t count = integer(file, kCount).value_or(1);
  if (count == 1) return file;
  if (count < 1 || count > kMostSplits) {
    fail(file, kCount, "is " + std::to_string(count) + ", expected 1 to " + std::to_string(kMostSplits));
  }
  expect(file, kNumber, 0);
  const std::string first = ending(1, count);
  if (!file.path().ends_with(first)) {
    fail(file, kCount, "is " + std::to_string(count) + ", expected a file whose name ends in " + in_quotes(first));
  }
  const std::string before = file.path().substr(0, file.path().size() - first.size());
  const std::optional<std::int64_t> expected = integer(file, kTensors);
  std::vector<GgufFile> files;
  files.push_back(std::move(file));
  for (std::int64_t number = 2; number <= count; ++number) {
    const GgufFile& next = files.emplace_back(open(before + ending(number, count)));
    expect(next, kNumber, number - 1);
    expect(next, kCount, count);
  }
  GgufFile all(std::move(files));
  const auto there = static_cast<std::int64_t>(all.tensors().size());
  if (expected && *expected != there) {
    fail(all, kTensors, "is " + std::to_string(*expected) + ", but the files hold " + std::to_string(there));
  }
  return all;
}

std::string first_of_splits(const std::vector<std::string>& names) {
  const auto count = static_cast<std::int64_t>(names.size());
  if (count < 1 || count > kMostSplits || !names.front().ends_with(ending(1, count))) return "";
  const std::string before = names.front().substr(0, names.front().size() - ending(1, count).size());
  for (std::int64_t number = 1; number <= count; ++number) {
    if (names[static_cast<std::size_t>(number - 1)] != before + ending(number, count)) return "";
  }
  return names.front();
}

}  // namespace headlight::models
