#include "sweep/attention_alone.h"

#include <algorithm>

#include "reference/attention.h"

namespace headlight::sweep {
namespace {

// The keys of a row's sequence, and its number.
struct Keys {
  std::int64_t sequence;
  std::int64_t first;
  std::int64_t count;
};

Keys keys_of(const test::AttentionCase& c, std::int64_t b, std::int64_t i) {
  const auto sample = static_cast<std::size_t>(b);
  if (c.query_offsets.empty()) return {b, 0, c.key_lengths.empty() ? c.key_length : c.key_lengths[sample]};
  const std::vector<std::int64_t>& keys = c.key_offsets.empty() ? c.query_offsets : c.key_offsets;
  std::size_t s = 0;
  while (c.query_offsets[s + 1] <= i) ++s;
  return {static_cast<std::int64_t>(s), keys[s], keys[s + 1] - keys[s]};
}

std::int64_t start_of(const std::vector<std::int64_t>& starts, std::int64_t sequence) {
  if (starts.empty()) return 0;
  return starts.size() == 1 ? starts[0] : starts[static_cast<std::size_t>(sequence)];
}

// `count` entries of an axis from `first`.
template <class T>
void take(View<T, 4>& view, std::size_t axis, std::int64_t first, std::int64_t count) {
  view.data += first * view.strides[axis];
  view.shape[axis] = count;
}
// The same of a mask, which may be broadcast there.
template <class T>
void take_of_mask(View<T, 4>& mask, std::int64_t b, std::int64_t i, const Keys& keys) {
  if (mask.shape[0] != 1) take(mask, 0, b, 1);
  if (mask.shape[2] != 1) take(mask, 2, i, 1);
  if (mask.shape[3] != 1) take(mask, 3, keys.first, keys.count);
}

}  // namespace

std::optional<RowAlone> row_alone(const test::AttentionCase& c, const test::AttentionInputs& in, std::int64_t b,
                                  std::int64_t i) {
  const Keys keys = keys_of(c, b, i);
  const bool contradicts = c.causal != Causal::none && c.align && c.query_start.empty() &&
                           (*c.align == Align::top_left) != (c.causal == Causal::top_left);
  if (keys.count == 0 || c.dropout != 0 || contradicts) return std::nullopt;
  const auto place = reference::place_in_sequence(in.options, c.query_length, c.key_length, b, i, keys.first);
  if (place.is_padding) return std::nullopt;

  RowAlone row{in.query.view(), in.key.view(), in.value.view(), in.options};
  take(row.query, 0, b, 1);
  take(row.query, 1, i, 1);
  for (View<const float, 4>* view : {&row.key, &row.value}) {
    take(*view, 0, b, 1);
    take(*view, 1, keys.first, keys.count);
  }
  AttentionOptions& options = row.options;
  options.align = std::nullopt;
  options.query_lengths = options.key_lengths = options.query_offsets = options.key_offsets = {};
  if (options.mask) take_of_mask(options.mask->entries, b, i, keys);
  if (options.bias) take_of_mask(options.bias, b, i, keys);
  // Positions begin at 0. A row may have stood before that, where nobody gave a start; chunks count from there.
  const std::int64_t of_keys = start_of(c.key_start, keys.sequence);
  const std::int64_t of_row = of_keys + place.distance;
  const std::int64_t step = std::max<std::int64_t>(c.chunk, 1);
  const std::int64_t shift = of_row < 0 ? (-of_row + step - 1) / step * step : 0;
  options.key_start = of_keys + shift;
  options.query_start = of_row + shift;
  return row;
}

}  // namespace headlight::sweep
