#include "ops/attention/check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>

#include "ops/attention/masks.h"
#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::ops {
namespace {

// Elements that one call may speak of, with a few extents more on every axis than it has: scratch memory is at most
// 2¹² times that in bytes (4096 workers with a row of every head_dim each), so every size and index below stays within
// 64 bits. No machine holds 2⁵⁰ floats; only axes without elements, or repeated by a stride of 0, could ask for more.
constexpr double kMostElements = 0x1p50;
constexpr double kSpare = 512;

void check_rule(std::string_view operation, const AttentionOptions& options) {
  if (options.causal > Causal::bottom_right) {
    fail(operation, "causal is ", static_cast<int>(options.causal), ", expected one of the enum");
  }
  if (options.align && *options.align > Align::bottom_right) {
    fail(operation, "align is ", static_cast<int>(*options.align), ", expected one of the enum");
  }
  if (options.mask && options.mask->means > MaskMeans::ignore) {
    fail(operation, "mask.means is ", static_cast<int>(options.mask->means), ", expected one of the enum");
  }
  if (options.window.left < -1 || options.window.right < -1) {
    fail(operation, "window is [", options.window.left, ", ", options.window.right,
         "], expected −1 (unbounded) or more");
  }
  if (options.chunk < 0) {
    fail(operation, "chunk is ", options.chunk, ", expected 0 (none) or more");
  }
  check_probability(operation, "dropout.probability", options.dropout.probability);
  if (options.scale && !std::isfinite(*options.scale)) {
    fail(operation, "scale is ", *options.scale, ", expected a finite number");
  }
  if (options.softcap != 0 && (options.softcap < 0 || !std::isnormal(options.softcap))) {
    fail(operation, "softcap is ", text_of(options.softcap), ", expected 0 (none) or a normal number above 0");
  }
  if (options.scores_at > ScoreStage::masked) {
    fail(operation, "scores_at is ", static_cast<int>(options.scores_at), ", expected one of the enum");
  }
}

// Each axis the full extent or 1.
void check_broadcast(std::string_view operation, std::string_view name, std::span<const std::int64_t> shape,
                     const AttentionSizes& sizes) {
  const std::array<std::int64_t, 4> full = {sizes.batch, sizes.query_heads, sizes.query_length, sizes.key_length};
  for (std::size_t axis = 0; axis < full.size(); ++axis) {
    if (shape[axis] != full[axis] && shape[axis] != 1) {
      fail(operation, name, " has shape ", shape, ", expected ", full, " ([B, Hq, Lq, Lk]) with any axis 1");
    }
  }
}

// Columns of the probabilities.
std::int64_t probability_columns(std::string_view operation, const AttentionOptions& options,
                                 const AttentionSizes& sizes) {
  if (!options.probabilities.own_keys) return sizes.key_length;
  if (options.query_offsets.empty()) {
    fail(operation, "probabilities.own_keys is set without query_offsets, expected packed sequences");
  }
  return longest_packed_keys(options);
}

std::string_view per_head_meaning(const Probabilities& probabilities) noexcept {
  return probabilities.own_keys ? "[B, Hq, R, longest sequence]" : "[B, Hq, R, Lk]";
}

// And finds sizes.group.
void check_sizes(std::string_view operation, AttentionSizes& sizes) {
  // A division takes longer than all other checks of a head.
  const bool one_each = sizes.key_value_heads == sizes.query_heads || sizes.key_value_heads == 0;
  sizes.group = one_each ? 1 : sizes.query_heads / sizes.key_value_heads;
  if (sizes.group * sizes.key_value_heads != sizes.query_heads) {
    fail(operation, "query has ", sizes.query_heads, " heads, expected a multiple of the ", sizes.key_value_heads,
         " of key and value");
  }
  constexpr int kFewBits = 10;
  static_assert((1 << 2 * kFewBits) * ((1 << kFewBits) + kSpare) * ((1 << kFewBits) + kSpare) < kMostElements);
  const std::int64_t bits = sizes.batch | sizes.query_length | sizes.key_length | sizes.query_heads |
                            sizes.key_value_heads | sizes.head_dim | sizes.value_dim;
  if (bits >> kFewBits == 0) return;
  const auto elements = [](std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t dim) {
    // In float64, where nothing wraps around.
    return (static_cast<double>(batch) + 1) * (static_cast<double>(length) + kSpare) *
           (static_cast<double>(heads) + 1) * (static_cast<double>(dim) + kSpare);
  };
  const std::int64_t dim = std::max(sizes.head_dim, sizes.value_dim);
  if (elements(sizes.batch, sizes.query_length, sizes.query_heads, dim) > kMostElements ||
      elements(sizes.batch, sizes.key_length, sizes.key_value_heads, dim) > kMostElements) {
    const std::array<std::int64_t, 7> all = {sizes.batch,       sizes.query_length,    sizes.key_length,
                                             sizes.query_heads, sizes.key_value_heads, sizes.head_dim,
                                             sizes.value_dim};
    fail(operation, "sizes ", all, " ([B, Lq, Lk, Hq, Hkv, Dqk, Dv]) ask for more than 64 bits count");
  }
}

struct Inputs {
  AttentionSizes sizes;
  Extent query;
  Extent key;
  Extent value;
};

template <class Input>
Inputs check_inputs(std::string_view operation, const Input& query, const Input& key, const Input& value,
                    const AttentionOptions& options) {
  Inputs inputs{{query.extent(0), query.extent(1), key.extent(1), query.extent(2), key.extent(2), 1, query.extent(3),
                 value.extent(3)},
                check_view(operation, "query", query),
                check_view(operation, "key", key),
                check_view(operation, "value", value)};
  AttentionSizes& sizes = inputs.sizes;
  using Shape = std::array<std::int64_t, 4>;
  check_given(operation, "query", query, key.extent(0) == sizes.batch && key.extent(3) == sizes.head_dim);
  check_shape(operation, "key", key.shape, Shape{sizes.batch, -1, -1, sizes.head_dim},
              "[B, Lk, Hkv, Dqk], B and Dqk those of query");
  check_shape(operation, "value", value.shape, Shape{sizes.batch, sizes.key_length, sizes.key_value_heads, -1},
              "[B, Lk, Hkv, Dv], all but Dv those of key");
  check_sizes(operation, sizes);

  check_rule(operation, options);
  if (has_lists(options) || options.key_start || options.query_start) check_lists(operation, options, sizes);
  if (options.mask) {
    check_broadcast(operation, "mask", options.mask->entries.shape, sizes);
    check_view(operation, "mask", options.mask->entries);
  }
  if (options.bias) {
    check_broadcast(operation, "bias", options.bias.shape, sizes);
    check_view(operation, "bias", ascending(options.bias));
  }
  return inputs;
}

// What options and scales add to the operands: the other outputs, and that every output lies apart from all else.
void check_other_places(std::string_view operation, const Inputs& inputs, const Extent& out,
                        const AttentionOptions& options, std::span<const NamedExtent> scales) {
  const AttentionSizes& sizes = inputs.sizes;
  const Probabilities& probabilities = options.probabilities;
  const ProbabilityNames names;
  // Empty where not given: that overlaps nothing.
  std::array<NamedExtent, 5> outputs = {
      {{"out", out}, {"log_sum_exp", {}}, {names.per_head, {}}, {names.averaged, {}}, {"scores", {}}}};
  if (options.log_sum_exp) {
    const std::array<std::int64_t, 3> rows = {sizes.batch, sizes.query_heads, sizes.query_length};
    outputs[1].extent = check_output(operation, "log_sum_exp", options.log_sum_exp, rows, "[B, Hq, Lq]");
  }
  check_probability_shapes(operation, names, options, sizes);
  if (probabilities.per_head) outputs[2].extent = check_output(operation, names.per_head, probabilities.per_head);
  if (probabilities.averaged) outputs[3].extent = check_output(operation, names.averaged, probabilities.averaged);
  if (options.scores) {
    const std::array<std::int64_t, 4> all = {sizes.batch, sizes.query_heads, sizes.query_length, sizes.key_length};
    outputs[4].extent = check_output(operation, "scores", options.scores, all, "[B, Hq, Lq, Lk]");
  }
  std::array<NamedExtent, 5> read = {
      {{"query", inputs.query}, {"key", inputs.key}, {"value", inputs.value}, {"mask", {}}, {"bias", {}}}};
  if (options.mask) read[3].extent = check_view(operation, "mask", options.mask->entries);
  const View<const float, 4> bias = ascending(options.bias);
  if (bias) read[4].extent = check_view(operation, "bias", bias);
  const bool any_list = has_lists(options);
  for (const NamedExtent& output : outputs) {
    if (output.extent.begin == output.extent.end) continue;
    const auto check_apart = [&](const NamedExtent& from) {
      check_disjoint(operation, output.name, output.extent, from.name, from.extent);
    };
    for (const NamedExtent& other : outputs) {
      if (&other == &output) break;
      check_apart(other);
    }
    for (const NamedExtent& input : read) check_apart(input);
    for (const NamedExtent& of_rows : scales) check_apart(of_rows);
    if (!any_list) continue;
    for (const NamedExtent& list : lists_of(options)) check_apart(list);
  }
}

template <class Input, class Output>
AttentionSizes check_call(std::string_view operation, const Input& query, const Input& key, const Input& value,
                          const Output& out, const AttentionOptions& options,
                          std::span<const NamedExtent> scales = {}) {
  const Inputs inputs = check_inputs(operation, query, key, value, options);
  const AttentionSizes& sizes = inputs.sizes;
  const std::array<std::int64_t, 4> shape = {sizes.batch, sizes.query_length, sizes.query_heads, sizes.value_dim};
  const Extent extent = check_output(operation, "out", out, shape, "[B, Lq, Hq, Dv]");
  check_disjoint(operation, "out", extent, "query", inputs.query);
  check_disjoint(operation, "out", extent, "key", inputs.key);
  check_disjoint(operation, "out", extent, "value", inputs.value);
  if (has_outputs(options) || options.mask || options.bias || has_lists(options) || !scales.empty()) {
    check_other_places(operation, inputs, extent, options, scales);
  }
  return sizes;
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_scales(std::string_view operation, std::string_view name,
                                                        std::string_view of, NumberType type) {
  fail(operation, name, " is given with a ", of, " of ", type_name(type), ", expected int8");
}

}  // namespace

void refuse_scales(std::string_view operation, const AttentionOptions& options, NumberType key, NumberType value) {
  if (options.key_scales) fail_scales(operation, "key_scales", "key", key);
  if (options.value_scales) fail_scales(operation, "value_scales", "value", value);
}

void refuse_log_sum_exp_gradient(std::string_view operation, const AttentionOptions& options) {
  if (!options.log_sum_exp_gradient) return;
  fail(operation, "log_sum_exp_gradient is given, expected none: attention_backward() alone takes one");
}

Extent check_scales(std::string_view operation, std::string_view name, std::string_view of, const TypedView<4>& rows,
                    const View<const float, 3>& scales, const View<const float, 4>& each) {
  if (rows.type != NumberType::int8) {
    if (!scales && scales.shape == View<const float, 3>::Shape{}) return {};
    fail_scales(operation, name, of, rows.type);
  }
  const std::array<std::int64_t, 3> shape = {rows.extent(0), rows.extent(1), rows.extent(2)};
  check_shape(operation, name, scales.shape, shape, "[B, Lk, Hkv], one for each row and head");
  return check_view(operation, name, each);
}

AttentionSizes check_attention(std::string_view operation, const View<const float, 4>& query,
                               const View<const float, 4>& key, const View<const float, 4>& value,
                               const View<float, 4>& out, const AttentionOptions& options) {
  refuse_scales(operation, options, NumberType::float32, NumberType::float32);
  refuse_log_sum_exp_gradient(operation, options);
  return check_call(operation, query, key, value, out, options);
}

AttentionSizes check_attention(std::string_view operation, const AttentionOperands& operands,
                               const AttentionOptions& options) {
  const auto& [query, key, value, out, key_scales, value_scales] = operands;
  check_stored_type(operation, "query", query.type);
  check_cached_type(operation, "key", key.type);
  check_cached_type(operation, "value", value.type);
  check_stored_type(operation, "out", out.type);
  refuse_log_sum_exp_gradient(operation, options);
  const View<const float, 4> of_keys = each_scale(key_scales), of_values = each_scale(value_scales);
  const std::array<NamedExtent, 2> scales = {
      {{"key_scales", check_scales(operation, "key_scales", "key", key, key_scales, of_keys)},
       {"value_scales", check_scales(operation, "value_scales", "value", value, value_scales, of_values)}}};
  const bool has_scales = key.type == NumberType::int8 || value.type == NumberType::int8;
  return check_call(operation, query, key, value, out, options,
                    has_scales ? std::span<const NamedExtent>(scales) : std::span<const NamedExtent>());
}

AttentionSizes check_attention(std::string_view operation, const TypedView<4>& query, const TypedView<4>& key,
                               const TypedView<4>& value, const MutableTypedView<4>& out,
                               const AttentionOptions& options) {
  check_stored_type(operation, "query", query.type);
  check_stored_type(operation, "key", key.type);
  check_stored_type(operation, "value", value.type);
  check_stored_type(operation, "out", out.type);
  refuse_scales(operation, options, key.type, value.type);
  return check_call(operation, query, key, value, out, options);
}

AttentionSizes check_attention_inputs(std::string_view operation, const View<const float, 4>& query,
                                      const View<const float, 4>& key, const View<const float, 4>& value,
                                      const AttentionOptions& options) {
  return check_inputs(operation, query, key, value, options).sizes;
}

Extent check_kept_probabilities(std::string_view operation, const AttentionOptions& options,
                                const AttentionSizes& sizes) {
  const Probabilities& probabilities = options.probabilities;
  const std::array<std::int64_t, 4> shape = {sizes.batch, sizes.query_heads, sizes.query_length,
                                             probability_columns(operation, options, sizes)};
  check_shape(operation, "probabilities.per_head", probabilities.per_head.shape, shape,
              per_head_meaning(probabilities));
  return check_view(operation, "probabilities.per_head", probabilities.per_head);
}

void check_probability_shapes(std::string_view operation, const ProbabilityNames& names,
                              const AttentionOptions& options, const AttentionSizes& sizes) {
  const Probabilities& probabilities = options.probabilities;
  const std::int64_t columns = probability_columns(operation, options, sizes);
  const std::string_view averaged_shape = probabilities.own_keys ? "[B, R, longest sequence]" : "[B, R, Lk]";
  const std::int64_t rows = rows_asked(probabilities, sizes.query_length);
  for (std::size_t r = 0; r < probabilities.rows.size(); ++r) {
    const std::int64_t row = probabilities.rows[r];
    if (row < 0 || row >= sizes.query_length) {
      fail(operation, names.rows, "[", r, "] is ", row, ", expected 0 to Lq − 1 = ", sizes.query_length - 1);
    }
  }
  if (probabilities.per_head) {
    const std::array<std::int64_t, 4> shape = {sizes.batch, sizes.query_heads, rows, columns};
    check_shape(operation, names.per_head, probabilities.per_head.shape, shape, per_head_meaning(probabilities));
  }
  if (probabilities.averaged) {
    const std::array<std::int64_t, 3> shape = {sizes.batch, rows, columns};
    check_shape(operation, names.averaged, probabilities.averaged.shape, shape, averaged_shape);
  }
}

AttentionSizes check_attention_shape(std::string_view operation, const AttentionShape& shape) {
  const std::array<std::int64_t, 7> extents = {shape.batch,       shape.query_length,    shape.key_length,
                                               shape.query_heads, shape.key_value_heads, shape.head_dim,
                                               shape.value_dim};
  for (const std::int64_t extent : extents) {
    if (extent < 0) fail(operation, "shape has the negative extent ", extent);
  }
  AttentionSizes sizes{shape.batch, shape.query_length, shape.key_length, shape.query_heads, shape.key_value_heads,
                       1,           shape.head_dim,     shape.value_dim};
  check_sizes(operation, sizes);
  return sizes;
}

}  // namespace headlight::ops
