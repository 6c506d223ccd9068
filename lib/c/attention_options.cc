#include "c/attention_options.h"

#include "c/arguments.h"

namespace headlight::c {

AttentionShape attention_shape(const char* operation, const char* argument, const headlight_attention_shape* given) {
  required(operation, argument, given);
  const Fields fields(operation, argument, given, HEADLIGHT_C_FIELDS(headlight_attention_shape));
  const auto or_one = [](std::int64_t extent) { return extent == 0 ? 1 : extent; };
  return {.batch = or_one(fields->batch),
          .query_length = fields->query_length,
          .key_length = fields->key_length,
          .query_heads = or_one(fields->query_heads),
          .key_value_heads = or_one(fields->key_value_heads),
          .head_dim = fields->head_dim,
          .value_dim = fields->value_dim};
}
namespace {

static_assert(static_cast<int>(Causal::bottom_right) == HEADLIGHT_CAUSAL_BOTTOM_RIGHT);
static_assert(static_cast<int>(Align::bottom_right) == HEADLIGHT_ALIGN_BOTTOM_RIGHT - HEADLIGHT_ALIGN_TOP_LEFT);
static_assert(static_cast<int>(ScoreStage::capped) == HEADLIGHT_SCORES_CAPPED - HEADLIGHT_SCORES_RAW);
static_assert(static_cast<int>(MaskMeans::ignore) == HEADLIGHT_MASK_MEANS_IGNORE - HEADLIGHT_MASK_MEANS_ATTEND);

std::optional<BooleanMask> boolean_mask(const char* operation, const Fields<headlight_attention_options>& fields) {
  const auto entries = optional_view<const std::uint8_t, 4>(operation, "mask", fields->mask);
  if (!entries) return std::nullopt;
  return BooleanMask{entries, enumerated<MaskMeans>(operation, "mask_means", fields->mask_means,
                                                    HEADLIGHT_MASK_MEANS_ATTEND, HEADLIGHT_MASK_MEANS_IGNORE)};
}

// One number stands for all.
Start start(const char* operation, const char* argument, const headlight_indices& given) {
  const std::span<const std::int64_t> numbers = indices(operation, argument, given);
  return numbers.size() == 1 ? Start(numbers.front()) : Start(numbers);
}

// What is asked for most often is 0.
ScoreStage score_stage(const char* operation, headlight_score_stage given) {
  if (given == HEADLIGHT_SCORES_MASKED) return ScoreStage::masked;
  return enumerated<ScoreStage>(operation, "scores_at", given, HEADLIGHT_SCORES_RAW, HEADLIGHT_SCORES_CAPPED);
}

}  // namespace

AttentionOptions attention_options(const char* operation, const headlight_attention_options* given) {
  const Fields fields(operation, "options", given);
  AttentionOptions options;
  if (!fields.are_given()) return options;
  options.causal =
      enumerated<Causal>(operation, "causal", fields->causal, HEADLIGHT_CAUSAL_NONE, HEADLIGHT_CAUSAL_BOTTOM_RIGHT);
  if (fields->align != HEADLIGHT_ALIGN_AS_CAUSAL) {
    options.align =
        enumerated<Align>(operation, "align", fields->align, HEADLIGHT_ALIGN_TOP_LEFT, HEADLIGHT_ALIGN_BOTTOM_RIGHT);
  }
  if (fields->window != nullptr) options.window = {fields->window->left, fields->window->right};
  options.chunk = fields->chunk;
  options.query_lengths = indices(operation, "query_lengths", fields->query_lengths);
  options.key_lengths = indices(operation, "key_lengths", fields->key_lengths);
  options.query_offsets = indices(operation, "query_offsets", fields->query_offsets);
  options.key_offsets = indices(operation, "key_offsets", fields->key_offsets);
  options.query_start = start(operation, "query_start", fields->query_start);
  options.key_start = start(operation, "key_start", fields->key_start);
  options.mask = boolean_mask(operation, fields);
  options.bias = optional_view<const float, 4>(operation, "bias", fields->bias);
  if (fields->scale != nullptr) options.scale = *fields->scale;
  if (fields->softcap != nullptr) options.softcap = *fields->softcap;
  options.alibi = optional_vector<const float>(operation, "alibi", fields->alibi);
  options.sinks = optional_vector<const float>(operation, "sinks", fields->sinks);
  options.scores = optional_view<float, 4>(operation, "scores", fields->scores);
  options.scores_at = score_stage(operation, fields->scores_at);
  if (fields->dropout != nullptr) options.dropout = dropout_of(*fields->dropout);
  options.log_sum_exp = optional_view<float, 3>(operation, "log_sum_exp", fields->log_sum_exp);
  options.probabilities = probabilities(operation, fields->probabilities);
  options.key_scales = optional_view<const float, 3>(operation, "key_scales", fields->key_scales);
  options.value_scales = optional_view<const float, 3>(operation, "value_scales", fields->value_scales);
  options.log_sum_exp_gradient =
      optional_view<const float, 3>(operation, "log_sum_exp_gradient", fields->log_sum_exp_gradient);
  return options;
}

Probabilities probabilities(const char* operation, const headlight_probabilities* given) {
  if (given == nullptr) return {};
  const Fields fields(operation, "probabilities", given, HEADLIGHT_C_FIELDS(headlight_probabilities));
  return {.per_head = optional_view<float, 4>(operation, "probabilities.per_head", fields->per_head),
          .averaged = optional_view<float, 3>(operation, "probabilities.averaged", fields->averaged),
          .rows = indices(operation, "probabilities.rows", fields->rows),
          .own_keys = fields->own_keys != 0};
}

TypedAttentionGradients attention_gradients(const char* operation, const headlight_attention_gradients* given) {
  required(operation, "gradients", given);
  const Fields fields(operation, "gradients", given, HEADLIGHT_C_FIELDS(headlight_attention_gradients));
  return {.query = optional_typed_view<4, void*>(operation, "gradients.query", fields->query),
          .key = optional_typed_view<4, void*>(operation, "gradients.key", fields->key),
          .value = optional_typed_view<4, void*>(operation, "gradients.value", fields->value),
          .bias = optional_view<float, 4>(operation, "gradients.bias", fields->bias),
          .sinks = optional_view<float, 1>(operation, "gradients.sinks", fields->sinks),
          .accumulate = fields->accumulate != 0};
}

AttentionOptions decoder_self_options(const char* operation, const headlight_attention_options* given) {
  AttentionOptions options = attention_options(operation, given);
  if (given == nullptr) options.causal = Causal::top_left;
  return options;
}

HeadAccess head_access(const char* operation, const headlight_head_access* given) {
  const Fields fields(operation, "heads", given);
  return {.outputs = optional_view<float, 3>(operation, "heads.outputs", fields->outputs),
          .silenced = indices(operation, "heads.silenced", fields->silenced),
          .scaled_outputs = optional_view<float, 3>(operation, "heads.scaled_outputs", fields->scaled_outputs)};
}

}  // namespace headlight::c
