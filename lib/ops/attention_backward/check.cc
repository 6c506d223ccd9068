#include "ops/attention_backward/check.h"

#include <algorithm>
#include <array>

#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::ops {
namespace {

bool is_same_view(const MutableTypedView<4>& a, const TypedView<4>& b) noexcept {
  return a.data == b.data && a.type == b.type && a.shape == b.shape && are_same_places(a.shape, a.strides, b.strides);
}

// All that is read, but for the lists. `bias`: as ascending() has that of the options; extents look into it.
std::array<NamedExtent, 9> inputs_of(std::string_view operation, const AttentionBackwardOperands& operands,
                                     const AttentionOptions& options, const View<const float, 4>& bias) {
  const auto& [query, key, value, out, log_sum_exp, out_gradient, log_sum_exp_gradient] = operands;
  std::array<NamedExtent, 9> inputs = {
      {{"query", check_view(operation, "query", query)},
       {"key", check_view(operation, "key", key)},
       {"value", check_view(operation, "value", value)},
       {"out_gradient", check_view(operation, "out_gradient", out_gradient)},
       {"log_sum_exp", check_view(operation, "log_sum_exp", log_sum_exp)},
       {"bias", check_view(operation, "bias", bias)},
       {},
       {"out", check_view(operation, "out", out)},
       {"log_sum_exp_gradient", check_view(operation, "log_sum_exp_gradient", log_sum_exp_gradient)}}};
  if (options.mask) inputs[6] = {"mask", check_view(operation, "mask", options.mask->entries)};
  return inputs;
}

// [Hq], apart from all else.
void check_sinks_gradient(std::string_view operation, const AttentionSizes& sizes,
                          const TypedAttentionGradients& gradients, const AttentionOptions& options,
                          const std::array<NamedExtent, 9>& inputs, const std::array<NamedExtent, 4>& outputs) {
  constexpr std::string_view kSinks = "gradients.sinks";
  if (options.sinks.empty() && sizes.query_heads > 0) fail(operation, "gradients.sinks given without options.sinks");
  const std::array<std::int64_t, 1> heads = {sizes.query_heads};
  const Extent extent = check_output(operation, kSinks, gradients.sinks, heads, "[Hq]");
  const auto check = [&](const NamedExtent& other) {
    check_disjoint(operation, kSinks, extent, other.name, other.extent);
  };
  std::for_each(inputs.begin(), inputs.end(), check);
  std::for_each(outputs.begin(), outputs.end(), check);
  for (const NamedExtent& list : lists_of(options)) check(list);
}

// What both ways back have. Of an operand that one of them does not take, nothing is given.
void check_gradients(std::string_view operation, const AttentionSizes& sizes, const AttentionBackwardOperands& operands,
                     const TypedAttentionGradients& gradients, const AttentionOptions& options) {
  const auto& [query, key, value, out, log_sum_exp, out_gradient, log_sum_exp_gradient] = operands;
  const std::array<std::int64_t, 4> rows = {sizes.batch, sizes.query_length, sizes.query_heads, sizes.value_dim};
  check_stored_type(operation, "out_gradient", out_gradient.type);
  check_shape(operation, "out_gradient", out_gradient.shape, rows, "[B, Lq, Hq, Dv]");
  if (gradients.bias && !options.bias) fail(operation, "gradients.bias given without options.bias");

  const View<const float, 4> bias = ascending(options.bias);
  const std::array<NamedExtent, 9> inputs = inputs_of(operation, operands, options, bias);
  const bool with_lists = has_lists(options);
  const MutableTypedView<4> bias_gradient = gradients.bias;
  struct Gradient {
    std::string_view name;
    const MutableTypedView<4>& view;
    std::array<std::int64_t, 4> shape;
    std::string_view meaning;
  };
  const std::array<Gradient, 4> list = {{{"gradients.query", gradients.query, query.shape, "the shape of query"},
                                         {"gradients.key", gradients.key, key.shape, "the shape of key"},
                                         {"gradients.value", gradients.value, value.shape, "the shape of value"},
                                         {"gradients.bias", bias_gradient, bias.shape, "the shape of bias"}}};
  std::array<NamedExtent, 4> outputs{};
  for (std::size_t g = 0; g < list.size(); ++g) {
    const Gradient& gradient = list[g];
    if (!gradient.view) continue;
    check_stored_type(operation, gradient.name, gradient.view.type);
    outputs[g] = {gradient.name,
                  check_output(operation, gradient.name, gradient.view, gradient.shape, gradient.meaning)};
    for (std::size_t other = 0; other < g; ++other) {
      check_disjoint(operation, gradient.name, outputs[g].extent, outputs[other].name, outputs[other].extent);
    }
    for (const NamedExtent& input : inputs) {
      const bool allowed = g == 0 && input.name == "out" && is_same_view(gradient.view, out);
      if (!allowed) check_disjoint(operation, gradient.name, outputs[g].extent, input.name, input.extent);
    }
    if (!with_lists) continue;
    for (const NamedExtent& numbers : lists_of(options)) {
      check_disjoint(operation, gradient.name, outputs[g].extent, numbers.name, numbers.extent);
    }
  }
  if (gradients.sinks) check_sinks_gradient(operation, sizes, gradients, options, inputs, outputs);
  if (gradients.accumulate && gradients.query && out && is_same_view(gradients.query, out)) {
    fail(operation, "gradients.query is out, and accumulate is set");
  }
}

}  // namespace

