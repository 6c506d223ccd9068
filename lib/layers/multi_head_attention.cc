#include "headlight/layers/multi_head_attention.h"

#include "layers/checked_options.h"
#include "layers/initializer.h"
#include "layers/layer_names.h"
#include "layers/parameter_list.h"
#include "layers/product.h"
#include "layers/sizes.h"
#include "ops/check.h"

namespace headlight {

MultiHeadAttentionOptions layers::checked(MultiHeadAttentionOptions options) {
  layers::at_least(1, layers::kMultiHeadAttentionName, "width", options.width);
  layers::at_least(1, layers::kMultiHeadAttentionName, "heads", options.heads);
  options.key_value_heads = layers::given_or(options.key_value_heads, options.heads);
  options.key_width = layers::given_or(options.key_width, options.width);
  options.value_width = layers::given_or(options.value_width, options.width);
  layers::at_least(1, layers::kMultiHeadAttentionName, "key_value_heads", options.key_value_heads);
  layers::at_least(1, layers::kMultiHeadAttentionName, "key_width", options.key_width);
  layers::at_least(1, layers::kMultiHeadAttentionName, "value_width", options.value_width);
  ops::check_probability(layers::kMultiHeadAttentionName, "dropout", options.dropout);
  const auto check_divides = [](std::string_view what, std::int64_t part, std::string_view of, std::int64_t whole) {
    if (whole % part != 0) {
      ops::fail(layers::kMultiHeadAttentionName, what, " is ", part, ", expected a divisor of ", of, ", which is ",
                whole);
    }
  };
  if (options.merge > Merge::gated_by_element) {
    ops::fail(layers::kMultiHeadAttentionName, "merge is ", static_cast<int>(options.merge),
              ", expected one of the enum");
  }
  check_divides("heads", options.heads, "width", options.width);
  check_divides("key_value_heads", options.key_value_heads, "heads", options.heads);
  // In float64, where nothing wraps around: W_Q, W_K and W_V lie in one tensor.
  const auto width = static_cast<double>(options.width);
  if (width * (width + static_cast<double>(options.key_width) + static_cast<double>(options.value_width)) > 0x1p60) {
    throw OutOfMemory(std::string(layers::kMultiHeadAttentionName) + " of width " + std::to_string(options.width),
                      SIZE_MAX);
  }
  const bool one_width = options.key_width == options.width && options.value_width == options.width;
  options.packed_projection = options.packed_projection && one_width;
  return options;
}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options)
    : options_(layers::checked(options)), output_(merged_columns(), options_.width, options_.bias) {
  for (const Group group : matrices()) {
    const bool is_keys = group == kKey || group == kKeyValue;
    const std::int64_t columns = is_keys ? options_.key_width : group == kValue ? options_.value_width : options_.width;
    projections_[place_of(group).matrix] = WeightMatrix({rows_of(group).count, columns});
  }
  if (options_.merge == Merge::weighted) merge_logits_ = Tensor<float, 1>({options_.heads});
  if (mixing_columns() > 0) merge_projection_ = WeightMatrix({mixing_columns(), options_.width});
  if (options_.bias) projection_bias_ = Tensor<float, 1>({rows_of(kAll).count});
}

std::int64_t MultiHeadAttention::key_value_columns() const noexcept {
  return options_.width / options_.heads * options_.key_value_heads;
}

SharedInputs MultiHeadAttention::most_shared() const noexcept {
  if (options_.key_width != options_.value_width) return SharedInputs::none;
  return options_.key_width == options_.width ? SharedInputs::all : SharedInputs::key_and_value;
}

std::span<const MultiHeadAttention::Group> MultiHeadAttention::matrices() const noexcept {
  static constexpr std::array<Group, 1> kOne = {kAll};
  static constexpr std::array<Group, 2> kTwo = {kQuery, kKeyValue};
  static constexpr std::array<Group, 3> kThree = {kQuery, kKey, kValue};
  switch (most_shared()) {
    case SharedInputs::all:
      return kOne;
    case SharedInputs::key_and_value:
      return kTwo;
    default:
      return kThree;
  }
}

