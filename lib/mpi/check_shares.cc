#include "mpi/check_shares.h"

#include <algorithm>
#include <array>
#include <vector>

#include "mpi/attention_backward_parts.h"
#include "mpi/records.h"
#include "ops/attention_backward/large_rows.h"
#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::mpi {
namespace {

using Shape = std::array<std::int64_t, 4>;

struct Shapes {
  explicit Shapes(const Call& call)
      : rows(rows_of(call.queries.share)),
        query{call.whole.batch, rows, call.whole.query_heads, call.whole.head_dim},
        out{call.whole.batch, rows, call.whole.query_heads, call.whole.value_dim},
        key{call.whole.batch, rows_of(call.keys.share), call.whole.key_value_heads, call.whole.head_dim},
        value{call.whole.batch, key[1], call.whole.key_value_heads, call.whole.value_dim},
        log_sum_exp{call.whole.batch, call.whole.query_heads, rows} {}
  std::int64_t rows;
  Shape query, out, key, value;
  std::array<std::int64_t, 3> log_sum_exp;
};
constexpr std::string_view kOfQueries = "n rows as mpi::plan() says";
constexpr std::string_view kOfKeys = "m keys as mpi::plan() says";

template <class AnyView>
ops::NamedExtent input(std::string_view operation, std::string_view name, const AnyView& view,
                       std::span<const std::int64_t> shape, std::string_view meaning) {
  ops::check_shape(operation, name, view.shape, shape, meaning);
  return {name, ops::check_view(operation, name, view)};
}

template <class AnyView>
void add_output(std::string_view operation, std::string_view name, const AnyView& view,
                std::span<const std::int64_t> shape, std::string_view meaning, std::string_view may_share,
                std::vector<ops::NamedExtent>& others) {
  const ops::Extent extent = ops::check_output(operation, name, view, shape, meaning);
  for (const ops::NamedExtent& other : others) {
    if (other.name != may_share) ops::check_disjoint(operation, name, extent, other.name, other.extent);
  }
  others.push_back({name, extent});
}

// `bias`: as ascending() has that of the options; its extent looks into it.
void add_lists(const AttentionOptions& options, const View<const float, 4>& bias,
               std::vector<ops::NamedExtent>& others) {
  for (const ops::NamedExtent& list : ops::lists_of(options)) others.push_back(list);
  if (bias) others.push_back({"bias", ops::check_view("options", "bias", bias)});
}

// All that a way back reads.
std::vector<ops::NamedExtent> backward_inputs(std::string_view operation, const Shapes& shapes,
                                              const ops::AttentionBackwardOperands& shares,
                                              const AttentionOptions& options, const View<const float, 4>& bias) {
  ops::refuse_scales(operation, options, shares.key.type, shares.value.type);
  const auto stored = [&](std::string_view name, const auto& view, std::span<const std::int64_t> shape,
                          std::string_view meaning) {
    ops::check_stored_type(operation, name, view.type);
    return input(operation, name, view, shape, meaning);
  };
  std::vector<ops::NamedExtent> inputs = {
      stored("query", shares.query, shapes.query, kOfQueries),
      stored("key", shares.key, shapes.key, kOfKeys),
      stored("value", shares.value, shapes.value, kOfKeys),
      stored("out", shares.out, shapes.out, kOfQueries),
      input(operation, "log_sum_exp", shares.log_sum_exp, shapes.log_sum_exp, "[B, Hq, n]"),
      stored("out_gradient", shares.out_gradient, shapes.out, kOfQueries)};
  if (is_given(shares.log_sum_exp_gradient)) {
    inputs.push_back(
        input(operation, "log_sum_exp_gradient", shares.log_sum_exp_gradient, shapes.log_sum_exp, "[B, Hq, n]"));
  }
  add_lists(options, bias, inputs);
  return inputs;
}

// All keys of such a row would be needed at once.
void refuse_large_rows(std::string_view operation, const View<const float, 3>& log_sum_exp) {
  if (!ops::has_large_rows(log_sum_exp)) return;
  ops::fail(operation, "log_sum_exp has a row of magnitude 2^24 log 2 or more, expected less over ranks");
}

}  // namespace

