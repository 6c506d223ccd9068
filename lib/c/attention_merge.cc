#include "headlight/attention_merge.h"

#include <new>

#include "c/handles.h"
#include "headlight/c/attention.h"
#include "runtime/parallel.h"

namespace headlight::c {
namespace {

constexpr const char* kMergeAttention = "merge_attention";

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_merge_attention(headlight_engine* engine, const headlight_tensor* const* outs,
                                           const headlight_tensor* const* log_sum_exps, size_t count,
                                           const headlight_tensor* out, const headlight_tensor* log_sum_exp,
                                           headlight_error* error) {
  return call(kMergeAttention, engine, error, [&](Engine& on) {
    runtime::ScratchLayout layout;
    const auto room = layout.add<AttentionPart>(count);
    const runtime::Scratch memory(on, layout.bytes(), kMergeAttention);
    const std::span parts(room.in(memory.data()), count);
    for (std::size_t p = 0; p < count; ++p) {
      const headlight_tensor& part_out = entry(kMergeAttention, "outs", outs, p);
      const headlight_tensor& part_rows = entry(kMergeAttention, "log_sum_exps", log_sum_exps, p);
      new (&parts[p]) AttentionPart{typed_view<4, const void*>(kMergeAttention, "outs", &part_out),
                                    view<const float, 3>(kMergeAttention, "log_sum_exps", &part_rows)};
    }
    merge_attention(on, parts, typed_view<4, void*>(kMergeAttention, "out", out),
                    optional_view<float, 3>(kMergeAttention, "log_sum_exp", log_sum_exp));
  });
}