WeightMatrix::Rows MultiHeadAttention::rows_of(Group group) const noexcept {
  const std::int64_t query = options_.width, one = key_value_columns();
  switch (group) {
    case kQuery:
      return {0, query};
    case kKey:
      return {query, one};
    case kValue:
      return {query + one, one};
    case kKeyValue:
      return {query, 2 * one};
    default:
      return {0, query + 2 * one};
  }
}

MultiHeadAttention::Place MultiHeadAttention::place_of(Group group) const noexcept {
  const WeightMatrix::Rows rows = rows_of(group);
  std::size_t matrix = matrices().size() - 1;
  while (rows_of(matrices()[matrix]).first > rows.first) --matrix;
  return {matrix, {rows.first - rows_of(matrices()[matrix]).first, rows.count}};
}

void MultiHeadAttention::append_parameters(const std::string& prefix, std::vector<layers::ParameterPlace>& list,
                                           const Weights* named) {
  for (const char* extra : {"bias_k", "bias_v"}) {
    if (named != nullptr && named->contains(prefix + extra)) {
      ops::fail(layers::kMultiHeadAttentionName, "weight ", prefix, extra,
                " is given, expected none: an extra learned key is not supported");
    }
  }
  const bool one_width = options_.key_width == options_.width && options_.value_width == options_.width;
  bool packed = options_.packed_projection;
  if (named != nullptr && one_width) packed = !named->contains(prefix + "q_proj_weight");
  const auto append_group = [&](const char* name, Group group) {
    const auto [matrix, rows] = place_of(group);
    layers::append(list, prefix + name, projections_[matrix], rows);
  };
  if (packed) {
    append_group("in_proj_weight", kAll);
  } else {
    append_group("q_proj_weight", kQuery);
    append_group("k_proj_weight", kKey);
    append_group("v_proj_weight", kValue);
  }
  layers::append(list, prefix + "in_proj_bias", projection_bias_, projection_bias_gradient_);
  output_.append_parameters(prefix + "out_proj.", list, named);
  const bool weighs = options_.merge == Merge::weighted_by_input;
  layers::append(list, prefix + "merge_logits", merge_logits_, merge_logits_gradient_);
  layers::append(list, prefix + (weighs ? "merge_proj.weight" : "gate_proj.weight"), merge_projection_,
                 merge_projection_.all());
}

// Xavier's bound for a packed [3E, E] matrix is √(6/4E), for three [E, E] ones √(6/2E), a factor of √2 more. Here both
// forms get the same: each projection is drawn as the [E, fan_in] matrix that it is, so that a projection keeps the
// variance of its input. Key and value projections count E outputs even when key_value_heads are few: the variance
// depends on no number of heads.
void MultiHeadAttention::initialize_from(layers::Initializer& initializer) {
  for (const Group group : {kQuery, kKey, kValue}) {
    const auto [matrix, rows] = place_of(group);
    const View<float, 2> weight = layers::rows_of(projections_[matrix].own(), rows);
    if (options_.orthogonal && group != kValue) {
      initializer.orthogonal(layers::values_of(weight), weight.extent(1), options_.width);
    } else {
      initializer.xavier(layers::values_of(weight), weight.extent(1), options_.width);
    }
  }
  initializer.constant(layers::values_of(projection_bias_), 0.0f);
  output_.initialize_from(initializer);
  // Logits of 0 weigh every head the same, as an average does. What is not there takes no stream.
  if (merge_logits_.size() > 0) initializer.constant(layers::values_of(merge_logits_), 0.0f);
  if (merge_projection_) {
    initializer.xavier(layers::values_of(merge_projection_.own()), options_.width, mixing_columns());
  }
}

void MultiHeadAttention::set_open(bool open) noexcept {
  for (WeightMatrix& projection : projections_) projection.set_open(open);
  output_.set_open(open);
  merge_projection_.set_open(open);
}

void MultiHeadAttention::make_gradients(bool wanted) {
  for (WeightMatrix& projection : projections_) projection.make_gradient(wanted);
  layers::make_gradient(wanted, projection_bias_, projection_bias_gradient_);
  output_.make_gradients(wanted);
  layers::make_gradient(wanted, merge_logits_, merge_logits_gradient_);
  merge_projection_.make_gradient(wanted);
}

}  // namespace headlight
