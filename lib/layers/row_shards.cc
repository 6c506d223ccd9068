#include "headlight/row_shards.h"

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "headlight/out_of_memory.h"
#include "layers/row_distribution.h"
#include "layers/shard_nodes.h"
#include "ops/check.h"
#include "ops/offsets_check.h"

namespace headlight {

namespace {

constexpr std::string_view kRowShards = "RowShards";

void check_lengths(const RowShardsOptions& options) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto check = [](std::string_view name, std::int64_t value) {
    if (value >= 0 && value <= kMost) return;
    ops::fail(kRowShards, name, " is ", value, ", expected 0 to 2^40");
  };
  check("length", options.length);
  check("memory_length", options.memory_length);
  check("batch", options.batch);
  if (options.shards < 1 || options.shards > layers::kMostShards) {
    ops::fail(kRowShards, "shards is ", options.shards, ", expected 1 to ", layers::kMostShards);
  }
  if (options.block < 0 || options.block % layers::kRowCut != 0) {
    ops::fail(kRowShards, "block is ", options.block, ", expected 0 or a multiple of ", layers::kRowCut);
  }
  const auto check_offsets = [&](std::string_view name, std::span<const std::int64_t> offsets, std::int64_t length) {
    if (offsets.empty()) return;
    ops::check_offsets(kRowShards, name, offsets, length, "its length");
    if (options.batch != 1) ops::fail(kRowShards, name, " is given, expected a batch of 1");
  };
  check_offsets("offsets", options.offsets, options.length);
  check_offsets("memory_offsets", options.memory_offsets, options.memory_length);
}

struct Distribution {
  std::vector<RowRun> rows;
  std::vector<RowShards::Part> parts;
};

Distribution distribute(const RowShardsOptions& options, const RowRun& held, std::int64_t length,
                        std::span<const std::int64_t> offsets) {
  const auto blocks = layers::cut_into_blocks(length, offsets, options.block, static_cast<int>(options.shards));
  const auto first = static_cast<int>(held.first), count = static_cast<int>(held.count);
  Distribution distribution = {layers::runs_of(blocks, first, count), {}};
  for (int shard = 0; shard < count; ++shard) {
    for (const RowRun& run : layers::runs_of(blocks, first + shard, 1)) {
      distribution.parts.push_back({shard, layers::place_in(distribution.rows, run.first), run.count, run.first});
    }
  }
  return distribution;
}

}  // namespace

RowShards::RowShards(std::vector<Parameter> parameters, const RowShardsOptions& options)
    : RowShards(std::move(parameters), options, {0, options.shards}) {}

RowShards::RowShards(std::vector<Parameter> parameters, const RowShardsOptions& options, const RowRun& held)
    : options_(options), held_(held) {
  check_lengths(options);
  if (held.first < 0 || held.count < 0 || held.first > options.shards - held.count) {
    ops::fail(kRowShards, "held has ", held.count, " shards from number ", held.first, " on, expected some of ",
              options.shards);
  }
  const std::int64_t longer = std::max(options.length, options.memory_length);
  options_.block = layers::block_length(options.block, longer, options.shards);
  try {
    offsets_.assign(options.offsets.begin(), options.offsets.end());
    memory_offsets_.assign(options.memory_offsets.begin(), options.memory_offsets.end());
    options_.offsets = offsets_;
    options_.memory_offsets = memory_offsets_;
    Distribution distribution = distribute(options_, held, options_.length, offsets_);
    rows_ = std::move(distribution.rows);
    parts_ = std::move(distribution.parts);
    if (options_.memory_length == 0) {
      options_.memory_length = options_.length;
      options_.memory_offsets = options_.offsets;
    }
    distribution = distribute(options_, held, options_.memory_length, options_.memory_offsets);
    memory_rows_ = std::move(distribution.rows);
    memory_parts_ = std::move(distribution.parts);
    row_count_ = layers::rows_of(rows_);
    memory_row_count_ = layers::rows_of(memory_rows_);
    lay_out(std::move(parameters));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(kRowShards, static_cast<std::size_t>(held.count) * elements_ * sizeof(float));
  }
}

void RowShards::lay_out(std::vector<Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    if (parameter.gradient.size() != parameter.values.size()) {
      ops::fail(kRowShards, "parameter ", parameter.name, " has no gradient, expected those of a layer in training");
    }
    places_.push_back({parameter.gradient, elements_});
    elements_ += parameter.gradient.size();
  }
  std::sort(places_.begin(), places_.end(),
            [](const Place& a, const Place& b) { return std::less<>()(a.gradient.data(), b.gradient.data()); });
  memory_.resize(static_cast<std::size_t>(held_.count) * elements_);
}

ShardedAttention::ShardedAttention(RowShards& rows) : rows_(&rows) {
  if (rows.count() == rows.options().shards) return;
  ops::fail("ShardedAttention", "rows holds ", rows.count(), " shards, expected all ", rows.options().shards);
}

std::int64_t ShardedAttention::kept_columns(std::int64_t key_length, const AttentionOptions& options) const noexcept {
  return fused_attention().kept_columns(key_length, options);
}

void ShardedAttention::forward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                               View<const float, 4> value, View<float, 4> out, View<float, 4> kept,
                               const AttentionOptions& options) const {
  fused_attention().forward(engine, query, key, value, out, kept, options);
}

void ShardedAttention::backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                View<const float, 4> value, View<const float, 4> out, View<const float, 3> log_sum_exp,
                                View<float, 4> kept, View<const float, 4> out_gradient,
                                const AttentionGradients& gradients, const AttentionOptions& options) const {
  fused_attention().backward(engine, query, key, value, out, log_sum_exp, kept, out_gradient, gradients, options);
}

}  // namespace headlight
