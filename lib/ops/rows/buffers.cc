#include "ops/rows/buffers.h"

#include <cassert>

#include "headlight/normalization.h"

namespace headlight {

namespace ops {
namespace {

template <class Float, class Pointer>
kernels::Rows<Float> floats_from(const AnyTypedView<2, Pointer>& view, std::int64_t row) noexcept {
  const std::int64_t stride = view.stride(0);
  return {view ? static_cast<Float*>(view.data) + row * stride : nullptr, stride};
}

// Of tensors that are all float32.
void compute_floats(RowInputs inputs, const MutableTypedView<2>& output, std::int64_t first, std::int64_t count,
                    RowFunction function) noexcept {
  assert(inputs.size() <= kMostInputs);
  InputRows from;
  std::size_t number = 0;
  for (const TypedView<2>* input : inputs) from.set(number++, floats_from<const float>(*input, first));
  function(from, floats_from<float>(output, first), first, count);
}

void for_narrow_rows(Engine& engine, std::string_view operation, double nanoseconds_per_element, RowInputs inputs,
                     const MutableTypedView<2>& output, RowFunction function) {
  const RowBuffers buffers(engine, operation, output.extent(1), true);
  for_row_blocks(engine, output.extent(0), output.extent(1), nanoseconds_per_element,
                 [&](std::int64_t first, std::int64_t count, int worker) {
                   buffers.compute(worker, inputs, output, first, count, function);
                 });
}

}  // namespace

RowBuffers::RowBuffers(Engine& engine, std::string_view operation, std::int64_t columns, bool narrow) {
  if (!narrow) return;
  size_ = BufferSize(columns);
  convert_ = &kernels::convert_kernels(engine.isa(), engine.features());
  memory_.emplace(engine, size_.bytes(engine.threads()), operation);
}

void RowBuffers::compute(int worker, RowInputs inputs, const MutableTypedView<2>& output, std::int64_t first,
                         std::int64_t count, RowFunction function) const noexcept {
  if (!memory_) return compute_floats(inputs, output, first, count, function);
  assert(inputs.size() <= kMostInputs);
  InputRows from;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t row = first + done, rows = std::min(size_.rows, count - done);
    done += rows;
    std::size_t number = 0;
    for (const TypedView<2>* input : inputs) {
      from.set(number, widened(*input, row, rows, buffer(worker, number)));
      ++number;
    }
    const kernels::Rows<float> to = place_of(output, row, buffer(worker, number));
    function(from, to, row, rows);
    round_into(output, to, row, rows);
  }
}

void for_row_buffers(Engine& engine, std::string_view operation, double nanoseconds_per_element, RowInputs inputs,
                     const MutableTypedView<2>& output, RowFunction function) {
  bool narrow = any_narrow(output);
  for (const TypedView<2>* input : inputs) narrow = narrow || any_narrow(*input);
  if (narrow) return for_narrow_rows(engine, operation, nanoseconds_per_element, inputs, output, function);
  for_row_blocks(
      engine, output.extent(0), output.extent(1), nanoseconds_per_element,
      [&](std::int64_t first, std::int64_t count) { compute_floats(inputs, output, first, count, function); });
}

}  // namespace ops

std::size_t rows_workspace_bytes(const Engine& engine, std::int64_t columns) noexcept {
  return ops::BufferSize(columns).bytes(engine.threads());
}

void reserve_rows(Engine& engine, std::int64_t columns) {
  const runtime::Scratch memory(engine, rows_workspace_bytes(engine, columns), "reserve_rows");
}

}  // namespace headlight
