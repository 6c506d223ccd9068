#include "layers/network/operation_list.h"

#include <algorithm>

#include "layers/feed_forward_rows.h"
#include "ops/gemm/split.h"

namespace headlight::layers {

Operation::Blocks Operation::workspace(const Engine&, const BatchShape&) const { return {}; }
void Operation::pack_weights(Engine&) const {}
std::size_t Operation::kept_bytes(const GraphCall&) const { return 0; }
bool Operation::has_gradient(std::size_t) const noexcept { return true; }
OperationSizes Operation::sizes() const noexcept { return {}; }

Slice OperationList::add_value(std::int64_t columns, const HandedOn& handed_on) {
  values_.push_back({.columns = columns, .handed_on = handed_on});
  return {static_cast<int>(values_.size()) - 1, 0, columns};
}

Slice OperationList::add_given_value(std::int64_t columns) {
  const Slice given = add_value(columns);
  value_of(given).is_given = true;
  return given;
}

void OperationList::add(std::unique_ptr<Operation> operation) {
  operation->set_number(size());
  operations_.push_back(std::move(operation));
}

void OperationList::begin_rows() { runs_.push_back({size(), size()}); }
void OperationList::end_rows() { runs_.back().end = size(); }
void OperationList::begin_pieces() { pieces_.push_back({size(), size()}); }
void OperationList::end_pieces() { pieces_.back().end = size(); }
void OperationList::begin_sequences() { sequences_.push_back({size(), size()}); }
void OperationList::end_sequences() { sequences_.back().end = size(); }
void OperationList::begin_block() { blocks_.push_back({size(), size()}); }
void OperationList::end_block() { blocks_.back().end = size(); }

void OperationList::finish() {
  const auto number = [this](const std::vector<OperationRange>& ranges, std::vector<int>& range_of) {
    range_of.assign(operations_.size(), -1);
    for (std::size_t range = 0; range < ranges.size(); ++range) {
      std::fill(range_of.begin() + ranges[range].first, range_of.begin() + ranges[range].end, static_cast<int>(range));
    }
  };
  number(runs_, run_of_);
  number(pieces_, pieces_of_);
  number(sequences_, sequences_of_);
  find_last_uses();
  find_local_values();
  find_values_of_sequences();
  find_local_gradients();
  find_values_of_blocks();
}

// Where the last operation that reads each value stands, or the one that makes it.
void OperationList::find_last_uses() {
  for (int number = 0; number < size(); ++number) {
    const Operation& operation = (*this)[number];
    for (const Slice& slice : operation.inputs()) {
      if (slice) value_of(slice).last_use = number;
    }
    value_of(operation.output()).last_use = number;
  }
}

// A value that is used only in the run where it is made, unless it can lie where one of whole length does.
void OperationList::find_local_values() {
  for (const OperationRange& run : runs_) {
    for (int number = run.first; number < run.end; ++number) {
      Value& value = value_of((*this)[number].output());
      if (value.last_use >= run.end || taken_value(number) >= 0) continue;
      value.is_local = true;
    }
  }
}

// The same of a value that is used only while the sequences that it is made of go through a block.
void OperationList::find_values_of_sequences() {
  for (const OperationRange& sequences : sequences_) {
    for (int number = sequences.first; number < sequences.end; ++number) {
      Value& value = value_of((*this)[number].output());
      if (value.is_local || value.last_use >= sequences.end || taken_value(number) >= 0) continue;
      value.is_of_sequences = number + 1 < size();  // the last of all goes to the caller
    }
  }
}

// A value that is used only in the pieces where it is made.
void OperationList::find_local_gradients() {
  for (const OperationRange& pieces : pieces_) {
    for (int number = pieces.first; number < pieces.end; ++number) {
      Value& value = value_of((*this)[number].output());
      // The last of all has its gradient from outside.
      value.has_local_gradient = value.last_use < pieces.end && number + 1 < size();
      if (value.has_local_gradient) widest_in_pieces_ = std::max(widest_in_pieces_, value.columns);
    }
  }
}

// Those that a block makes and nobody reads behind it, and what the next one reads of it.
void OperationList::find_values_of_blocks() {
  for (int block = 0; block < static_cast<int>(blocks_.size()); ++block) {
    const auto number = static_cast<std::size_t>(block);
    const OperationRange& range = blocks_[number];
    for (int made = range.first; made < range.end; ++made) {
      Value& value = value_of((*this)[made].output());
      const bool is_output = made + 1 == range.end;
      const int end = !is_output ? range.end : number + 1 < blocks_.size() ? blocks_[number + 1].end : size();
      if (value.last_use >= end) continue;
      value.block = block;
      value.is_output_of_block = is_output;
    }
  }
}

const OperationRange* OperationList::run_of(int operation) const noexcept {
  const int run = run_of_[static_cast<std::size_t>(operation)];
  return run < 0 ? nullptr : &runs_[static_cast<std::size_t>(run)];
}

const OperationRange* OperationList::pieces_of(int operation) const noexcept {
  const int pieces = pieces_of_[static_cast<std::size_t>(operation)];
  return pieces < 0 ? nullptr : &pieces_[static_cast<std::size_t>(pieces)];
}

int OperationList::taken_value(int number) const noexcept {
  const Operation& operation = (*this)[number];
  if (operation.overwritten() < 0) return -1;
  const Slice& slice = operation.inputs()[static_cast<std::size_t>(operation.overwritten())];
  if (!slice) return -1;
  const Value& taken = value(slice.value);
  const Value& made = made_by(number);
  const bool fits = !taken.is_given && slice.first == 0 && slice.columns == taken.columns &&
                    taken.columns == made.columns && taken.is_local == made.is_local &&
                    taken.is_of_sequences == made.is_of_sequences;
  return fits && !made.handed_on.to_attention && taken.last_use == number ? slice.value : -1;
}

// Operations on some rows or sequences at a time read others' values again for the next ones: those are done with
// behind the last of such operations.
int OperationList::end_of_use(const Value& value) const noexcept {
  if (value.is_local) return value.last_use;
  const int sequences = value.is_of_sequences ? -1 : sequences_of_[static_cast<std::size_t>(value.last_use)];
  if (sequences >= 0) return sequences_[static_cast<std::size_t>(sequences)].end - 1;
  const OperationRange* const run = run_of(value.last_use);
  return run == nullptr ? value.last_use : run->end - 1;
}

std::int64_t OperationList::rows_at_once(std::int64_t tokens) const noexcept {
  return layers::rows_at_once(tokens, widest_in_pieces_);
}

std::int64_t OperationList::rows_at_once(std::int64_t rows, const Engine& engine) const noexcept {
  return ops::gemm_rows_at_once(engine, rows, rows_at_once(rows));
}

std::int64_t OperationList::most_rows_at_once(std::int64_t rows, const Engine& engine) const noexcept {
  return std::min(rows_at_once(rows), ops::gemm_most_rows_at_once(engine));
}

}  // namespace headlight::layers
