#include "mpi/call.h"

#include <algorithm>
#include <array>
#include <span>

#include "headlight/system.h"
#include "kernels/kernels.h"
#include "layers/shard_nodes.h"
#include "mpi/digest.h"
#include "mpi/distance_bias.h"
#include "mpi/estimate.h"
#include "ops/attention/masks.h"
#include "ops/check.h"
#include "runtime/costs.h"
#include "simd/integers.h"

namespace headlight::mpi {
namespace {

using layers::kRowCut;

// Options that have an axis of keys, or that one rank could not serve.
void refuse_options(std::string_view operation, const AttentionOptions& options) {
  const auto refuse = [&](bool given, const char* what) {
    if (given) ops::fail(operation, std::string("options.") + what + " is given, expected none over ranks");
  };
  refuse(options.mask.has_value(), "mask");
  refuse(options.probabilities.per_head || options.probabilities.averaged, "probabilities");
  refuse(!options.probabilities.rows.empty(), "probabilities.rows");
  refuse(static_cast<bool>(options.scores), "scores");
}

// Of any other bias a rank would have to hold what L · L pairs have.
void check_bias(std::string_view operation, const View<const float, 4>& bias, const AttentionShape& whole) {
  if (!bias || tells_distances(bias, whole.query_length, whole.key_length)) return;
  ops::fail(
      operation, "options.bias is ", ops::describe(bias.shape), " with strides ", ops::describe(bias.strides),
      ", expected none over ranks but one that tells distances alone, [1, Hq, Lq, Lk] with strides [any, any, -1, 1]");
}

ops::AttentionSizes check_whole(std::string_view operation, const AttentionShape& whole,
                                const AttentionOptions& options) {
  refuse_options(operation, options);
  check_bias(operation, options.bias, whole);
  if (whole.head_dim < 1 || whole.value_dim < 1) {
    ops::fail(operation, "head_dim is " + std::to_string(whole.head_dim) + " and value_dim " +
                             std::to_string(whole.value_dim) + ", expected at least 1");
  }
  static_cast<void>(ops::check_attention_shape(operation, whole));
  if (whole.key_value_heads < 1) ops::fail(operation, "key_value_heads is 0, expected at least 1");
  // Views of all that there is, at one address: options are checked against their shapes.
  static constexpr float kAnywhere = 0;
  const std::array<std::int64_t, 4> nowhere = {0, 0, 0, 1};
  const auto view = [&](std::int64_t length, std::int64_t heads) {
    return View<const float, 4>(&kAnywhere, {whole.batch, length, heads, 1}, nowhere);
  };
  AttentionOptions of_whole = options;
  of_whole.log_sum_exp = {};
  static_cast<void>(ops::check_attention_inputs(operation, view(whole.query_length, whole.query_heads),
                                                view(whole.key_length, whole.key_value_heads),
                                                view(whole.key_length, whole.key_value_heads), of_whole));
  return ops::check_attention_shape(operation, whole);
}

std::int64_t block_of(std::string_view operation, const ops::AttentionSizes& sizes, int shards, const Spread& spread) {
  if (spread.block < 0 || spread.block % kRowCut != 0) {
    ops::fail(operation, "spread.block is " + std::to_string(spread.block) + ", expected 0 or a multiple of " +
                             std::to_string(kRowCut));
  }
  const std::int64_t longer = std::max(sizes.query_length, sizes.key_length);
  return layers::block_length(spread.block, longer, shards);
}

int shard_count_of(std::string_view operation, int ranks, const Spread& spread) {
  if (spread.shards == 0) return ranks;
  if (spread.shards < 0 || spread.shards > layers::kMostShards) {
    ops::fail(operation, "spread.shards is " + std::to_string(spread.shards) + ", expected 0 to " +
                             std::to_string(layers::kMostShards));
  }
  return static_cast<int>(spread.shards);
}

int head_ranks_of(std::string_view operation, const ops::AttentionSizes& sizes, const AttentionOptions& options,
                  int ranks, const Spread& spread) {
  if (!(spread.flops_per_second > 0) || !(spread.bytes_per_second > 0) || !(spread.bytes_per_number > 0)) {
    ops::fail(operation,
              "spread has no speed, expected flops_per_second, bytes_per_second and bytes_per_number above 0");
  }
  const int asked = spread.head_ranks;
  if (asked == 0) return fastest_head_ranks(sizes, options, ranks, spread);
  if (asked < 0 || ranks % asked != 0 || sizes.key_value_heads % asked != 0) {
    ops::fail(operation, "spread.head_ranks is " + std::to_string(asked) + ", expected 0 or a divisor of the " +
                             std::to_string(ranks) + " ranks and of the " + std::to_string(sizes.key_value_heads) +
                             " heads of key and value");
  }
  return asked;
}

Holding holding_of(std::int64_t length, std::span<const std::int64_t> offsets, std::int64_t block, int shards,
                   const Grid& grid) {
  Holding holding;
  const int ranks = grid.ring * grid.head_ranks;
  holding.blocks = cut_into_blocks(length, offsets, block, shards);
  for (Block& of : holding.blocks) of.owner = rank_of_shard(of.owner, shards, ranks);
  holding.share = runs_of(holding.blocks, grid.rank_at(grid.row, grid.column), 1);
  holding.of_row = runs_of(holding.blocks, grid.rank_at(grid.row, 0), grid.head_ranks);
  return holding;
}

std::string text_of(const Start& start) {
  if (start.of_all) return std::to_string(*start.of_all);
  return start.of_each.empty() ? "not given" : digest_of(start.of_each);
}

}  // namespace

std::vector<int> Grid::column_ranks() const {
  std::vector<int> ranks;
  for (int r = 0; r < ring; ++r) ranks.push_back(rank_at(r, column));
  return ranks;
}

std::string digest_of_bias(const View<const float, 4>& bias, std::int64_t rows, std::int64_t keys) {
  if (!bias) return "not given";
  if (!tells_distances(bias, rows, keys)) {
    return ops::describe(bias.shape) + " with strides " + ops::describe(bias.strides);
  }
  Digest digest;
  for (std::int64_t h = 0; rows > 0 && keys > 0 && h < bias.extent(1); ++h) {
    const float* const first = &bias(0, h, rows - 1, 0);
    digest.add(std::as_bytes(std::span(first, static_cast<std::size_t>(rows + keys - 1))));
  }
  return ops::describe(bias.shape) + ", digest " + std::to_string(digest.sum());
}

AttentionOptions Call::options_of(const AttentionOptions& options) const noexcept {
  AttentionOptions here_options = options;
  const auto first = static_cast<std::size_t>(first_head());
  const auto count = static_cast<std::size_t>(here.query_heads);
  if (!options.alibi.empty()) here_options.alibi = options.alibi.subspan(first, count);
  if (!options.sinks.empty()) here_options.sinks = options.sinks.subspan(first, count);
  here_options.bias = heads_of_bias(options.bias, first_head(), here.query_heads);
  here_options.log_sum_exp = {};
  return here_options;
}

std::int64_t Call::share(std::int64_t length) const noexcept { return length / (grid.ring * grid.head_ranks); }

std::int64_t Call::share() const noexcept { return share(std::max(whole.query_length, whole.key_length)); }

// The longer a segment, the more often is a row's state still in a cache when its next keys come. But segments take
// memory: so they are long where that is little beside the share.
std::int64_t Call::segment_rows() const noexcept {
  constexpr std::int64_t kSegment = 512, kLongSegment = 1024, kSegmentsOfShare = 16;
  return std::min(block, share() >= kSegmentsOfShare * kLongSegment ? kLongSegment : kSegment);
}

// Two, or three where that is little beside the share: a rank that is a little behind the others then still has the
// next segment when it wants it.
std::size_t Call::segments_at_once() const noexcept {
  constexpr std::int64_t kOfShare = 12;
  return share() >= kOfShare * segment_rows() ? 3 : 2;
}

// Sums of floats take twice the memory of a gradient of 16 bits; two of them, for an eighth of the rows, a sixteenth of
// what the operands and gradients do. Products of a pass of fewer than 8192 rows would not hide the communication.
std::int64_t Call::passes(std::int64_t length, std::int64_t sums) const noexcept {
  constexpr std::int64_t kRowsOfPass = 8192, kMostPasses = 8;
  const std::int64_t of_two = std::clamp<std::int64_t>(share(length) / kRowsOfPass, 1, kMostPasses);
  return sums == 0 ? 1 : divide_up(sums * of_two, std::int64_t{2});
}

std::int64_t Call::rows_of_pass(std::int64_t length, std::int64_t passes) const noexcept {
  return round_up(divide_up(share(length), passes), kRowCut);
}

std::vector<Segment> Call::segments_of(const Holding& holding) const {
  std::vector<Segment> segments;
  for (const Block& of : holding.blocks) {
    for (std::int64_t at = 0; at < of.count; at += segment_rows()) {
      segments.push_back({of.first + at, std::min(segment_rows(), of.count - at), of.owner / grid.head_ranks, 0});
    }
  }
  return segments;
}

std::int64_t rows_at_once(const Engine& engine, const Call& call, std::int64_t heads, std::int64_t products) noexcept {
  constexpr double kNanoseconds = 1e8;
  constexpr double kMostRows = 1 << 30;
  const double of_thread = runtime::costs::kVectorProductsOfAttention * kernels::attention_kernels(engine.isa()).lanes;
  const double of_row = static_cast<double>(call.here.batch) * static_cast<double>(heads) *
                        static_cast<double>(products) * static_cast<double>(call.segment_rows());
  const double rows = kNanoseconds * of_thread * engine.threads() / std::max(of_row, 1.0);
  return std::max(static_cast<std::int64_t>(std::min(rows, kMostRows)) / kRowCut, std::int64_t{1}) * kRowCut;
}

Call make_call(std::string_view operation, const AttentionShape& whole, const AttentionOptions& options, int rank,
               int size, const Spread& spread) {
  if (size < 1 || rank < 0 || rank >= size) {
    ops::fail(operation, "rank is " + std::to_string(rank) + " of " + std::to_string(size) + ", expected one of them");
  }
  Call call;
  call.whole = check_whole(operation, whole, options);
  call.grid.head_ranks = head_ranks_of(operation, call.whole, options, size, spread);
  call.grid.ring = size / call.grid.head_ranks;
  call.grid.row = rank / call.grid.head_ranks;
  call.grid.column = rank % call.grid.head_ranks;
  const int shards = shard_count_of(operation, size, spread);
  call.block = block_of(operation, call.whole, shards, spread);
  call.packed = !options.query_offsets.empty();
  call.here = call.whole;
  call.here.query_heads /= call.grid.head_ranks;
  call.here.key_value_heads /= call.grid.head_ranks;
  call.heads = {.all = call.whole.query_heads, .first = call.first_head(), .stride = 1};
  call.queries = holding_of(whole.query_length, options.query_offsets, call.block, shards, call.grid);
  call.keys = holding_of(whole.key_length, ops::packed_key_offsets(options), call.block, shards, call.grid);
  return call;
}

Record record_of(std::string_view operation, const Engine& engine, const AttentionShape& whole,
                 const AttentionOptions& options, const Spread& spread) {
  const auto number = [](auto value) { return std::to_string(value); };
  const auto one_of = [](auto value) { return std::to_string(static_cast<int>(value)); };
  const std::array<std::int64_t, 7> shape = {whole.batch,       whole.query_length,    whole.key_length,
                                             whole.query_heads, whole.key_value_heads, whole.head_dim,
                                             whole.value_dim};
  return {{"headlight", system_info().version},
          {"the call", std::string(operation)},
          {"the instruction set", std::string(name(engine.isa()))},
          {"the numerics", std::string(name(engine.numerics()))},
          {"whole", ops::describe(shape)},
          {"spread.head_ranks", number(spread.head_ranks)},
          {"spread.block", number(spread.block)},
          {"spread.shards", number(spread.shards)},
          {"spread.flops_per_second", number(spread.flops_per_second)},
          {"spread.bytes_per_second", number(spread.bytes_per_second)},
          {"spread.bytes_per_number", number(spread.bytes_per_number)},
          {"options.causal", one_of(options.causal)},
          {"options.align", options.align ? one_of(*options.align) : "unset"},
          {"options.key_start", text_of(options.key_start)},
          {"options.query_start", text_of(options.query_start)},
          {"options.window", number(options.window.left) + ", " + number(options.window.right)},
          {"options.chunk", number(options.chunk)},
          {"options.query_lengths", digest_of(options.query_lengths)},
          {"options.key_lengths", digest_of(options.key_lengths)},
          {"options.query_offsets", digest_of(options.query_offsets)},
          {"options.key_offsets", digest_of(options.key_offsets)},
          {"options.scale", options.scale ? ops::text_of(*options.scale) : "unset"},
          {"options.softcap", ops::text_of(options.softcap)},
          {"options.alibi", digest_of(options.alibi)},
          {"options.sinks", digest_of(options.sinks)},
          {"options.bias", digest_of_bias(options.bias, whole.query_length, whole.key_length)},
          {"options.dropout.probability", ops::text_of(options.dropout.probability)},
          {"options.dropout.seed", number(options.dropout.seed)},
          {"options.dropout.stream", number(options.dropout.stream)}};
}

}  // namespace headlight::mpi
