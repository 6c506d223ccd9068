#include "c/attention_options.h"
#include "c/handles.h"
#include "c/training.h"
#include "headlight/analysis/attention_unfused.h"
#include "headlight/analysis/headlight_analysis.h"

namespace headlight::c {
namespace {

constexpr const char* kForward = "attention_unfused";
constexpr const char* kBackward = "attention_unfused_backward";
constexpr const char* kSavedState = "saved_state";

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_attention_unfused(headlight_engine* engine, const headlight_tensor* query,
                                             const headlight_tensor* key, const headlight_tensor* value,
                                             const headlight_tensor* out, const headlight_attention_options* options,
                                             headlight_error* error) {
  return attend(kForward, analysis::attention_unfused, engine, query, key, value, out, options, error);
}

headlight_status headlight_attention_unfused_backward(headlight_engine* engine, const headlight_tensor* query,
                                                      const headlight_tensor* key, const headlight_tensor* value,
                                                      const headlight_tensor* out_gradient,
                                                      const headlight_attention_gradients* gradients,
                                                      const headlight_attention_options* options,
                                                      headlight_error* error) {
  return call(kBackward, engine, error, [&](Engine& on) {
    analysis::attention_unfused_backward(
        on, view<const float, 4>(kBackward, "query", query), view<const float, 4>(kBackward, "key", key),
        view<const float, 4>(kBackward, "value", value), view<const float, 4>(kBackward, "out_gradient", out_gradient),
        attention_gradients(kBackward, gradients), attention_options(kBackward, options));
  });
}

headlight_status headlight_unfused_saved_state_create(const headlight_saved_state_options* options,
                                                      headlight_saved_state** saved, headlight_error* error) {
  return create(kSavedState, saved, error,
                [&] { return make_saved_state(kSavedState, options, analysis::unfused_attention()); });
}
