// Rows of any type that floats can be stored in, for kernels that take floats: those of 16 bits are widened a few at a
// time into memory that stays in the first-level cache, computed with there, and rounded on their way out.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>

#include "headlight/typed_view.h"
#include "kernels/kernels.h"
#include "kernels/operand.h"
#include "kernels/rows/rows.h"
#include "ops/rows/blocks.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {

// That one computation reads; it writes one more.
inline constexpr int kMostInputs = 3;

// How the buffers of one worker lie: those of its tensors, so many floats or one row each.
struct BufferSize {
  static constexpr std::int64_t kFloats = 2048;
  // Between buffers an odd number of cache lines: numbers of one column that lie a multiple of 4 KiB apart would share
  // a set, and loads would wait for stores that are none of theirs.
  static constexpr std::int64_t kApart = 13 * 16;
  static constexpr int kBuffers = kMostInputs + 1;  // of as many tensors

  // None: all rows at once, where they lie.
  BufferSize() = default;
  // More columns than memory has room for are as many as they like.
  explicit BufferSize(std::int64_t columns) noexcept
      : row(round_up(std::clamp<std::int64_t>(columns, 1, std::int64_t{1} << 60), 16)),
        rows(std::max<std::int64_t>(1, kFloats / row)),
        floats(std::max(kFloats, row) + kApart) {}

  [[nodiscard]] std::size_t bytes(int workers) const noexcept {
    runtime::ScratchLayout layout;
    layout.add<float>(workers, kBuffers, floats);
    return layout.bytes();
  }

  std::int64_t row = 0;                                          // floats from one row to the next
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();  // of a buffer
  std::int64_t floats = 0;                                       // from one buffer to the next
};

// Whether one of them is given, and is not of float32.
template <class... AnyView>
[[nodiscard]] bool any_narrow(const AnyView&... views) noexcept {
  return ((views && views.type != NumberType::float32) || ...);
}

// What such a computation reads, at most kMostInputs of them, and writes: rows of floats, null where they are not
// given.
using RowInputs = std::initializer_list<const TypedView<2>*>;
class InputRows {
 public:
  [[nodiscard]] kernels::Rows<const float> operator[](std::size_t input) const noexcept {
    return {data_[input], strides_[input]};
  }
  void set(std::size_t input, const kernels::Rows<const float>& rows) noexcept {
    data_[input] = rows.data;
    strides_[input] = rows.stride;
  }

 private:
  // Apart, so that nobody loads as one what was just stored as two: the processor would wait for the cache.
  std::array<const float*, kMostInputs> data_;
  std::array<std::int64_t, kMostInputs> strides_;
};
using OutputRows = kernels::Rows<float>;

// A borrowed compute(rows of each input, rows of the output, first row, rows), called without allocation. So all
// operations share one walk over blocks and buffers.
class RowFunction {
 public:
  template <class Function>
  RowFunction(const Function& function) noexcept  // NOLINT(runtime/explicit)
      : function_(&function),
        call_([](const void* object, const InputRows& in, OutputRows out, std::int64_t first,
                 std::int64_t rows) noexcept { (*static_cast<const Function*>(object))(in, out, first, rows); }) {}

  void operator()(const InputRows& in, OutputRows out, std::int64_t first, std::int64_t rows) const noexcept {
    call_(function_, in, out, first, rows);
  }

 private:
  const void* function_;
  void (*call_)(const void*, const InputRows&, OutputRows, std::int64_t, std::int64_t) noexcept;
};

// Memory for the buffers of all workers, for one call; none where nothing is `narrow`. Throws OutOfMemory in the name
// of `operation`.
class RowBuffers {
 public:
  RowBuffers(Engine& engine, std::string_view operation, std::int64_t columns, bool narrow);

  // Computes all of [first, first + count), a buffer at a time, or all at once where nothing is narrow. A tensor of
  // float32 is computed with where it lies.
  void compute(int worker, RowInputs inputs, const MutableTypedView<2>& output, std::int64_t first, std::int64_t count,
               RowFunction function) const noexcept;

  // Rows of a tensor as floats.
  [[nodiscard]] kernels::Rows<const float> widened(const TypedView<2>& view, std::int64_t row, std::int64_t rows,
                                                   float* buffer) const noexcept {
    if (!view) return {nullptr, 0};
    const void* const from = behind(view, row);
    if (view.type == NumberType::float32) return {static_cast<const float*>(from), view.stride(0)};
    convert_->widen_rows(from, view.type, view.stride(0), rows, view.extent(1), buffer, size_.row);
    return {buffer, size_.row};
  }

  // Null where there is no memory.
  [[nodiscard]] float* buffer(int worker, std::size_t number) const noexcept {
    if (!memory_) return nullptr;
    const auto which = worker * BufferSize::kBuffers + static_cast<std::int64_t>(number);
    return reinterpret_cast<float*>(memory_->data()) + which * size_.floats;
  }
  [[nodiscard]] const BufferSize& size() const noexcept { return size_; }

  // Where row `row` of a view lies.
  template <class Pointer>
  [[nodiscard]] static Pointer behind(const AnyTypedView<2, Pointer>& view, std::int64_t row) noexcept {
    return kernels::numbers_behind(view.data, row * view.stride(0), view.type);
  }

  // Where floats go that become rows of an output: there, or into a buffer; and from there.
  [[nodiscard]] kernels::Rows<float> place_of(const MutableTypedView<2>& output, std::int64_t row,
                                              float* buffer) const noexcept {
    if (!output) return {nullptr, 0};
    if (output.type != NumberType::float32) return {buffer, size_.row};
    return {static_cast<float*>(behind(output, row)), output.stride(0)};
  }
  void round_into(const MutableTypedView<2>& output, const kernels::Rows<float>& from, std::int64_t row,
                  std::int64_t rows) const noexcept {
    if (!output || output.type == NumberType::float32) return;
    convert_->narrow_rows(from.data, from.stride, rows, output.extent(1), output.type, behind(output, row),
                          output.stride(0));
  }

 private:
  BufferSize size_;
  const kernels::ConvertKernels* convert_ = nullptr;
  std::optional<runtime::Scratch> memory_;
};

// Computes all rows of the output, on as many workers as the work is worth.
void for_row_buffers(Engine& engine, std::string_view operation, double nanoseconds_per_element, RowInputs inputs,
                     const MutableTypedView<2>& output, RowFunction function);

}  // namespace headlight::ops
