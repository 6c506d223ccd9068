// GGUF models in several files, as gguf-split writes them: the same model as in one, and what does not fit together is
// refused by its key.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/gguf.h"
#include "headlight/models/text_encoder.h"
#include "models/gguf_model.h"
#include "models/scratch_folder.h"
#include "support/compare.h"
#include "support/refusal.h"

namespace headlight::models::gguf_split_test {

using test::contains;
using test::file_error;
using test::GgufModel;
using test::GgufWriter;
using test::ScratchFolder;

const std::vector<std::string> kTexts{"the city of New York", "long streets"};

const GgufModel& model() {
  for (const GgufModel& one : test::gguf_models()) {
    if (one.family->name == "qwen3") return one;
  }
  throw std::runtime_error("no model qwen3");
}

// The tensors dealt out to so many files, and a change of each of them before it is written.
using Change = std::function<void(std::uint32_t number, GgufWriter& file)>;
std::vector<std::string> splits(std::uint32_t count, const Change& change = {}, std::uint32_t said = 0) {
  std::vector<GgufWriter> files{model().writer_without_tensors()};
  while (files.size() < count) files.emplace_back("qwen3");
  std::size_t next = 0, tensors = 0;
  for (const auto& [name, tensor] : model().tensors()) {
    files[next++ % count].floats(name, tensor.first, tensor.second);
    ++tensors;
  }
  std::vector<std::string> written;
  for (std::uint32_t number = 0; number < count; ++number) {
    files[number].integer("split.no", number);
    files[number].integer("split.count", said == 0 ? count : said);
    if (number == 0) files[number].integer("split.tensors.count", static_cast<std::uint32_t>(tensors));
    if (change) change(number, files[number]);
    written.push_back(files[number].file());
  }
  return written;
}

std::string name_of(std::uint32_t number, std::uint32_t count) {
  return "model-0000" + std::to_string(number + 1) + "-of-0000" + std::to_string(count) + ".gguf";
}

// Writes them, and returns the path of the first.
std::string write(const ScratchFolder& scratch, const std::vector<std::string>& files, const std::string& folder) {
  for (std::uint32_t number = 0; number < files.size(); ++number) {
    scratch.write(folder + "/" + name_of(number, static_cast<std::uint32_t>(files.size())), files[number]);
  }
  return scratch.path(folder + "/" + name_of(0, static_cast<std::uint32_t>(files.size())));
}

TEST(GgufSplit, IsTheModelOfOneFile) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  const TextEncoder whole = load(scratch.write("whole.gguf", model().writer().file()));
  const Tensor<float, 2> expected = whole.embed(engine, kTexts);
  for (const std::uint32_t count : {1u, 2u, 3u}) {
    SCOPED_TRACE(count);
    const std::vector<std::string> files = splits(count);
    const std::string folder = "of" + std::to_string(count), first = write(scratch, files, folder);
    EXPECT_TRUE(test::same_bits(load(first).embed(engine, kTexts), expected));
    const TextEncoder by_folder = load(scratch.path(folder));
    std::filesystem::remove_all(scratch.path(folder));
    EXPECT_TRUE(test::same_bits(by_folder.embed(engine, kTexts), expected));
    EXPECT_TRUE(by_folder.options().unknown_keys.empty());
    // From memory, in any order.
    std::vector<std::string> names;
    for (std::uint32_t number = 0; number < count; ++number) names.push_back(name_of(number, count));
    std::vector<FileInMemory> in_memory;
    for (std::uint32_t number = count; number-- > 0;) {
      in_memory.push_back({names[number], std::as_bytes(std::span(files[number]))});
    }
    EXPECT_TRUE(test::same_bits(load("mine", in_memory).embed(engine, kTexts), expected));
  }
}

