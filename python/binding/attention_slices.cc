#include "attention_slices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "interruptible.h"
#include "view_parts.h"

namespace headlight::python {
namespace {

// Rows of a head that are computed together at least: fewer would pack its keys too often.
constexpr std::int64_t kFewestRows = 192;

struct Range {
  std::int64_t first, count;
};

// The part of an axis; nothing of a view that is not given, and all of an axis that is broadcast.
template <class T, int Rank>
View<T, Rank> part(View<T, Rank> view, int axis, Range range) {
  const auto at = static_cast<std::size_t>(axis);
  if (!view || (view.shape[at] == 1 && range.count != 1)) return view;
  if (view.shape[at] > 1) view.data += range.first * view.strides[at];
  view.shape[at] = std::min(view.shape[at], range.count);
  return view;
}

template <class Pointer>
AnyTypedView<4, Pointer> part(const AnyTypedView<4, Pointer>& view, int axis, Range range) {
  return along(view, static_cast<std::size_t>(axis), range.first, range.count);
}

template <class T>
std::span<T> part(std::span<T> list, Range range) {
  return list.empty() ? list
                      : list.subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count));
}

// Of mask, bias and all outputs the part along one of the axes [B, Hq, Lq, Lk].
void take_part(AttentionOptions& options, int axis, Range range) {
  if (options.mask) options.mask->entries = part(options.mask->entries, axis, range);
  options.bias = part(options.bias, axis, range);
  options.log_sum_exp = part(options.log_sum_exp, axis, range);
  options.probabilities.per_head = part(options.probabilities.per_head, axis, range);
}

AttentionOptions of_samples(AttentionOptions options, Range samples) {
  take_part(options, 0, samples);
  options.query_lengths = part(options.query_lengths, samples);
  options.key_lengths = part(options.key_lengths, samples);
  options.query_start.of_each = part(options.query_start.of_each, samples);
  options.key_start.of_each = part(options.key_start.of_each, samples);
  return options;
}

AttentionOptions of_heads(AttentionOptions options, Range query_heads) {
  take_part(options, 1, query_heads);
  options.slopes = part(options.slopes, query_heads);
  options.sinks = part(options.sinks, query_heads);
  return options;
}

bool broadcasts(const std::array<std::int64_t, 4>& shape, const std::array<std::int64_t, 4>& scores) noexcept {
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (shape[axis] != 1 && shape[axis] != scores[axis]) return false;
  }
  return true;
}

bool one_each(std::span<const std::int64_t> list, std::int64_t batch, std::int64_t most) noexcept {
  return list.empty() || (static_cast<std::int64_t>(list.size()) == batch &&
                          std::all_of(list.begin(), list.end(), [&](auto one) { return one >= 0 && one <= most; }));
}

bool one_for_each_head(std::span<const float> list, std::int64_t heads) noexcept {
  return list.empty() || static_cast<std::int64_t>(list.size()) == heads;
}

bool are_allowed(std::span<const float> slopes, std::span<const float> sinks) noexcept {
  return std::all_of(slopes.begin(), slopes.end(), [](float slope) { return std::isfinite(slope); }) &&
         std::all_of(sinks.begin(), sinks.end(), [](float sink) { return sink < HUGE_VALF; });
}

// Where rows and keys may start, and how many there may be, so that they stand before kLongestChunk: a longer chunk is
// no other to them, and by one of that many positions they may be moved without leaving 2⁶⁰.
constexpr std::int64_t kFurthest = std::int64_t{1} << 58, kLongestChunk = std::int64_t{1} << 59;

bool can_move(const Start& start, std::int64_t batch) noexcept {
  return (!start.of_all || (*start.of_all >= 0 && *start.of_all <= kFurthest)) &&
         one_each(start.of_each, batch, kFurthest);
}

bool has_packed_sequences(const AttentionOptions& options) noexcept {
  return !options.query_offsets.empty() || !options.key_offsets.empty();
}