AttentionSizes check_attention_backward(std::string_view operation, const AttentionBackwardOperands& operands,
                                        const TypedAttentionGradients& gradients, const AttentionOptions& options) {
  const auto& [query, key, value, out, log_sum_exp, out_gradient, log_sum_exp_gradient] = operands;
  // `out` is checked as the output that it once was; nothing is written to it.
  const MutableTypedView<4> once_written(out.type, const_cast<void*>(out.data), out.shape, out.strides);
  const AttentionSizes sizes =
      has_outputs(options) ? check_attention(operation, query, key, value, once_written, without_outputs(options))
                           : check_attention(operation, query, key, value, once_written, options);
  const std::array<std::int64_t, 3> rows = {sizes.batch, sizes.query_heads, sizes.query_length};
  check_shape(operation, "log_sum_exp", log_sum_exp.shape, rows, "[B, Hq, Lq]");
  if (log_sum_exp_gradient) {
    check_shape(operation, "log_sum_exp_gradient", log_sum_exp_gradient.shape, rows, "[B, Hq, Lq]");
  }
  check_gradients(operation, sizes, operands, gradients, options);
  return sizes;
}

AttentionSizes check_attention_backward_inputs(std::string_view operation, View<const float, 4> query,
                                               View<const float, 4> key, View<const float, 4> value,
                                               View<const float, 4> out_gradient, const AttentionGradients& gradients,
                                               const AttentionOptions& options) {
  refuse_scales(operation, options, NumberType::float32, NumberType::float32);
  refuse_log_sum_exp_gradient(operation, options);
  const AttentionSizes sizes = check_attention_inputs(operation, query, key, value, without_outputs(options));
  check_gradients(operation, sizes, {query, key, value, {}, {}, out_gradient, {}}, gradients, options);
  return sizes;
}

void check_distances(std::string_view operation, const AttentionSizes& sizes, const AttentionBackwardOperands& operands,
                     const AttentionOptions& options, std::int64_t sums, const View<float, 3>& distances) {
  constexpr std::string_view kDistances = "distances";
  const std::int64_t count = std::max<std::int64_t>(sizes.query_length + sizes.key_length - 1, 0);
  const std::array<std::int64_t, 3> shape = {sums, sizes.query_heads, count};
  const Extent extent = check_output(operation, kDistances, distances, shape, "[shards, Hq, Lq + Lk − 1]");
  const View<const float, 4> bias = ascending(options.bias);
  for (const NamedExtent& input : inputs_of(operation, operands, options, bias)) {
    check_disjoint(operation, kDistances, extent, input.name, input.extent);
  }
  for (const NamedExtent& list : lists_of(options)) {
    check_disjoint(operation, kDistances, extent, list.name, list.extent);
  }
}

}  // namespace headlight::ops
