// The operations of a network in order, and which values they need when.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "layers/network/operation.h"
#include "runtime/inner_api.h"

namespace headlight::layers {

// Operations first … end − 1.
struct OperationRange {
  int first;
  int end;
};

// Operations between begin_rows() and end_rows() compute rows from the same rows alone: such a run goes through some
// rows at a time, and values that only it uses are that small. Those between begin_pieces() and end_pieces(), a part of
// a run, do so on the way back, too.
class OperationList {
 public:
  [[nodiscard]] Slice add_value(std::int64_t columns, const HandedOn& handed_on = {});
  // What the call gives: the first of all values.
  [[nodiscard]] Slice add_given_value(std::int64_t columns);
  void add(std::unique_ptr<Operation> operation);
  void begin_rows();
  void end_rows();
  void begin_pieces();
  void end_pieces();
  // Around operations that compute a sequence from that sequence alone, and rows that are there throughout.
  void begin_sequences();
  void end_sequences();
  // Around the operations of a block, which in training may be computed again: its input is then what is kept.
  void begin_block();
  void end_block();
  // After the last operation.
  void finish();

  [[nodiscard]] int size() const noexcept { return static_cast<int>(operations_.size()); }
  [[nodiscard]] OperationRange all() const noexcept { return {0, size()}; }
  [[nodiscard]] Operation& operator[](int number) const noexcept {
    return *operations_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] const std::vector<Value>& values() const noexcept { return values_; }
  [[nodiscard]] const Value& value(int number) const noexcept { return values_[static_cast<std::size_t>(number)]; }
  // What the call gives, or nothing.
  [[nodiscard]] Slice given_value() const noexcept {
    return values_.front().is_given ? Slice{0, 0, values_.front().columns} : Slice();
  }
  [[nodiscard]] const Value& made_by(int operation) const noexcept { return value((*this)[operation].output().value); }
  [[nodiscard]] const std::vector<OperationRange>& runs() const noexcept { return runs_; }
  [[nodiscard]] const std::vector<OperationRange>& blocks() const noexcept { return blocks_; }
  [[nodiscard]] const std::vector<OperationRange>& sequences() const noexcept { return sequences_; }
  // The run that an operation is part of, or null; the same on the way back.
  [[nodiscard]] HEADLIGHT_INNER_API const OperationRange* run_of(int operation) const noexcept;
  [[nodiscard]] HEADLIGHT_INNER_API const OperationRange* pieces_of(int operation) const noexcept;
  // The value whose memory the output of that operation may take: one that nobody reads later, or −1.
  [[nodiscard]] int taken_value(int operation) const noexcept;
  // The last operation that needs the memory of a value.
  [[nodiscard]] int end_of_use(const Value& value) const noexcept;
  // How many rows go through a run at once.
  [[nodiscard]] HEADLIGHT_INNER_API std::int64_t rows_at_once(std::int64_t tokens) const noexcept;
  // The same outside of training, of all rows that lie as one matrix: even pieces, of no more rows than the engine's
  // workers multiply by all of a weight at once.
  [[nodiscard]] std::int64_t rows_at_once(std::int64_t rows, const Engine& engine) const noexcept;
  // The largest of these for so many rows or fewer: what memory must have room for.
  [[nodiscard]] std::int64_t most_rows_at_once(std::int64_t rows, const Engine& engine) const noexcept;

 private:
  [[nodiscard]] Value& value_of(const Slice& slice) noexcept { return values_[static_cast<std::size_t>(slice.value)]; }
  void find_last_uses();
  void find_local_values();
  void find_values_of_sequences();
  void find_local_gradients();
  void find_values_of_blocks();

  std::vector<Value> values_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<OperationRange> runs_;
  std::vector<OperationRange> pieces_;
  std::vector<OperationRange> blocks_;
  std::vector<OperationRange> sequences_;
  std::vector<int> run_of_;  // of each operation, −1: none
  std::vector<int> pieces_of_;
  std::vector<int> sequences_of_;
  std::int64_t widest_in_pieces_ = 1;
};

}  // namespace headlight::layers
