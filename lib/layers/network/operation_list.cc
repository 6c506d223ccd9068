#include "layers/network/operation_list.h"

#include <algorithm>

#include "layers/feed_forward_rows.h"

namespace headlight::layers {

std::size_t Operation::workspace_bytes(const Engine&, std::int64_t) const { return 0; }
void Operation::reserve(Engine&, std::int64_t) const {}
bool Operation::has_gradient(std::size_t) const noexcept { return true; }

Slice OperationList::add_value(std::int64_t columns, const HandedOn& handed_on) {
  values_.push_back({.columns = columns, .handed_on = handed_on});
  return {static_cast<int>(values_.size()) - 1, 0, columns};
}

Slice OperationList::add_training_value(std::int64_t columns) { return add_value(columns); }

void OperationList::begin_rows() { runs_.push_back({size(), size()}); }
void OperationList::end_rows() { runs_.back().end = size(); }
void OperationList::begin_block() { blocks_.push_back({size(), size()}); }
void OperationList::end_block() { blocks_.back().end = size(); }

void OperationList::finish() {
  run_of_.assign(operations_.size(), -1);
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    std::fill(run_of_.begin() + runs_[run].first, run_of_.begin() + runs_[run].end, static_cast<int>(run));
  }
  find_last_uses();
  find_local_values();
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
    if (const Slice kept = operation.training_value()) value_of(kept).last_use = number;
  }
  // What takes another's memory keeps it there.
  for (int number = size() - 1; number >= 0; --number) {
    const Operation& operation = (*this)[number];
    const Value& made = value_of(operation.output());
    if (!made.handed_on.to_attention || operation.overwritten() < 0) continue;
    Value& taken = value_of(operation.inputs()[static_cast<std::size_t>(operation.overwritten())]);
    taken.last_use = std::max(taken.last_use, made.last_use);
  }
}

// A value that is used only in the run where it is made, unless it can lie where one of whole length does.
void OperationList::find_local_values() {
  for (const OperationRange& run : runs_) {
    for (int number = run.first; number < run.end; ++number) {
      Value& value = value_of((*this)[number].output());
      if (value.last_use >= run.end || taken_value(number) >= 0) continue;
      value.is_local = true;
      widest_local_ = std::max(widest_local_, value.columns);
    }
  }
}

// Those that a block makes and nobody reads behind it.
void OperationList::find_values_of_blocks() {
  for (int block = 0; block < static_cast<int>(blocks_.size()); ++block) {
    const OperationRange& range = blocks_[static_cast<std::size_t>(block)];
    for (int number = range.first; number < range.end; ++number) {
      const Operation& operation = (*this)[number];
      for (const Slice& made : {operation.output(), operation.training_value()}) {
        if (made && value_of(made).last_use < range.end) value_of(made).block = block;
      }
    }
  }
}

const OperationRange* OperationList::run_of(int operation) const noexcept {
  const int run = run_of_[static_cast<std::size_t>(operation)];
  return run < 0 ? nullptr : &runs_[static_cast<std::size_t>(run)];
}

int OperationList::taken_value(int number) const noexcept {
  const Operation& operation = (*this)[number];
  if (operation.overwritten() < 0) return -1;
  const Slice& slice = operation.inputs()[static_cast<std::size_t>(operation.overwritten())];
  if (!slice) return -1;
  const Value& taken = value(slice.value);
  const Value& made = made_by(number);
  const bool fits = slice.first == 0 && slice.columns == taken.columns && taken.columns == made.columns &&
                    taken.is_local == made.is_local;
  return fits && (made.handed_on.to_attention || taken.last_use == number) ? slice.value : -1;
}

// Operations on some rows at a time read others' values again for the next rows: those are done with behind the last of
// such a run.
int OperationList::end_of_use(const Value& value) const noexcept {
  const OperationRange* const run = value.is_local ? nullptr : run_of(value.last_use);
  return run == nullptr ? value.last_use : run->end - 1;
}

std::int64_t OperationList::rows_at_once(std::int64_t tokens) const noexcept {
  return layers::rows_at_once(tokens, widest_local_);
}

}  // namespace headlight::layers
