// Sequences laid end to end, as headlight::Encoder wants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headlight/layers/encoder.h"
#include "models/families/family.h"

namespace headlight::models {

// One token that is seen: its id, its position in its sequence, its row in the network's table of positions.
struct Token {
  std::int64_t id = 0;
  std::int64_t position = 0;
  std::int64_t place = position;
};

// The rows of a table of positions that the tokens of a sequence take, from its first on.
class Places {
 public:
  explicit Places(const PositionRule& rule) noexcept : rule_(rule), next_(rule.first) {}
  [[nodiscard]] std::int64_t next(std::int64_t id) noexcept { return id == rule_.padding ? id : next_++; }

 private:
  PositionRule rule_;
  std::int64_t next_;
};

using Sequence = std::vector<Token>;

// Some sequences in a row. What it holds grows to the largest batch and stays.
class TokenBatch {
 public:
  TokenBatch() = default;
  // Takes sequences[first], sequences[first + 1] … while they hold at most `most_tokens` together, but at least one.
  TokenBatch(std::span<const Sequence> sequences, std::size_t first, std::size_t most_tokens);

  void reserve(std::size_t tokens, std::size_t sequences);
  void clear() noexcept;
  // The sequence that has begun grows by a token; or by those whose ids append(ids, types) puts behind the others, at
  // positions from 0 on. Types that it leaves out are 0.
  void add(const Token& token);
  template <class Append>
  void add_ids(const PositionRule& rule, Append append) {
    const std::size_t begin = ids_.size();
    append(ids_, token_types_);
    token_types_.resize(ids_.size());
    Places places(rule);
    for (std::size_t token = begin; token < ids_.size(); ++token) {
      positions_.push_back(static_cast<std::int64_t>(token - begin));
      places_.push_back(places.next(ids_[token]));
    }
  }
  // It ends, and the next one begins.
  void end_sequence() { offsets_.push_back(static_cast<std::int64_t>(ids_.size())); }
  // Leaves the last of the sequences alone, which becomes the first.
  void keep_last() noexcept;

  [[nodiscard]] std::size_t sequences() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::int64_t tokens() const noexcept { return offsets_.back(); }
  [[nodiscard]] std::span<const std::int64_t> offsets() const noexcept { return offsets_; }
  [[nodiscard]] std::span<const std::int64_t> positions() const noexcept { return positions_; }

  // For a network with or without a table of token types.
  [[nodiscard]] EncoderInput input(bool with_token_types) const { return input(with_token_types, sequences()); }
  // The first `count` sequences of it.
  [[nodiscard]] EncoderInput input(bool with_token_types, std::size_t count) const;
  // The same with rows of the table in place of positions.
  [[nodiscard]] EncoderInput input_by_place(bool with_token_types, std::size_t count) const;

 private:
  std::vector<std::int64_t> ids_;
  std::vector<std::int64_t> positions_;
  std::vector<std::int64_t> places_;
  std::vector<std::int64_t> token_types_;
  std::vector<std::int64_t> offsets_{0};
};

}  // namespace headlight::models