// Whether options speak of each sample and head by itself, and are such as the engine takes: what it would refuse is
// handed to it whole, so that its sentence speaks of the whole.
bool can_cut(const AttentionOptions& options, const std::array<std::int64_t, 4>& scores) {
  const auto [batch, heads, rows, keys] = scores;
  return options.dropout.probability == 0 && (batch == 1 || !has_packed_sequences(options)) &&
         (!options.mask || broadcasts(options.mask->entries.shape, scores)) &&
         (!options.bias || broadcasts(options.bias.shape, scores)) && one_for_each_head(options.slopes, heads) &&
         one_for_each_head(options.sinks, heads) && are_allowed(options.slopes, options.sinks) &&
         one_each(options.query_lengths, batch, rows) && one_each(options.key_lengths, batch, keys) &&
         can_move(options.query_start, batch) && can_move(options.key_start, batch) && rows <= kFurthest &&
         keys <= kFurthest && options.chunk >= 0;
}

// Whether the rows of out that are written first leave alone what is read for the others.
bool may_be_written_in_parts(const MutableTypedView<4>& out, const AttentionOperands& of,
                             const AttentionOptions& options) {
  const Reach written(out);
  const auto is_apart = [&](const auto& input) { return apart(written, Reach(input)); };
  if (!is_separate(out) || !is_apart(of.query) || !is_apart(of.key) || !is_apart(of.value)) return false;
  if (options.bias && !is_apart(TypedView<4>(options.bias))) return false;
  if (!is_apart(options.slopes) || !is_apart(options.sinks)) return false;
  if (of.key_scales && !is_apart(TypedView<3>(of.key_scales))) return false;
  if (of.value_scales && !is_apart(TypedView<3>(of.value_scales))) return false;
  if (!options.mask) return true;
  // Bytes, seen as numbers of one byte.
  const View<const std::uint8_t, 4>& entries = options.mask->entries;
  return is_apart(TypedView<4>(NumberType::int8, entries.data, entries.shape, entries.strides));
}

// Options of some rows of one sample, which are those of that sample: the rows move along, and where they stand is said
// by number.
class Rows {
 public:
  Rows(const AttentionOptions& options, Range range, std::int64_t rows, std::int64_t keys) : options_(options) {
    const auto only = [](std::span<const std::int64_t> list, std::int64_t otherwise) {
      return list.empty() ? otherwise : list.front();
    };
    const auto place = [&](const Start& start) { return start.of_all ? *start.of_all : only(start.of_each, 0); };
    const std::int64_t query_length = only(options_.query_lengths, rows);
    std::int64_t keys_stand = place(options_.key_start);
    std::int64_t rows_stand = keys_stand;
    if (options_.query_start) {
      rows_stand = place(options_.query_start);
    } else if (options_.causal == Causal::bottom_right || options_.align == Align::bottom_right) {
      rows_stand += only(options_.key_lengths, keys) - query_length;
    }
    rows_stand += range.first;
    options_.chunk = std::min(options_.chunk, kLongestChunk);
    // Chunks are counted from position 0: all moves on by whole ones where rows would stand before that.
    const std::int64_t step = std::max<std::int64_t>(1, options_.chunk);
    const std::int64_t on = rows_stand < 0 ? (-rows_stand + step - 1) / step * step : 0;
    options_.query_start = Start(rows_stand + on);
    options_.key_start = Start(keys_stand + on);
    options_.align.reset();
    take_part(options_, 2, range);
    if (!options_.query_lengths.empty()) {
      query_length_ = std::clamp<std::int64_t>(query_length - range.first, 0, range.count);
      options_.query_lengths = {&query_length_, 1};
    }
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  [[nodiscard]] const AttentionOptions& options() const noexcept { return options_; }

 private:
  AttentionOptions options_;
  std::int64_t query_length_ = 0;
};

// The function for what is all float32 is the faster one.
void attend(Engine& engine, const AttentionOperands& of, const AttentionOptions& options) {
  const auto floats = [](const auto& view) { return view.type == NumberType::float32; };
  const bool scaled = of.key_scales || of.value_scales;
  if (scaled || !floats(of.query) || !floats(of.key) || !floats(of.value) || !floats(of.out)) {
    return attention(engine, of, options);
  }
  const auto input = [](const TypedView<4>& view) {
    return View<const float, 4>(static_cast<const float*>(view.data), view.shape, view.strides);
  };
  attention(engine, input(of.query), input(of.key), input(of.value),
            View<float, 4>(static_cast<float*>(of.out.data), of.out.shape, of.out.strides), options);
}

// Scales that are given where there is int8, one for each row.
bool scales_fit(const TypedView<4>& rows, const View<const float, 3>& scales) {
  if (rows.type != NumberType::int8) return !scales;
  return scales.shape == std::array{rows.shape[0], rows.shape[1], rows.shape[2]};
}

bool can_cut(const AttentionOperands& of, const AttentionOptions& options) {
  const auto& query = of.query.shape;
  const auto& key = of.key.shape;
  const auto& value = of.value.shape;
  const std::array<std::int64_t, 4> scores{query[0], query[2], query[1], key[1]},
      out{query[0], query[1], query[2], value[3]};
  const bool two_places = options.causal != Causal::none && options.align &&
                          (options.causal == Causal::bottom_right) != (*options.align == Align::bottom_right);
  return key[0] == query[0] && value[0] == query[0] && key[3] == query[3] && value[1] == key[1] && value[2] == key[2] &&
         key[2] > 0 && query[2] % key[2] == 0 && of.out.shape == out && of.out.size() > 0 && !two_places &&
         scales_fit(of.key, of.key_scales) && scales_fit(of.value, of.value_scales) && can_cut(options, scores) &&
         may_be_written_in_parts(of.out, of, options);
}

double operations(const std::array<std::int64_t, 4>& query, const std::array<std::int64_t, 4>& value) {
  double product = 2;
  for (const std::int64_t extent : {query[0], query[1], query[2], value[1], query[3] + value[3]}) {
    product *= static_cast<double>(extent);
  }
  return product;
}

}  // namespace

