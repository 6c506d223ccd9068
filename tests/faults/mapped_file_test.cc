// A file of weights that changes while it is mapped: what SECURITY.md says of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "digests/digest.h"
#include "faults/child.h"
#include "faults/plan.h"
#include "headlight/models/text_encoder.h"
#include "models/tiny_bert.h"

namespace headlight::faults::mapped_file_test {

using test::ScratchFolder;
using test::TinyBert;

const std::vector<std::string> kTexts = {"a b c"};

class MappedFile : public testing::Test {
 protected:
  [[nodiscard]] std::uint64_t bits(const models::TextEncoder& model) {
    test::Digest digest;
    digest.add(model.embed(engine_, kTexts));
    return digest.value();
  }

  const ScratchFolder folder_;
  const std::string model_ = TinyBert().write(folder_);
  const std::string weights_ = model_ + "/model.safetensors";
  Engine engine_{EngineOptions{.threads = 1}};
};

TEST_F(MappedFile, MayBeReplacedOrRemoved) {
  const models::TextEncoder model = models::load(model_);
  const models::TextEncoder other = models::load(model_);
  TinyBert changed;
  for (float& value : changed.tensors.at("embeddings.word_embeddings.weight").values) value = -value;
  models::write_safetensors(weights_, changed.weights());  // renames a new file over the old one
  const std::uint64_t before = bits(model);
  EXPECT_NE(bits(models::load(model_)), before);
  std::filesystem::remove_all(model_);
  EXPECT_EQ(bits(other), before);
}

// No library can give back what is gone, nor may one take the signal from the program that it is a part of.
TEST_F(MappedFile, EndsTheProcessWhereItShrinks) {
  EXPECT_EXIT(
      {
        const models::TextEncoder model = models::load(model_);
        if (::truncate(weights_.c_str(), 0) == 0) static_cast<void>(bits(model));
        ::_exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(MappedFile, IsNotNeededByAModelFromMemory) {
  const auto bytes = [&](const char* name) { return folder_.read(std::string("bert/") + name); };
  const std::string config = bytes("config.json"), vocabulary = bytes("vocab.txt"),
                    weights = bytes("model.safetensors");
  const auto as_bytes = [](const std::string& text) { return std::as_bytes(std::span<const char>(text)); };
  const models::FileInMemory files[] = {
      {"config.json", as_bytes(config)}, {"vocab.txt", as_bytes(vocabulary)}, {"model.safetensors", as_bytes(weights)}};
  const std::uint64_t expected = bits(models::load(model_));
  const models::TextEncoder model = models::load("memory", files);
  ASSERT_EQ(::truncate(weights_.c_str(), 0), 0);
  EXPECT_EQ(bits(model), expected);
}

#ifdef HEADLIGHT_PROGRAM
// The command line is the program, and says what happened.
TEST_F(MappedFile, IsAnErrorOfTheCommandLineWhereItShrinks) {
  constexpr Plan kShrinks = {"a mapped file shrinks", Kind::map, Effect::shrink, 0, false};
  SharedBoard board;
  arm(*board, kShrinks, 0);
  const Finished finished =
      board.run({HEADLIGHT_FAULT_INJECTOR,
                 {HEADLIGHT_PROGRAM, "embed", "--model", model_, "--text", "a b c", "-o", "out.npy"},
                 folder_.path()});
  EXPECT_EQ(disarm(*board), 1);
  EXPECT_EQ(finished.code, 1) << finished.signal;
  EXPECT_EQ(finished.error, "headlight: error: a file was shortened while it was read\n");
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out.npy")));
}
#endif

}  // namespace headlight::faults::mapped_file_test
