#include "models/token_batch.h"

#include <algorithm>

namespace headlight::models {

TokenBatch::TokenBatch(std::span<const Sequence> sequences, std::size_t first, std::size_t most_tokens) {
  for (std::size_t number = first; number < sequences.size(); ++number) {
    const Sequence& sequence = sequences[number];
    if (number > first && ids_.size() + sequence.size() > most_tokens) break;
    for (const Token& token : sequence) add(token);
    end_sequence();
  }
}

void TokenBatch::reserve(std::size_t tokens, std::size_t sequences) {
  for (std::vector<std::int64_t>* const list : {&ids_, &positions_, &places_, &token_types_}) list->reserve(tokens);
  offsets_.reserve(sequences + 1);
}

void TokenBatch::clear() noexcept {
  for (std::vector<std::int64_t>* const list : {&ids_, &positions_, &places_, &token_types_}) list->clear();
  offsets_.resize(1);
}

void TokenBatch::add(const Token& token) {
  ids_.push_back(token.id);
  positions_.push_back(token.position);
  places_.push_back(token.place);
  token_types_.push_back(0);
}

void TokenBatch::keep_last() noexcept {
  const std::int64_t begin = offsets_[offsets_.size() - 2];
  for (std::vector<std::int64_t>* const list : {&ids_, &positions_, &places_, &token_types_}) {
    list->erase(list->begin(), list->begin() + begin);
  }
  offsets_[1] = offsets_.back() - begin;
  offsets_.resize(2);
}

EncoderInput TokenBatch::input(bool with_token_types, std::size_t count) const {
  const auto tokens = static_cast<std::size_t>(offsets_[count]);
  EncoderInput input{.ids = std::span(ids_).first(tokens),
                     .positions = std::span(positions_).first(tokens),
                     .offsets = std::span(offsets_).first(count + 1)};
  if (with_token_types) input.token_types = std::span(token_types_).first(tokens);
  return input;
}

EncoderInput TokenBatch::input_by_place(bool with_token_types, std::size_t count) const {
  EncoderInput by_place = input(with_token_types, count);
  by_place.positions = std::span(places_).first(by_place.ids.size());
  return by_place;
}

}  // namespace headlight::models