TEST(GgufSplit, ThereIsAFirstOneAndAllAreOpen) {
  EXPECT_EQ(test::refusal([] { static_cast<void>(GgufFile(std::vector<GgufFile>{})); }),
            "models::GgufFile: splits is empty, expected one file or more");
  const std::string bytes = model().writer().file();
  for (const std::size_t gone : {std::size_t{0}, std::size_t{1}}) {
    std::vector<GgufFile> files;
    for (int n = 0; n < 2; ++n) files.push_back(GgufFile("mine", std::as_bytes(std::span(bytes))));
    const GgufFile elsewhere = std::move(files[gone]);
    EXPECT_EQ(test::refusal([&] { static_cast<void>(GgufFile(std::move(files))); }),
              "models::GgufFile: splits[" + std::to_string(gone) + "] was moved from, expected an open file");
  }
}

TEST(GgufSplit, TensorsOfAllFilesHaveTheirPlace) {
  const ScratchFolder scratch;
  const std::string first = write(scratch, splits(3), "split");
  GgufFile joined = GgufFile::whole(first);
  GgufFile whole(scratch.write("whole.gguf", model().writer().file()));
  EXPECT_EQ(joined.path(), first);
  ASSERT_EQ(joined.tensors().size(), whole.tensors().size());
  for (std::size_t n = 0; n < whole.tensors().size(); ++n) {
    const std::string_view name = whole.tensors()[n].name;
    EXPECT_EQ(joined.tensors()[n].name, name);
    const WeightView found = joined.stored(name), expected = whole.stored(name);
    EXPECT_NE(found.owner, nullptr);
    EXPECT_EQ(found.shape, expected.shape);
    EXPECT_TRUE(std::equal(found.values.begin(), found.values.end(), expected.values.begin(), expected.values.end()));
  }
  // By itself, the first is a file as any other.
  EXPECT_LT(GgufFile(first).tensors().size(), whole.tensors().size());
}

TEST(GgufSplit, WhatDoesNotFitTogetherIsRefused) {
  const ScratchFolder scratch;
  const auto says = [&](const std::vector<std::string>& files, std::uint32_t left_out = 9, std::uint32_t path = 0) {
    std::filesystem::remove_all(scratch.path("split"));
    static_cast<void>(write(scratch, files, "split"));
    const auto count = static_cast<std::uint32_t>(files.size());
    std::filesystem::remove(scratch.path("split/" + name_of(left_out, count)));
    return file_error([&] { static_cast<void>(load(scratch.path("split/" + name_of(path, count)))); });
  };
  EXPECT_TRUE(contains(says(splits(3), 1), "model-00002-of-00003.gguf"));
  EXPECT_TRUE(contains(says(splits(2), 9, 1), "model-00002-of-00002.gguf: split.no is 1, expected 0"));
  EXPECT_TRUE(contains(says(splits(2, {}, 3)), "split.count is 3, expected a file whose name ends in"));
  EXPECT_TRUE(contains(says(splits(2, {}, 100000)), "split.count is 100000, expected 1 to 99999"));
  const std::vector<float> number{1};
  const std::string name = model().tensors().begin()->first;
  EXPECT_TRUE(contains(says(splits(2,
                                   [&](std::uint32_t at, GgufWriter& file) {
                                     if (at == 1) file.floats(name, {1}, number);
                                   })),
                       "holds the tensor '" + name + "' in two of its files"));
  EXPECT_TRUE(contains(says(splits(2,
                                   [&](std::uint32_t at, GgufWriter& file) {
                                     if (at == 1) file.floats("one more", {1}, number);
                                   })),
                       "split.tensors.count is"));
  // Another model's file in the place of the second.
  std::vector<std::string> files = splits(2);
  files[1] = splits(3)[2];
  EXPECT_TRUE(contains(says(files), "model-00002-of-00002.gguf: split.no is 2, expected 1"));
  files[1] = splits(3)[1];
  EXPECT_TRUE(contains(says(files), "model-00002-of-00002.gguf: split.count is 3, expected 2"));
  files[1] = GgufWriter("qwen3").file();
  EXPECT_TRUE(contains(says(files), "model-00002-of-00002.gguf: split.no is missing, expected 1"));
}

}  // namespace headlight::models::gguf_split_test
