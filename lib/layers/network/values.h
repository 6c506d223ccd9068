// What goes from operation to operation in a network.
#pragma once

#include <cstdint>

#include "headlight/layers/weight_matrix.h"

namespace headlight::layers {

// Some columns of a value. A value is a matrix with a row for each token.
struct Slice {
  int value = -1;  // −1: none
  std::int64_t first = 0;
  std::int64_t columns = 0;

  [[nodiscard]] explicit operator bool() const noexcept { return value >= 0; }
  [[nodiscard]] Slice part(std::int64_t begin, std::int64_t count) const noexcept {
    return {value, first + begin, count};
  }
};

// Which type of number a value has (handed_on.h): one that goes from a product, or with its operands, to attention, and
// one that goes to a product, may be of 16 bits.
struct HandedOn {
  const WeightMatrix* from = nullptr;  // of the product that it comes from, at first
  const WeightMatrix* to = nullptr;    // of the product that alone reads it
  bool to_attention = false;
  // In training: whether it is of the type of the activations (SavedState), and whether its gradient is.
  bool in_training = false;
  bool gradient = false;
};

// A matrix with a row for each token, that one operation makes, or the call gives, and others read.
struct Value {
  std::int64_t columns;
  HandedOn handed_on{};
  bool is_given = false;  // of the call
  // What OperationList::finish() finds: the last operation that needs it; whether it is made and used within one run of
  // operations on some rows, or else while some sequences go through a block, and its gradient within such a run of the
  // way back; and the block that makes it, where it alone reads it, or as its output the next one (−1: it is there
  // throughout).
  int last_use = -1;
  bool is_local = false;
  bool is_of_sequences = false;
  bool has_local_gradient = false;
  int block = -1;
  bool is_output_of_block = false;
};

// Rows first … first + count − 1 of a batch.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Rows of so many samples, each of that length, and with a memory of so many rows, where that is attended to.
struct BatchShape {
  std::int64_t batch = 1;
  std::int64_t length = 0;
  std::int64_t memory_length = 0;

  [[nodiscard]] std::int64_t rows() const noexcept { return batch * length; }
};

}  // namespace headlight::layers
