// What attention() refuses, and the sizes that everything below may trust.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "headlight/attention.h"
#include "ops/attention/operands.h"
#include "ops/check.h"
#include "runtime/inner_api.h"

namespace headlight::ops {

struct AttentionSizes {
  std::int64_t batch;
  std::int64_t query_length;
  std::int64_t key_length;
  std::int64_t query_heads;
  std::int64_t key_value_heads;
  std::int64_t group;  // query heads that share a key/value head
  std::int64_t head_dim;
  std::int64_t value_dim;
};

// Those of the call that a backward pass belongs to: what that wrote for its caller is not written again.
[[nodiscard]] inline AttentionOptions without_outputs(AttentionOptions options) {
  options.log_sum_exp = {};
  options.probabilities = {};
  options.scores = {};
  return options;
}

// Most of them have nothing to leave out, and need no copy.
[[nodiscard]] inline bool has_outputs(const AttentionOptions& options) noexcept {
  const Probabilities& probabilities = options.probabilities;
  return options.log_sum_exp || options.scores || probabilities.per_head || probabilities.averaged ||
         probabilities.own_keys || !probabilities.rows.empty();
}

// The same elements, walked in the direction of ascending addresses: a bias may run backwards along every axis but the
// last, for kernels read keys upwards.
[[nodiscard]] inline View<const float, 4> ascending(View<const float, 4> view) noexcept {
  for (std::size_t axis = 0; axis + 1 < view.shape.size(); ++axis) {
    if (view.strides[axis] >= 0 || view.shape[axis] < 1) continue;
    std::int64_t reach = 0;
    const bool fits = view.strides[axis] != INT64_MIN &&
                      !__builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) &&
                      !__builtin_mul_overflow(reach, static_cast<std::int64_t>(sizeof(float)), &reach);
    if (!fits) continue;  // refused as it is
    view.data = reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(view.data) +
                                               static_cast<std::uintptr_t>(reach));
    view.strides[axis] = -view.strides[axis];
  }
  return view;
}

struct NamedExtent {
  std::string_view name;
  Extent extent;
};

// The lists of numbers that a call trusts once they are checked, so that nothing may be written over them.
[[nodiscard]] inline std::array<NamedExtent, 9> lists_of(const AttentionOptions& options) noexcept {
  return {{{"query_lengths", extent_of(options.query_lengths)},
           {"key_lengths", extent_of(options.key_lengths)},
           {"query_offsets", extent_of(options.query_offsets)},
           {"key_offsets", extent_of(options.key_offsets)},
           {"probabilities.rows", extent_of(options.probabilities.rows)},
           {"key_start", extent_of(options.key_start.of_each)},
           {"query_start", extent_of(options.query_start.of_each)},
           {"alibi", extent_of(options.alibi)},
           {"sinks", extent_of(options.sinks)}}};
}

// Most calls have none, and a small one has no time to go over nine of them.
[[nodiscard]] inline bool has_lists(const AttentionOptions& options) noexcept {
  return (options.query_lengths.size() | options.key_lengths.size() | options.query_offsets.size() |
          options.key_offsets.size() | options.probabilities.rows.size() | options.key_start.of_each.size() |
          options.query_start.of_each.size() | options.alibi.size() | options.sinks.size()) != 0;
}

// Throws std::invalid_argument("operation: …") naming the first argument that does not fit.
AttentionSizes check_attention(std::string_view operation, const View<const float, 4>& query,
                               const View<const float, 4>& key, const View<const float, 4>& value,
                               const View<float, 4>& out, const AttentionOptions& options);

AttentionSizes check_attention(std::string_view operation, const AttentionOperands& operands,
                               const AttentionOptions& options);

// Scales beside keys and values of other types than int8; and what the way back alone takes.
[[gnu::noinline]] void refuse_scales(std::string_view operation, const AttentionOptions& options, NumberType key,
                                     NumberType value);
[[gnu::noinline]] void refuse_log_sum_exp_gradient(std::string_view operation, const AttentionOptions& options);

// Scales of keys or values, `each` as each_scale() has them: given where `rows` are int8 and nowhere else.
Extent check_scales(std::string_view operation, std::string_view name, std::string_view of, const TypedView<4>& rows,
                    const View<const float, 3>& scales, const View<const float, 4>& each);

// The same where no operand may be int8.
AttentionSizes check_attention(std::string_view operation, const TypedView<4>& query, const TypedView<4>& key,
                               const TypedView<4>& value, const MutableTypedView<4>& out,
                               const AttentionOptions& options);

// The same where no output is written.
AttentionSizes check_attention_inputs(std::string_view operation, const View<const float, 4>& query,
                                      const View<const float, 4>& key, const View<const float, 4>& value,
                                      const AttentionOptions& options);

// options.probabilities.per_head of all rows, as something to be read.
Extent check_kept_probabilities(std::string_view operation, const AttentionOptions& options,
                                const AttentionSizes& sizes);

// All that counts sequences, samples or heads. Most calls have none of it, and do not pay for looking at each.
void check_lists(std::string_view operation, const AttentionOptions& options, const AttentionSizes& sizes);

// What errors call the fields of options.probabilities.
struct ProbabilityNames {
  std::string_view rows = "probabilities.rows";
  std::string_view per_head = "probabilities.per_head";
  std::string_view averaged = "probabilities.averaged";
};

// The rows asked for and the shapes of options.probabilities.
void check_probability_shapes(std::string_view operation, const ProbabilityNames& names,
                              const AttentionOptions& options, const AttentionSizes& sizes);

// The same for the sizes alone.
HEADLIGHT_INNER_API AttentionSizes check_attention_shape(std::string_view operation, const AttentionShape& shape);

// R: how many softmax rows of each head are to be written.
[[nodiscard]] inline std::int64_t rows_asked(const Probabilities& probabilities, std::int64_t query_length) noexcept {
  return probabilities.rows.empty() ? query_length : static_cast<std::int64_t>(probabilities.rows.size());
}

// Whether an output is left out or without elements. Not by size(), whose bounds take a division for each axis, which
// would show in a short call.
template <class AnyView>
[[nodiscard]] bool is_empty(const AnyView& view) noexcept {
  bool empty = !view;
  for (const std::int64_t extent : view.shape) empty = empty || extent == 0;
  return empty;
}

// Whether every output is left out or without elements. Sizes may then count 2^30 of nothing: there must be no loop
// over them. Inlined always: most calls end at the first output, sooner than a call of this would.
template <class Out>
[[nodiscard, gnu::always_inline]] inline bool writes_nothing(const Out& out, const AttentionOptions& options) noexcept {
  const Probabilities& probabilities = options.probabilities;
  return is_empty(out) && is_empty(options.log_sum_exp) && is_empty(probabilities.per_head) &&
         is_empty(probabilities.averaged) && is_empty(options.scores);
}

}  // namespace headlight::ops
