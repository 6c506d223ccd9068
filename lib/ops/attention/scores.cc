#include <algorithm>

#include "ops/attention/shown_rows.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::ops {
namespace {

// The modifiers up to the stage asked for.
kernels::ScoreModifiers modifiers_of(const AttentionCall& call) noexcept {
  AttentionOptions options = call.options;
  if (options.scores_at != ScoreStage::masked) {
    options.mask.reset();
    options.bias = {};
    options.alibi = {};
  }
  if (options.scores_at == ScoreStage::raw) options.softcap = 0;
  return score_modifiers(options, call.scale.exponent_scale);
}

// All tiles of one head's rows and one panel of keys, key … key + keys − 1.
void write_panel(const AttentionCall& call, int worker, const ShownRows& rows, std::int64_t head, std::int64_t key,
                 std::int64_t keys, const kernels::ScoreModifiers& modifiers) noexcept {
  std::int32_t begin[kMaxRowsOfTile];
  std::int32_t end[kMaxRowsOfTile];
  float* to[kMaxRowsOfTile];
  const bool hides = call.options.scores_at == ScoreStage::masked;
  const auto* intervals = part_of(call, worker, call.plan.intervals);
  kernels::ScoreTile tile{};
  tile.panel = part_of(call, worker, call.plan.panel);
  tile.keys = keys;
  tile.seen = {begin, end, false};
  tile.modifiers = modifiers;
  tile.modifiers.first_key = key;
  tile.factor = natural_factor(modifiers);
  tile.rows = to;
  for (std::int64_t first = 0; first < rows.count(); first += call.kernels.query_rows) {
    const std::int64_t count = std::min<std::int64_t>(call.kernels.query_rows, rows.count() - first);
    tile.query = {part_of(call, worker, call.plan.query) + first * call.plan.key_words, call.plan.key_words, count,
                  call.plan.key_words};
    row_modifiers(call, worker).give(call.options, first, tile.modifiers);
    for (std::int64_t r = 0; r < count; ++r) {
      const KeyInterval seen = hides ? intervals[first + r] : KeyInterval{key, key + keys};
      begin[r] = static_cast<std::int32_t>(std::clamp<std::int64_t>(seen.begin - key, 0, keys));
      end[r] = static_cast<std::int32_t>(std::clamp<std::int64_t>(seen.end - key, 0, keys));
      to[r] = &call.options.scores(rows.sample, head, rows.first + first + r, key);
    }
    call.kernels.score_tile(tile);
  }
}

}  // namespace

void write_scores(Engine& engine, const AttentionCall& call) noexcept {
  const kernels::ScoreModifiers modifiers = modifiers_of(call);
  const auto write = [&](const ShownRows& rows, std::int64_t first_key, std::int64_t last_key, int worker) {
    find_intervals(call, worker, rows);
    for (std::int64_t head = 0; head < call.sizes.query_heads; ++head) {
      take_head(call, worker, rows, head);
      for (std::int64_t key = first_key; key < last_key; key += call.kernels.key_panel) {
        const std::int64_t keys = std::min<std::int64_t>(call.kernels.key_panel, last_key - key);
        float* const panel = part_of(call, worker, call.plan.panel);
        call.kernels.pack_keys(call.keys.block(rows.sample, head / call.sizes.group, key, keys).key, keys,
                               call.sizes.head_dim, panel);
        clear_behind_panels(call.kernels, panel + keys * call.plan.key_words, keys);
        write_panel(call, worker, rows, head, key, keys, modifiers);
      }
    }
  };
  for_shown_rows(engine, call, {}, false, write);
}

}  // namespace headlight::ops