void attend_in_slices(Engine& engine, const AttentionOperands& of, const AttentionOptions& options) {
  const double cost = operations(of.query.shape, of.value.shape);
  if (!is_long(cost) || !can_cut(of, options)) {
    return compute({}, [&](std::int64_t, std::int64_t) { attend(engine, of, options); });
  }
  const std::int64_t rows = of.query.extent(1), heads = of.key.extent(2), group = of.query.extent(2) / heads;
  // Samples one after another, each key/value head by head, each row by row: as many whole samples or heads as a slice
  // holds are one call, and so are rows of one head. More rows a head rather than some of all heads: their keys are
  // packed for each call.
  const auto some = [&](Range samples, Range some_heads, Range some_rows) {
    const Range query_heads{some_heads.first * group, some_heads.count * group};
    const auto keys = [&](auto view) { return part(part(view, 0, samples), 2, some_heads); };
    const auto queries = [&](auto view) { return part(part(part(view, 0, samples), 2, query_heads), 1, some_rows); };
    const AttentionOperands inner{queries(of.query), keys(of.key),        keys(of.value),
                                  queries(of.out),   keys(of.key_scales), keys(of.value_scales)};
    const AttentionOptions own = of_heads(of_samples(options, samples), query_heads);
    if (some_rows.count == rows) return attend(engine, inner, own);
    attend(engine, inner, Rows(own, some_rows, rows, of.key.extent(1)).options());
  };
  const auto step = [&](std::int64_t first, std::int64_t count) {
    const std::int64_t sample = heads * rows;
    while (count > 0) {
      const std::int64_t in_sample = first % sample, row = first % rows;
      std::int64_t done = std::min(count, rows - row);
      if (in_sample == 0 && count >= sample) {
        done = count / sample * sample;
        some({first / sample, done / sample}, {0, heads}, {0, rows});
      } else if (row == 0 && count >= rows) {
        done = std::min(count / rows * rows, sample - in_sample);
        some({first / sample, 1}, {in_sample / rows, done / rows}, {0, rows});
      } else {
        some({first / sample, 1}, {in_sample / rows, 1}, {row, done});
      }
      first += done;
      count -= done;
    }
  };
  const std::int64_t all_heads = of.query.extent(0) * heads;
  // Lists speak of rows by their numbers within a head.
  const bool some_rows = is_long(cost / static_cast<double>(all_heads)) && !has_packed_sequences(options) &&
                         options.probabilities.rows.empty();
  compute({.items = all_heads * rows, .operations = cost, .together = some_rows ? std::min(kFewestRows, rows) : rows},
          step);
}