void check_shares(std::string_view operation, const Call& call, const ops::AttentionOperands& shares,
                  const AttentionOptions& options) {
  const Shapes shapes(call);
  const auto& [query, key, value, out, key_scales, value_scales] = shares;
  ops::check_stored_type(operation, "query", query.type);
  ops::check_cached_type(operation, "key", key.type);
  ops::check_cached_type(operation, "value", value.type);
  ops::check_stored_type(operation, "out", out.type);
  ops::refuse_log_sum_exp_gradient(operation, options);
  const View<const float, 4> of_keys = ops::each_scale(key_scales), of_values = ops::each_scale(value_scales);
  std::vector<ops::NamedExtent> others = {
      input(operation, "query", query, shapes.query, kOfQueries),
      input(operation, "key", key, shapes.key, kOfKeys),
      input(operation, "value", value, shapes.value, kOfKeys),
      {"key_scales", ops::check_scales(operation, "key_scales", "key", key, key_scales, of_keys)},
      {"value_scales", ops::check_scales(operation, "value_scales", "value", value, value_scales, of_values)}};
  const View<const float, 4> bias = ops::ascending(options.bias);
  add_lists(options, bias, others);
  add_output(operation, "out", out, shapes.out, kOfQueries, "", others);
  if (!is_given(options.log_sum_exp)) return;
  add_output(operation, "log_sum_exp", options.log_sum_exp, shapes.log_sum_exp, "[B, Hq, n]", "", others);
}

void check_backward_shares(std::string_view operation, const Call& call, const ops::AttentionBackwardOperands& shares,
                           const Gradients& gradients, const AttentionOptions& options) {
  const Shapes shapes(call);
  const View<const float, 4> bias = ops::ascending(options.bias);
  std::vector<ops::NamedExtent> others = backward_inputs(operation, shapes, shares, options, bias);
  const auto add_gradient = [&](std::string_view name, const MutableTypedView<4>& gradient,
                                std::span<const std::int64_t> shape, std::string_view meaning,
                                std::string_view may_share) {
    if (!is_given(gradient)) return;
    ops::check_stored_type(operation, name, gradient.type);
    add_output(operation, name, gradient, shape, meaning, may_share, others);
  };
  const bool in_place = gradients.query.data == shares.out.data && gradients.query.type == shares.out.type &&
                        gradients.query.shape == shares.out.shape &&
                        ops::are_same_places(shares.out.shape, shares.out.strides, gradients.query.strides);
  add_gradient("gradients.query", gradients.query, shapes.query, kOfQueries, in_place ? "out" : "");
  add_gradient("gradients.key", gradients.key, shapes.key, kOfKeys, "");
  add_gradient("gradients.value", gradients.value, shapes.value, kOfKeys, "");
  if (gradients.sinks) {
    if (options.sinks.empty()) ops::fail(operation, "gradients.sinks is given, expected none: there are no sinks");
    const std::array<std::int64_t, 1> heads = {call.whole.query_heads};
    add_output(operation, "gradients.sinks", gradients.sinks, heads, "[Hq]", "", others);
  }
  refuse_large_rows(operation, shares.log_sum_exp);
}

void check_distance_shares(std::string_view operation, const Call& call, const ops::AttentionBackwardOperands& shares,
                           std::int64_t shards, const View<float, 3>& distances, const AttentionOptions& options) {
  if (call.whole.batch != 1) ops::fail(operation, "query has ", call.whole.batch, " samples, expected 1");
  const Shapes shapes(call);
  const View<const float, 4> bias = ops::ascending(options.bias);
  std::vector<ops::NamedExtent> others = backward_inputs(operation, shapes, shares, options, bias);
  const std::int64_t count = std::max<std::int64_t>(call.whole.query_length + call.whole.key_length - 1, 0);
  const std::array<std::int64_t, 3> sums = {shards, call.whole.query_heads, count};
  add_output(operation, "distances", distances, sums, "[shards, Hq, Lq + Lk − 1]", "", others);
  refuse_large_rows(operation, shares.log_sum_exp);
}

}  // namespace headlight::mpi
