// Folders of every kind that load() reads, beside what sentence-transformers and Transformers make of them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/golden_folder.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::models::golden_folders_test {

using test::golden_folders;
using test::GoldenFolder;
using test::ScratchFolder;

// As that of model_encoder_test.cc between an id and its hidden state, and as much again for a layer behind the
// pooling, whose sums are of at most 72 terms; a division by the length takes it below that again.
constexpr double kTolerance = 2 * 3 * 8 * test::TinyBert::kLayers * test::kUnitRoundoff * 8.5;

Tensor<float, 2> vectors_of(Engine& engine, const TextEncoder& model, const GoldenFolder& folder) {
  const std::vector<std::string>& texts = golden_folders().texts;
  Tensor<float, 2> vectors({static_cast<std::int64_t>(texts.size()), model.embed_width()});
  EmbedOptions options;
  if (!folder.prompt.empty()) options.prompt = model.options().prompts.at(folder.prompt);
  model.embed(engine, texts, vectors, options);
  return vectors;
}

void expect_near(const Tensor<float, 2>& vectors, const Tensor<double, 2>& truth) {
  ASSERT_EQ(vectors.shape(), truth.shape());
  for (std::int64_t n = 0; n < vectors.size(); ++n) ASSERT_NEAR(vectors.data()[n], truth.data()[n], kTolerance) << n;
}

TEST(GoldenFolders, VectorsAndTokensAreThoseOfSentenceTransformers) {
  const ScratchFolder scratch;
  ASSERT_GE(golden_folders().folders.size(), 60u);
  Engine engine({.threads = 1});
  for (const GoldenFolder& folder : golden_folders().folders) {
    SCOPED_TRACE(folder.name);
    const TextEncoder model = load(folder.write(scratch));
    for (std::size_t n = 0; n < folder.ids.size(); ++n) {
      EXPECT_EQ(model.tokenizer().encode(golden_folders().texts[n], 1000), folder.ids[n]) << golden_folders().texts[n];
    }
    EXPECT_EQ(model.options().unread_pooling, "");
    EXPECT_TRUE(model.options().unknown_keys.empty());
    expect_near(vectors_of(engine, model, folder), *folder.vectors);
  }
}

// What is saved is the same model again, in files that are read in the same way.
TEST(GoldenFolders, WhatIsSavedIsLoaded) {
  const ScratchFolder scratch;
  Engine engine({.threads = 1});
  for (const GoldenFolder& folder : golden_folders().folders) {
    SCOPED_TRACE(folder.name);
    const TextEncoder model = load(folder.write(scratch));
    model.save(scratch.path("saved"));  // over the files of the one before
    const TextEncoder again = load(scratch.path("saved"));
    EXPECT_EQ(again.options().prompts, model.options().prompts);
    EXPECT_EQ(again.options().default_prompt, model.options().default_prompt);
    EXPECT_EQ(again.tokenizer().size(), model.tokenizer().size());
    for (const std::string& text : golden_folders().texts) {
      EXPECT_EQ(again.tokenizer().encode(text, 1000), model.tokenizer().encode(text, 1000)) << text;
    }
    EXPECT_TRUE(test::same_bits(vectors_of(engine, again, folder), vectors_of(engine, model, folder)));
  }
}

TEST(GoldenFolders, TheSameInAnyCompanyAndOnEveryInstructionSet) {
  const ScratchFolder scratch;
  for (const char* name : {"poolings in a list", "layers in their order", "layer norm", "prompt left out of mean"}) {
    SCOPED_TRACE(name);
    const GoldenFolder& folder = golden_folders().named(name);
    const TextEncoder model = load(folder.write(scratch));
    for (const Isa isa : available_isas()) {
      Engine engine({.threads = 2, .isa = isa});
      const Tensor<float, 2> together = vectors_of(engine, model, folder);
      expect_near(together, *folder.vectors);
      for (std::int64_t row = 0; row < together.shape()[0]; ++row) {
        Tensor<float, 2> alone({1, model.embed_width()});
        model.embed(engine, std::span(golden_folders().texts).subspan(static_cast<std::size_t>(row), 1), alone, {});
        for (std::int64_t e = 0; e < alone.size(); ++e) ASSERT_EQ(alone.data()[e], together(row, e));
      }
    }
  }
}

}  // namespace headlight::models::golden_folders_test
