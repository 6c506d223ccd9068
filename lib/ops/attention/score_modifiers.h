// The modifiers between products and scores that a call asks for, and what of them is each row's own.
#pragma once

#include <cstdint>

#include "headlight/attention.h"
#include "kernels/attention/kernels.h"
#include "ops/call_plan.h"

namespace headlight::ops {

// What all rows of a call have in common; exp(scale · q·k) = exp2(exponent_scale · q·k).
[[nodiscard]] kernels::ScoreModifiers score_modifiers(const AttentionOptions& options, float exponent_scale) noexcept;

// What scores have to be multiplied by, as `modifiers` leave them, to be in units of e.
[[nodiscard]] float natural_factor(const kernels::ScoreModifiers& modifiers) noexcept;

// Rows in a row, in memory of a worker; a list is not looked at where its modifier is not asked for.
struct RowModifiers {
  const std::uint8_t** masks;
  const float** biases;
  kernels::RowSlope* slopes;

  // Makes row n that of a query of the tensors, which stands at `position`, counted in the tensor's keys.
  void set(const AttentionOptions& options, std::int64_t n, std::int64_t sample, std::int64_t head, std::int64_t query,
           std::int64_t position) const noexcept;
  // Row 0 of `modifiers` is row n.
  void give(const AttentionOptions& options, std::int64_t n, kernels::ScoreModifiers& modifiers) const noexcept;
};

// Where each worker keeps them: room for so many of each, and they themselves.
struct ModifierParts {
  WorkerPart<const std::uint8_t*> masks;
  WorkerPart<const float*> biases;
  WorkerPart<kernels::RowSlope> slopes;
};
[[nodiscard]] inline ModifierParts room_for_modifiers(CallPlan& plan, std::int64_t masks, std::int64_t biases,
                                                      std::int64_t slopes) noexcept {
  return {plan.for_worker<const std::uint8_t*>(masks), plan.for_worker<const float*>(biases),
          plan.for_worker<kernels::RowSlope>(slopes)};
}
template <class Call>
[[nodiscard]] RowModifiers row_modifiers(const Call& call, int worker) noexcept {
  const ModifierParts& parts = call.plan.row_modifiers;
  return {part_of(call, worker, parts.masks), part_of(call, worker, parts.biases), part_of(call, worker, parts.slopes)};
}

// Whether rows have anything of their own.
[[nodiscard]] inline bool has_row_modifiers(const AttentionOptions& options) noexcept {
  return options.mask || options.bias || !options.alibi.empty();
}

// Where the row of a mask or bias for that (sample, head, query) begins; axes of extent 1 broadcast.
template <class T>
[[nodiscard]] T* broadcast_row(const View<T, 4>& view, std::int64_t b, std::int64_t h, std::int64_t i) noexcept {
  const auto offset = [&](int axis, std::int64_t index) {
    return view.extent(axis) == 1 ? 0 : index * view.stride(axis);
  };
  return view.data + offset(0, b) + offset(1, h) + offset(2, i);
}

inline void RowModifiers::set(const AttentionOptions& options, std::int64_t n, std::int64_t sample, std::int64_t head,
                              std::int64_t query, std::int64_t position) const noexcept {
  if (options.mask) masks[n] = broadcast_row(options.mask->entries, sample, head, query);
  if (options.bias) biases[n] = broadcast_row(options.bias, sample, head, query);
  if (!options.alibi.empty()) slopes[n] = {options.alibi[static_cast<std::size_t>(head)], position};
}

}  // namespace headlight::ops