namespace {

bool can_cut(const AttentionBackwardOperands& of, const TypedAttentionGradients& gradients,
             const AttentionOptions& options) {
  const auto& query = of.query.shape;
  const auto& key = of.key.shape;
  const auto& value = of.value.shape;
  const std::array<std::int64_t, 4> scores{query[0], query[2], query[1], key[1]},
      out{query[0], query[1], query[2], value[3]};
  const bool own_bias =
      !gradients.bias || (gradients.bias.extent(0) == scores[0] && gradients.bias.extent(1) == scores[1]);
  return key[0] == query[0] && value[0] == query[0] && key[3] == query[3] && value[1] == key[1] && value[2] == key[2] &&
         key[2] > 0 && query[2] % key[2] == 0 && of.out.shape == out && of.out_gradient.shape == out && own_bias &&
         of.log_sum_exp.shape == std::array{scores[0], scores[1], scores[2]} &&
         (!of.log_sum_exp_gradient || of.log_sum_exp_gradient.shape == of.log_sum_exp.shape) && !gradients.sinks &&
         of.out.size() > 0 && can_cut(options, scores);
}

// The part of everything along batch (axis 0), or along heads, of which `group` query heads share a key/value head.
void attend_backward_part(Engine& engine, const AttentionBackwardOperands& of, TypedAttentionGradients gradients,
                          AttentionOptions options, Range samples, Range heads) {
  const std::int64_t group = of.query.extent(2) / of.key.extent(2);
  const Range query_heads{heads.first * group, heads.count * group};
  options = of_heads(of_samples(options, samples), query_heads);
  const auto rows = [&](auto view) { return part(part(view, 0, samples), 2, query_heads); };
  const auto keys = [&](auto view) { return part(part(view, 0, samples), 2, heads); };
  gradients.query = rows(gradients.query);
  gradients.key = keys(gradients.key);
  gradients.value = keys(gradients.value);
  gradients.bias = part(part(gradients.bias, 0, samples), 1, query_heads);
  const auto sums = [&](auto view) { return part(part(view, 0, samples), 1, query_heads); };
  const AttentionBackwardOperands inner{rows(of.query),
                                        keys(of.key),
                                        keys(of.value),
                                        rows(of.out),
                                        sums(of.log_sum_exp),
                                        rows(of.out_gradient),
                                        sums(of.log_sum_exp_gradient)};
  attention_backward(engine, inner, gradients, options);
}

}  // namespace

void attend_backward_in_slices(Engine& engine, const AttentionBackwardOperands& of,
                               const TypedAttentionGradients& gradients, const AttentionOptions& options) {
  const double cost = 2.5 * operations(of.query.shape, of.value.shape);
  if (!is_long(cost) || !can_cut(of, gradients, options)) {
    return compute({}, [&](std::int64_t, std::int64_t) { attention_backward(engine, of, gradients, options); });
  }
  const std::int64_t heads = of.key.extent(2);
  const auto step = [&](std::int64_t first, std::int64_t count) {
    while (count > 0) {
      const bool whole = first % heads == 0 && count >= heads;
      const Range samples{first / heads, whole ? count / heads : 1};
      const Range some{first % heads, whole ? heads : std::min(count, heads - first % heads)};
      attend_backward_part(engine, of, gradients, options, samples, some);
      first += samples.count * some.count;
      count -= samples.count * some.count;
    }
  };
  compute({.items = of.key.extent(0) * heads, .operations = cost}, step);
}

}  // namespace headlight::python
