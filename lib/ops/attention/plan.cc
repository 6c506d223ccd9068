#include "ops/attention/plan.h"

#include <algorithm>

#include "kernels/attention/amx_shapes.h"
#include "kernels/kernels.h"
#include "ops/attention/short.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"

namespace headlight::ops {
namespace {

// Rows for which one copy of a block of keys and values is made: the more, the less it costs beside their products,
// while their queries and states must stay in the second-level cache beside that block, 256 KiB: so many bytes, half of
// a common one.
constexpr std::int64_t kRowBytes = 640 << 10;
// Where all keys are packed first and only read then: enough that reading a block of them from the second-level cache
// once for every tile, and from beyond it once for every row block, hides behind the products.
constexpr std::int64_t kRowBlock = 96;

// Below so many rows for each copy all keys are packed first instead, by all workers together, if that takes no more
// memory than this, for all heads and for one. (A head's keys and values beyond the second-level cache would be read
// from there once for each block of rows: 128 rows of one head on 64 Ki keys, two threads, 0.6 of one thread's speed.)
constexpr std::int64_t kFewRowsOfCopy = 768;
constexpr std::int64_t kMostBytesPackedFirst = 32 << 20;
constexpr std::int64_t kMostBytesOfHead = 1 << 20;

// Of a unit that finds its keys packed, at least so many.
constexpr std::int64_t kInPlaceTiles = 2;

// Of all heads of one sweep: their scores of a key block take 128 KiB at most.
constexpr std::int64_t kSweepRows = 64;

// Heads that lie apart are swept two at a time: as two streams memory is read faster than as one, and than as four, but
// for AMD's CPUs where keys are asked for line by line (kernels/attention/sweep_far-inl.h).
// Asking for the values of one head while its keys are read, and the other way round, gives as much with one head, but
// costs where keys and values come from the third-level cache. There a head by itself is better if the sums of its
// values stay in registers. Up to so many keys it is the number of calls that counts.
constexpr std::int64_t kStreams = 2;
constexpr std::int64_t kKeysTogether = 64;

// Of all keys and values, as floats.
double bytes_of_keys(const AttentionSizes& sizes) noexcept {
  return 4.0 * static_cast<double>(sizes.batch) * static_cast<double>(sizes.key_value_heads) *
         static_cast<double>(sizes.key_length) * static_cast<double>(sizes.head_dim + sizes.value_dim);
}

// One thread's time, from the products and what each row costs beside them, or from reading keys and values, whichever
// is longer: an order of magnitude for deciding whether other workers are worth waking.
double estimated_nanoseconds(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const double heads = static_cast<double>(sizes.batch) * static_cast<double>(sizes.query_heads);
  const double pairs = heads * static_cast<double>(sizes.query_length) * static_cast<double>(sizes.key_length);
  const double width = static_cast<double>(sizes.head_dim + sizes.value_dim);
  const double products =
      pairs * width / (runtime::costs::kVectorProductsOfAttention * kernels.lanes * kernels.numbers_of_word);
  const double bytes = bytes_of_keys(sizes);
  const double rows = heads * static_cast<double>(sizes.query_length) * runtime::costs::kAttentionRow;
  return std::max(products + rows,
                  bytes / (bytes < runtime::costs::kAttentionNearBytes ? runtime::costs::kAttentionReadingNear
                                                                       : runtime::costs::kAttentionReadingFar));
}

// Key/value heads that a unit of the routes in place sweeps together: all units of a sample about as many.
std::int64_t sweep_heads(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                         const AttentionTraits& traits, const AttentionPlan& plan) noexcept {
  std::int64_t most =
      std::min<std::int64_t>(kernels::kMaxSweepHeads, kSweepRows / std::max<std::int64_t>(plan.rows, 1));
  if (traits.heads_apart && sizes.key_length > kKeysTogether) {
    const bool stay_in_registers = plan.rows <= kernels.wide_rows && sizes.value_dim <= kernels.wide_columns;
    const bool from_near =
        !plan.from_far_memory && reads_memory(sizes, std::min(sizes.key_length, plan.key_block), kStreams);
    const bool one_stream = plan.from_far_memory && kernels.asks_one_by_one && !traits.reads_two_streams;
    most = std::min(most, stay_in_registers && (from_near || one_stream) ? 1 : kStreams);
  }
  // One block of keys cannot be split, nor can keys that come block by block: the heads must give every worker some
  // units.
  if ((plan.key_blocks == 1 || traits.by_block) && plan.workers > 1) {
    most = std::min(most, divide_up(sizes.batch * sizes.key_value_heads, 4 * plan.workers));
  }
  const std::int64_t units = divide_up(sizes.key_value_heads, std::max<std::int64_t>(most, 1));
  return divide_up(sizes.key_value_heads, std::max<std::int64_t>(units, 1));
}

// Whether so many units of each head are enough for each worker that they can help each other, and at the end none
// waits long. (Four are enough for long heads; with eight a head of some hundred rows would be cut for nothing.)
bool fill_workers(std::int64_t heads, std::int64_t units_of_head, int workers) noexcept {
  constexpr std::int64_t kLeast = 4;
  constexpr std::int64_t kEven = 16;
  const std::int64_t units = heads * units_of_head;
  return workers == 1 || (units >= kLeast * workers && round_up(units, workers) - units <= units / kEven);
}

// Key/value heads of all samples. An empty batch, of rows without end perhaps, would never fill the workers.
std::int64_t heads_or_one(const AttentionSizes& sizes) noexcept {
  return std::max<std::int64_t>(sizes.batch * sizes.key_value_heads, 1);
}

std::int64_t most_rows_of_copy(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                               const AttentionPlan& plan) noexcept {
  const std::int64_t floats_of_row = sizes.head_dim + plan.padded_value_dim + kernels.lanes;
  return kRowBytes / (floats_of_row * static_cast<std::int64_t>(sizeof(float)));
}

// Rows of a unit that packs its keys for itself: as many as the cache holds and the workers can share evenly.
struct CopyRows {
  std::int64_t rows;
  bool workers_are_full;
};
CopyRows rows_of_copy(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                      const AttentionPlan& plan) noexcept {
  const std::int64_t most = most_rows_of_copy(kernels, sizes, plan);
  const std::int64_t heads = heads_or_one(sizes);
  std::int64_t units = std::max<std::int64_t>(divide_up(plan.rows, std::max(most, kRowBlock)), 1);
  while (!fill_workers(heads, units, plan.workers) && units < divide_up(plan.rows, kRowBlock)) ++units;
  const bool workers_are_full = fill_workers(heads, units, plan.workers);
  // A copy that a core makes for a few rows costs nothing where it would have been idle.
  while (heads * units < plan.workers && units < divide_up(plan.rows, kInPlaceTiles * kernels.query_rows)) ++units;
  return {round_up(divide_up(plan.rows, units), kernels.query_rows), workers_are_full};
}

AttentionRoute choose_route(const kernels::AttentionKernels& kernels, std::int64_t most_rows_in_place,
                            std::int64_t heads, const AttentionSizes& sizes, const AttentionTraits& traits,
                            const AttentionPlan& plan, const CopyRows& copy) noexcept {
  if (plan.rows <= most_rows_in_place) {
    const std::int64_t units = heads / std::max<std::int64_t>(plan.unit_heads, 1);
    const bool split = !traits.by_block && plan.workers > 1 && units < 4 * plan.workers && plan.key_blocks > 1;
    return split ? AttentionRoute::split_keys : AttentionRoute::in_place;
  }
  const bool copies_serve = copy.workers_are_full && copy.rows >= std::min(plan.rows, kFewRowsOfCopy);
  // Keys that are filled up would reach into the next sequence's.
  const bool filled_keys_meet = kernels.keys_at_once > 1 && traits.with_sequences;
  if (plan.workers == 1 || traits.by_block || copies_serve || filled_keys_meet) return AttentionRoute::packed_by_block;
  const double of_head =
      4.0 * static_cast<double>(sizes.key_length) * static_cast<double>(sizes.head_dim + plan.padded_value_dim);
  const bool fits = of_head <= kMostBytesOfHead && static_cast<double>(heads) * of_head <= kMostBytesPackedFirst;
  return fits ? AttentionRoute::packed_first : AttentionRoute::packed_by_block;
}

std::int64_t rows_of_unit(const AttentionPlan& plan, std::int64_t heads, const kernels::AttentionKernels& kernels,
                          const CopyRows& copy) noexcept {
  if (plan.route == AttentionRoute::packed_by_block) return copy.rows;
  const int query_rows = kernels.query_rows;
  if (plan.route != AttentionRoute::packed_first) return kInPlaceTiles * query_rows;
  // Smaller row blocks where there would be too few of them for the workers.
  const std::int64_t tiles = divide_up(plan.rows, query_rows);
  std::int64_t block_tiles = std::max<std::int64_t>(kRowBlock, kernels.call_rows) / query_rows;
  while (block_tiles > 1 && heads * divide_up(tiles, block_tiles) < 8 * plan.workers) block_tiles /= 2;
  return even_share(tiles, block_tiles) * query_rows;
}

// Of values that take several panels a copy pays from more rows on than that.
constexpr std::int64_t kRowsOfWideCopy = 32;

// A copy of the values with its rows side by side costs a pass over them and saves translating a page for every row,
// which pays from some hundred rows on. It pays much sooner where a vector would lie across two cache lines, where rows
// need several panels, or where they end within a vector.
bool values_want_packing(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                         const AttentionTraits& traits, std::int64_t rows) noexcept {
  return rows >= 192 || !traits.values_aligned || (sizes.value_dim > kernels.value_panel && rows > kRowsOfWideCopy) ||
         sizes.value_dim % kernels.lanes != 0;
}

// A row of scores more than it holds where rows a power of two apart would share their sets of the first cache level.
std::int64_t scores_stride(std::int64_t scores, const kernels::AttentionKernels& kernels) noexcept {
  return scores % 128 == 0 ? scores + kernels.lanes : scores;
}

void lay_out_worker(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                    const AttentionTraits& traits, AttentionPlan& plan) noexcept {
  const std::int64_t rows = plan.row_block * plan.unit_heads;
  const std::int64_t tile_rows = std::min<std::int64_t>(kernels.query_rows, plan.row_block) * plan.unit_heads;
  const bool in_place = plan.route == AttentionRoute::in_place || plan.route == AttentionRoute::split_keys;
  plan.scores = plan.for_worker<float>(in_place || kernels.call_blocks == 1
                                           ? tile_rows * plan.scores_stride
                                           : kernels::tile_block_floats(plan.key_words, sizes.value_dim));
  const bool shows_rows = traits.with_probabilities || traits.with_scores;
  const std::int64_t floats_of_key = std::max(sizes.head_dim, plan.key_words);
  plan.panel = plan.for_worker<float>(shows_rows ? kernels.key_panel * floats_of_key + kernels.lanes : 0);
  plan.query = plan.for_worker<float>(traits.copies_queries || shows_rows ? rows * floats_of_key : 0);
  plan.state_maximum = plan.for_worker<float>(rows);
  plan.state_sums = plan.for_worker<float>(rows * kernels.lanes);
  plan.state_out = plan.for_worker<float>(rows * plan.padded_value_dim);
  plan.final_sum = plan.for_worker<float>(rows);
  plan.value_sums =
      plan.for_worker<float>(plan.key_blocks > 1 || traits.with_sinks ? tile_rows * plan.padded_value_dim : 0);
  const bool sweeps_tiles = kernels.keys_at_once > 1 && plan.row_block <= kernels.sweep_rows;
  plan.tile_room = plan.for_worker<float>(sweeps_tiles ? kernels::floats_of_tile_sweep(tile_rows, plan.key_words) : 0);
  plan.intervals = plan.for_worker<KeyInterval>(plan.row_block);
  plan.seen_begin = plan.for_worker<std::int32_t>(std::min<std::int64_t>(plan.row_block, kernels.call_rows));
  plan.seen_end = plan.for_worker<std::int32_t>(std::min<std::int64_t>(plan.row_block, kernels.call_rows));
  plan.row_modifiers =
      room_for_modifiers(plan, traits.with_mask ? rows : 0, traits.with_bias ? rows : 0, traits.with_slopes ? rows : 0);
  plan.dropout_places = plan.for_worker<kernels::DropoutPlace>(traits.with_dropout ? rows : 0);
  plan.tiles = plan.for_worker<TileState>(divide_up(plan.row_block, rows_of_call(kernels, plan.row_block)));
  const bool packs = plan.route == AttentionRoute::packed_by_block;
  plan.packed_keys = plan.for_worker<float>(packs ? plan.packed_keys_size : 0);
  plan.packed_values = plan.for_worker<float>(packs ? plan.packed_values_size : 0);
}

// Two numbers of a row and head, from which its probabilities follow, and the numbers of the rows asked for.
void lay_out_saved_rows(const AttentionSizes& sizes, const AttentionTraits& traits, AttentionPlan& plan) noexcept {
  constexpr double kPadding = 256;  // bytes
  const auto heads = static_cast<double>(sizes.batch * sizes.query_heads);
  const double of_asked = static_cast<double>(traits.probability_rows) * (8 * heads + 8) + kPadding;
  plan.saves_all_rows = 4 * of_asked >= 3 * static_cast<double>(sizes.query_length) * 8 * heads;
  plan.saved_rows = plan.saves_all_rows ? sizes.query_length : traits.probability_rows;
  const std::int64_t saved = traits.with_probabilities ? sizes.batch * sizes.query_heads * plan.saved_rows : 0;
  plan.asked_rows = plan.for_call<std::int64_t>(plan.saves_all_rows ? 0 : traits.probability_rows);
  plan.row_maximum = plan.for_call<float>(saved);
  plan.row_sum = plan.for_call<float>(saved);
}

// What the sizes alone decide.
AttentionPlan sized_plan(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  AttentionPlan plan{};
  plan.rows = sizes.query_length * sizes.group;
  plan.key_block = kernels.key_block > 0 ? kernels.key_block : attention_key_block(sizes);
  plan.key_blocks = divide_up(sizes.key_length, plan.key_block);
  plan.scores_stride = scores_stride(
      std::min(plan.key_block, kernels::filled_up(sizes.key_length, std::max(kernels.lanes, kernels.keys_at_once))),
      kernels);
  plan.padded_value_dim = round_up(sizes.value_dim, kernels.lanes);
  plan.key_words = kernels::filled_up(sizes.head_dim / kernels.numbers_of_word, kernels.words_at_once);
  return plan;
}

std::int64_t rows_in_place(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  return kernels.sweeps_parts || sizes.value_dim % kernels.lanes == 0 ? kernels.sweep_rows : 0;
}

// Of how many keys all may be packed first.
std::int64_t keys_packed_first(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes) noexcept {
  const std::int64_t of_key =
      std::max<std::int64_t>(4 * (sizes.head_dim + round_up(sizes.value_dim, kernels.lanes)), 1);
  const std::int64_t heads = heads_or_one(sizes);
  return std::min(kMostBytesOfHead / of_key, kMostBytesPackedFirst / heads / of_key);
}

// The most rows, up to those of the plan, that copies of rows_of_copy() would not serve, whatever number of workers:
// choose_route() has all keys packed first for no more. All of them where it would take long to find out.
std::int64_t most_rows_packed_first(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                                    const AttentionPlan& plan, int threads) noexcept {
  const std::int64_t heads = heads_or_one(sizes);
  const std::int64_t of_copy = std::max(most_rows_of_copy(kernels, sizes, plan), kRowBlock);
  const std::int64_t of_few = (kFewRowsOfCopy - 1) / kernels.query_rows * kernels.query_rows;
  const std::int64_t most_units = divide_up(plan.rows, kRowBlock);
  // At so many units for each worker none waits: fill_workers().
  constexpr double kMostTries = 1 << 16, kUnitsOfWorker = 16;
  const double of_worker = 1 + kUnitsOfWorker * threads / static_cast<double>(heads);
  if (threads * static_cast<double>(divide_up(plan.rows, of_copy)) * of_worker > kMostTries) return plan.rows;
  std::int64_t most = 0;
  for (int workers = 2; workers <= threads && most < plan.rows; ++workers) {
    for (std::int64_t least = divide_up(plan.rows, of_copy); least * of_copy > most; --least) {
      std::int64_t units = least;  // of (least − 1) · of_copy + 1 to least · of_copy rows
      while (units < most_units && !fill_workers(heads, units, workers)) ++units;
      std::int64_t rows = std::min(plan.rows, least * of_copy);
      if (fill_workers(heads, units, workers)) rows = units == 1 ? 0 : std::min(rows, units * of_few);
      if (rows > (least - 1) * of_copy) most = std::max(most, rows);
    }
  }
  return most;
}

// What lies where, once it is decided who computes what.
void lay_out(const kernels::AttentionKernels& kernels, const AttentionSizes& sizes, const AttentionTraits& traits,
             AttentionPlan& plan) noexcept {
  const std::int64_t heads = sizes.batch * sizes.key_value_heads;
  const bool packed = plan.route == AttentionRoute::packed_by_block || plan.route == AttentionRoute::packed_first;
  plan.call_keys = packed && !traits.by_block ? plan.key_block * kernels.call_blocks : plan.key_block;
  // Pairs of keys share words in panels alone.
  plan.pack_values = packed && (kernels.numbers_of_word > 1 || values_want_packing(kernels, sizes, traits, plan.rows));
  plan.value_panel_width = std::min<std::int64_t>(kernels.value_panel, plan.padded_value_dim);
  plan.packed_value_dim = divide_up(sizes.value_dim, kernels.value_panel) * plan.value_panel_width;
  const std::int64_t packed_keys =
      plan.route == AttentionRoute::packed_by_block ? std::min(plan.call_keys, sizes.key_length) : sizes.key_length;
  // The last panel of a sequence is only as wide as keys are left, and the tiles read whole vectors of it.
  const std::int64_t filled_keys = kernels::filled_up(packed_keys, kernels.keys_at_once);
  if (packed) {
    plan.packed_keys_size = round_up(filled_keys * std::max(sizes.head_dim, plan.key_words) + kernels.lanes, 32);
  }
  if (plan.pack_values) plan.packed_values_size = filled_keys * plan.packed_value_dim;
  lay_out_worker(kernels, sizes, traits, plan);
  const bool all = plan.route == AttentionRoute::packed_first;
  plan.all_packed_keys = plan.for_call<float>(all ? heads * plan.packed_keys_size : 0);
  plan.all_packed_values = plan.for_call<float>(all ? heads * plan.packed_values_size : 0);
  const std::int64_t partials = plan.route == AttentionRoute::split_keys ? heads * plan.key_blocks * plan.rows : 0;
  plan.partial_maximum = plan.for_call<float>(partials);
  plan.partial_sums = plan.for_call<float>(partials * kernels.lanes);
  plan.partial_out = plan.for_call<float>(partials * plan.padded_value_dim);
  lay_out_saved_rows(sizes, traits, plan);
}

}  // namespace

AttentionTraits traits_of(const AttentionOptions& options, const AttentionSizes& sizes,
                          const AttentionScale& scale) noexcept {
  AttentionTraits traits;
  traits.with_probabilities = options.probabilities.per_head || options.probabilities.averaged;
  if (traits.with_probabilities) traits.probability_rows = rows_asked(options.probabilities, sizes.query_length);
  traits.copies_queries = scale.query_factor != 1.0f || (sizes.group > 1 && sizes.query_length > 1);
  traits.with_mask = options.mask.has_value();
  traits.with_bias = static_cast<bool>(options.bias);
  traits.with_slopes = !options.alibi.empty();
  traits.with_sinks = !options.sinks.empty();
  traits.with_scores = static_cast<bool>(options.scores);
  traits.with_dropout = options.dropout.probability != 0;
  traits.with_sequences = !options.query_offsets.empty();
  return traits;
}

// Keys and values of a block take at most 256 KiB, a quarter of a common second-level cache, unless head_dim is large.
std::int64_t attention_key_block(const AttentionSizes& sizes) noexcept {
  const std::int64_t width = sizes.head_dim + sizes.value_dim;
  return width <= 128 ? 512 : width <= 256 ? 256 : 128;
}

AttentionPlan plan_attention(const Engine& engine, const kernels::AttentionKernels& kernels,
                             const AttentionSizes& sizes, const AttentionTraits& traits) noexcept {
  AttentionPlan plan = sized_plan(kernels, sizes);
  const std::int64_t heads = sizes.batch * sizes.key_value_heads;
  const std::int64_t tiles = divide_up(plan.rows, kernels.query_rows);
  const std::int64_t most_units = heads * std::max(tiles, plan.key_blocks);
  plan.workers = runtime::workers_for(engine, most_units, estimated_nanoseconds(kernels, sizes));
  const std::int64_t most_rows_in_place = rows_in_place(kernels, sizes);
  plan.from_far_memory = bytes_of_keys(sizes) > runtime::costs::kAttentionFarBytes;
  plan.follows_memory = plan.from_far_memory && traits.follows_memory && !traits.heads_apart;
  plan.unit_heads = plan.rows <= most_rows_in_place ? sweep_heads(kernels, sizes, traits, plan) : 1;
  const CopyRows copy = rows_of_copy(kernels, sizes, plan);
  plan.route = choose_route(kernels, most_rows_in_place, heads, sizes, traits, plan, copy);
  plan.row_block = std::min(plan.rows, rows_of_unit(plan, heads, kernels, copy));
  lay_out(kernels, sizes, traits, plan);
  return plan;
}

std::size_t most_plan_bytes(const Engine& engine, const kernels::AttentionKernels& kernels, const AttentionSizes& sizes,
                            const AttentionTraits& traits) noexcept {
  std::size_t most = 0;
  const auto of_length = [&](std::int64_t length) {
    AttentionSizes fewer = sizes;
    fewer.query_length = std::min(sizes.query_length, length);
    fewer.key_length = std::min(sizes.key_length, length);
    return fewer;
  };
  // Those that are swept where they lie are of a few lengths.
  const std::int64_t swept = rows_in_place(kernels, sizes) / sizes.group;
  for (std::int64_t length = 1; length <= std::min(sizes.query_length, swept); ++length) {
    most = std::max(most, plan_attention(engine, kernels, of_length(length), traits).bytes());
  }
  const auto of_packed = [&](AttentionRoute route, int workers, const AttentionSizes& longest, std::int64_t of_unit) {
    if (longest.query_length == 0) return;
    AttentionPlan plan = sized_plan(kernels, longest);
    plan.route = route;
    plan.workers = workers;
    plan.unit_heads = 1;
    plan.row_block = std::min(plan.rows, round_up(of_unit, std::int64_t{kernels.query_rows}));
    plan.scores_stride = std::min(plan.key_block, longest.key_length + kernels.keys_at_once) + 2 * kernels.lanes;
    lay_out(kernels, longest, traits, plan);
    static_cast<void>(plan.for_worker<std::byte>(128));  // fewer rows may be more calls' by one
    most = std::max(most, plan.bytes());
  };
  // As rows_of_copy() and rows_of_unit() have them at most: one worker all, each of several a fourth of its share, or
  // few.
  const int threads = engine.threads();
  const AttentionPlan all = sized_plan(kernels, sizes);
  const std::int64_t of_copy = std::max(most_rows_of_copy(kernels, sizes, all), kRowBlock);
  of_packed(AttentionRoute::packed_by_block, 1, sizes, of_copy);
  if (threads == 1) return most;
  const AttentionSizes packed = of_length(keys_packed_first(kernels, sizes));
  const std::int64_t heads = heads_or_one(sizes);
  int copying = threads;
  if (all.rows < kFewRowsOfCopy && packed.key_length == sizes.key_length && kernels.keys_at_once == 1) {
    while (!fill_workers(heads, 1, copying)) --copying;  // so few rows have one copy, or all keys are packed first
  }
  of_packed(AttentionRoute::packed_by_block, copying, sizes,
            std::min(of_copy,
                     std::max(kRowBlock, divide_up(all.rows * heads, std::int64_t{4} * copying)) + kernels.query_rows));
  const std::int64_t rows = most_rows_packed_first(kernels, packed, sized_plan(kernels, packed), threads);
  of_packed(AttentionRoute::packed_first, threads, of_length(std::min(packed.query_length, rows / sizes.group)),
            std::max<std::int64_t>(kRowBlock, kernels.call_rows));
  return most;
}

}  // namespace headlight::ops
