#include <algorithm>

#include "support/attention_case.h"

namespace headlight::test {
namespace {

using List = std::vector<std::int64_t>;

// As many numbers as there are samples or sequences, the last one repeated, each between `least` and `most`.
void fit(List& numbers, std::int64_t count, std::int64_t least, std::int64_t most) {
  if (numbers.empty()) return;
  numbers.resize(static_cast<std::size_t>(count), numbers.back());
  for (std::int64_t& number : numbers) number = std::clamp(number, least, most);
}

// Ascending from 0 to `length`.
void fit_offsets(List& offsets, std::size_t count, std::int64_t length) {
  offsets.resize(count, length);
  for (std::int64_t& offset : offsets) offset = std::clamp<std::int64_t>(offset, 0, length);
  offsets.front() = 0;
  offsets.back() = length;
  std::sort(offsets.begin(), offsets.end());
}

void fit_extents(std::optional<Shape4>& extents, const Shape4& full) {
  for (std::size_t axis = 0; extents && axis < full.size(); ++axis) {
    if ((*extents)[axis] != 1) (*extents)[axis] = full[axis];
  }
}

}  // namespace

void AttentionCase::make_valid() {
  for (std::int64_t* number : {&batch, &query_heads, &key_value_heads, &head_dim, &value_dim}) {
    *number = std::max<std::int64_t>(*number, 1);
  }
  for (std::int64_t* number : {&query_length, &key_length, &chunk}) *number = std::max<std::int64_t>(*number, 0);
  for (std::int64_t* number : {&window.left, &window.right}) *number = std::max<std::int64_t>(*number, -1);
  query_heads = (query_heads + key_value_heads - 1) / key_value_heads * key_value_heads;

  std::int64_t sequences = batch;
  if (query_offsets.empty()) {
    key_offsets.clear();
    fit(query_lengths, batch, 0, query_length);
    fit(key_lengths, batch, 0, key_length);
  } else {
    batch = 1;
    query_lengths.clear();
    key_lengths.clear();
    const std::size_t count = std::max<std::size_t>(query_offsets.size(), 2);
    sequences = static_cast<std::int64_t>(count) - 1;
    fit_offsets(query_offsets, count, query_length);
    if (!key_offsets.empty() || query_length != key_length) fit_offsets(key_offsets, count, key_length);
  }
  constexpr std::int64_t kFurthest = std::int64_t{1} << 60;
  fit(key_start, key_start.size() == 1 ? 1 : sequences, 0, kFurthest);
  fit(query_start, query_start.size() == 1 ? 1 : sequences, 0, kFurthest);

  const Shape4 full{batch, query_heads, query_length, key_length};
  fit_extents(mask, full);
  fit_extents(bias, full);
  if (!mask) mask_means = MaskMeans::attend;
  if (!bias) bias_has_infinities = false;
}

}  // namespace headlight::test
