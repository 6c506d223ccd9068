// What a call of models::TextEncoder works in, kept for the next one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "headlight/layers/encoder.h"
#include "headlight/out_of_memory.h"
#include "headlight/tensor.h"
#include "models/text_network.h"
#include "models/text_vectors.h"
#include "models/token_batch.h"
#include "text/idle_pool.h"
#include "text/scratch.h"

namespace headlight::models {

// Long enough that weights are read from memory seldom (a token of MiniLM takes 21 MFLOP, its weights 42 MB), short
// enough that the widest activations of a pass, tokens · F floats, stay in a last-level cache: 12 MB for MiniLM.
inline constexpr std::int64_t kTokensAtATime = 2048;
// Without tokens too, as masks may leave them.
inline constexpr std::int64_t kSequencesAtATime = 2048;

class Workspace {
 public:
  // Room for runs of the network on at most so many tokens, the longest sequence of `longest`, and for the tokenizer.
  void reserve(const TextNetwork& network, std::int64_t tokens, std::int64_t longest);
  // Sequences that take() gets at most of a run on so many tokens.
  [[nodiscard]] static std::int64_t sequences_at_a_time(std::int64_t tokens) noexcept {
    return std::min(tokens, kSequencesAtATime) + 1;
  }
  [[nodiscard]] VectorScratch& vectors() noexcept { return vectors_; }
  // What a tokenizer works in, a prompt with a text behind it, and the tokens of a prompt.
  [[nodiscard]] text::Scratch& text() noexcept { return text_; }
  [[nodiscard]] std::string& joined() noexcept { return joined_; }
  [[nodiscard]] std::vector<std::int64_t>& ids() noexcept { return ids_; }
  // Gives back what long texts took, beyond what reserve() made room for.
  void forget_long_texts() noexcept;

  // Runs all `count` sequences through the network, a bounded number of tokens at a time: add(number, batch) adds the
  // tokens of one, take(first, input, its hidden states [N, E]) gets some of them, of which `first` is the number of
  // the first. Throws OutOfMemory.
  template <class Add, class Take>
  void run(Engine& engine, const TextNetwork& network, std::size_t count, Add add, Take take) {
    batch_.clear();
    std::size_t first = 0;
    for (std::size_t number = 0; number < count; ++number) {
      try {
        add(number, batch_);
        batch_.end_sequence();
      } catch (const OutOfMemory&) {
        throw;
      } catch (const std::bad_alloc&) {
        throw OutOfMemory("models::TextEncoder", batch_.input(true).ids.size_bytes());
      }
      if (number == first || (batch_.tokens() <= kTokensAtATime && number - first < kSequencesAtATime)) continue;
      forward(engine, network, number - first, first, take);
      batch_.keep_last();
      first = number;
    }
    if (batch_.sequences() > 0) forward(engine, network, batch_.sequences(), first, take);
  }

  // One sequence, which add(0, batch) adds, for the probabilities of its layers.
  template <class Add>
  void look(Engine& engine, const TextNetwork& network, Add add, const LayerProbabilities& wanted) {
    batch_.clear();
    add(0, batch_);
    batch_.end_sequence();
    const View<float, 2> hidden = rows(batch_.tokens(), network.width());
    network.forward(engine, batch_.input_by_place(network.has_token_types(), 1), hidden, {&wanted, 1});
  }

 private:
  template <class Take>
  void forward(Engine& engine, const TextNetwork& network, std::size_t sequences, std::size_t first, Take take) {
    const bool types = network.has_token_types();
    const EncoderInput input = batch_.input(types, sequences);
    const View<float, 2> hidden = rows(static_cast<std::int64_t>(input.ids.size()), network.width());
    if (!input.ids.empty()) network.forward(engine, batch_.input_by_place(types, sequences), hidden);
    take(first, input, View<const float, 2>(hidden));
  }
  [[nodiscard]] View<float, 2> rows(std::int64_t tokens, std::int64_t width);

  TokenBatch batch_;
  Tensor<float, 1> hidden_;
  VectorScratch vectors_;
  text::Scratch text_;
  std::string joined_;
  std::size_t reserved_joined_ = 0;  // bytes of it
  std::vector<std::int64_t> ids_;
};

// Throws OutOfMemory.
class WorkspacePool {
 public:
  [[nodiscard]] text::IdlePool<Workspace>::Taken take();

 private:
  text::IdlePool<Workspace> idle_;
};

}  // namespace headlight::models
