#include "headlight/analysis/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>

#include "analysis/memory.h"
#include "analysis/sizes.h"
#include "kernels/kernels.h"
#include "ops/check.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kAttentionName = "AttentionMeasures";
// Rows of a unit of work.
constexpr std::int64_t kRows = 32;
constexpr std::int64_t kProfile = 2 * HeadAttention::kProfileReach + 1;

// What is summed for each head.
enum Sum : std::int64_t {
  kSeeing,  // rows that see something: all sums below are over them
  kNotFinite,
  kNotWeights,
  kPeaks,  // rows with one largest weight
  kEntropy,
  kConfidence,
  kDistance,
  kPeaksPrevious,
  kPeaksNext,
  kPeaksItself,
  kPeaksFirst,
  kPeaksSeparator,
  kWeightFirst,
  kWeightSeparators,
  kEvenNoOp,
  kEvenLocal,
  kProfileBegin,
  kSums = kProfileBegin + kProfile
};

constexpr Measure HeadAttention::*kMeasures[] = {
    &HeadAttention::entropy,           &HeadAttention::confidence,      &HeadAttention::distance,
    &HeadAttention::peaks_previous,    &HeadAttention::peaks_next,      &HeadAttention::peaks_itself,
    &HeadAttention::peaks_first,       &HeadAttention::peaks_separator, &HeadAttention::weight_first,
    &HeadAttention::weight_separators, &HeadAttention::weight_local,    &HeadAttention::even_no_op,
    &HeadAttention::even_local};

struct Unit {
  const AttentionText* text;
  std::int64_t first;
  std::int64_t rows;
};

using kernels::WeightRow;

// What a row is, before where it looks.
enum class Kind : std::uint8_t { weights, empty, not_weights, not_finite };

Kind kind_of(const WeightRow& row, const float* weights, std::int64_t length) noexcept {
  // Numbers may be finite and their float32 sum is not.
  if (!std::isfinite(row.sum)) {
    const bool finite = std::all_of(weights, weights + length, [](float weight) { return std::isfinite(weight); });
    return finite ? Kind::not_weights : Kind::not_finite;
  }
  if (row.least == 0 && row.largest == 0) return Kind::empty;
  return row.least >= 0 && std::abs(row.sum - 1) <= AttentionMeasures::kSumTolerance ? Kind::weights
                                                                                     : Kind::not_weights;
}

// The weights of token i: where they lie. The entropy is the kernel's.
void add_row(const WeightRow& row, const float* weights, std::int64_t length, std::int64_t i,
             std::span<const std::int64_t> separators, double* sums) noexcept {
  sums[kSeeing] += 1;
  sums[kConfidence] += static_cast<double>(row.largest);
  sums[kDistance] += row.distance;
  if (row.peak >= 0 && length > 1) {
    const bool at_separator = std::find(separators.begin(), separators.end(), row.peak) != separators.end();
    sums[kPeaks] += 1;
    sums[kPeaksPrevious] += row.peak == i - 1 ? 1 : 0;
    sums[kPeaksNext] += row.peak == i + 1 ? 1 : 0;
    sums[kPeaksItself] += row.peak == i ? 1 : 0;
    sums[kPeaksFirst] += row.peak == 0 ? 1 : 0;
    sums[kPeaksSeparator] += at_separator ? 1 : 0;
  }
  sums[kWeightFirst] += static_cast<double>(weights[0]);
  double marks = 1;
  for (auto at = separators.begin(); at != separators.end(); ++at) {
    if (*at == 0 || std::find(separators.begin(), at, *at) != at) continue;
    sums[kWeightSeparators] += static_cast<double>(weights[*at]);
    ++marks;
  }
  const std::int64_t near =
      std::min(length, i + HeadAttention::kLocalReach + 1) - std::max<std::int64_t>(0, i - HeadAttention::kLocalReach);
  sums[kEvenNoOp] += marks / static_cast<double>(length);
  sums[kEvenLocal] += static_cast<double>(near) / static_cast<double>(length);
  const std::int64_t begin = std::max<std::int64_t>(0, i - HeadAttention::kProfileReach);
  const std::int64_t end = std::min(length, i + HeadAttention::kProfileReach + 1);
  double* const profile = sums + kProfileBegin + (HeadAttention::kProfileReach + begin - i);
  for (std::int64_t j = begin; j < end; ++j) profile[j - begin] += static_cast<double>(weights[j]);
}

// One unit's part of the sums: of heads, of pairs the divergences and the rows that they are of. own [H] and mixed
// [pairs], null without pairs, have room for entropies, empty [H] for one bit a row.
struct UnitSums {
  double* of_heads;
  double* divergences;
  double* rows_of_pairs;
  double* own;
  double* mixed;
  std::uint32_t* empty;
};
static_assert(kRows == 32, "one bit a row");

void add_rows(const kernels::RowKernels& kernels, const Unit& unit, std::int64_t heads, const UnitSums& to) noexcept {
  const View<const float, 3>& weights = unit.text->weights;
  const std::int64_t length = weights.extent(2);
  const std::int64_t* const tokens = unit.text->rows.empty() ? nullptr : unit.text->rows.data() + unit.first;
  WeightRow found[kRows];
  for (std::int64_t head = 0; head < heads; ++head) {
    const float* row = &weights(head, unit.first, 0);
    kernels.weight_rows({row, weights.stride(1), unit.rows, length, tokens, unit.first}, found);
    double* const sums = to.of_heads + head * kSums;
    to.empty[head] = 0;
    for (std::int64_t r = 0; r < unit.rows; ++r, row += weights.stride(1)) {
      switch (kind_of(found[r], row, length)) {
        case Kind::weights:
          add_row(found[r], row, length, tokens == nullptr ? unit.first + r : tokens[r], unit.text->separators, sums);
          break;
        case Kind::empty:
          to.empty[head] |= std::uint32_t{1} << r;
          break;
        case Kind::not_weights:
          sums[kNotWeights] += 1;
          break;
        case Kind::not_finite:
          sums[kNotFinite] += 1;
          break;
      }
    }
  }
}

// Entropies and divergences of rows [first, first + rows) of the unit, each of which either all heads or none see from.
void add_entropies(const kernels::RowKernels& kernels, const Unit& unit, std::int64_t heads, std::int64_t first,
                   std::int64_t rows, const UnitSums& to) noexcept {
  const View<const float, 3>& weights = unit.text->weights;
  kernels.entropies({&weights(0, unit.first + first, 0), weights.stride(0), weights.stride(1), heads, rows,
                     weights.extent(2), to.own, to.mixed});
  for (std::int64_t head = 0; head < heads; ++head) to.of_heads[head * kSums + kEntropy] += to.own[head];
  if (to.mixed == nullptr) return;
  const auto all = static_cast<std::uint32_t>(((std::uint64_t{1} << rows) - 1) << first);
  std::int64_t pair = 0;
  for (std::int64_t a = 0; a < heads; ++a) {
    for (std::int64_t b = a + 1; b < heads; ++b, ++pair) {
      const std::uint32_t seeing = all & ~(to.empty[a] | to.empty[b]);
      if (seeing == 0) continue;
      to.divergences[pair] += to.mixed[pair] - (to.own[a] + to.own[b]) / 2;
      to.rows_of_pairs[pair] += std::popcount(seeing);
    }
  }
}

// Everything that a unit adds to the sums.
void measure(const kernels::RowKernels& kernels, const Unit& unit, std::int64_t heads, const UnitSums& to) noexcept {
  add_rows(kernels, unit, heads, to);
  std::uint32_t some = 0, every = ~std::uint32_t{0};
  for (std::int64_t head = 0; head < heads; ++head) {
    some |= to.empty[head];
    every &= to.empty[head];
  }
  // A row of zeros adds nothing, except to its mixture with that of a head that sees.
  if (some == every) return add_entropies(kernels, unit, heads, 0, unit.rows, to);
  for (std::int64_t r = 0; r < unit.rows; ++r) add_entropies(kernels, unit, heads, r, 1, to);
}

std::vector<Unit> units_of(std::span<const AttentionText> texts) {
  std::int64_t count = 0;
  for (const AttentionText& text : texts) count += divide_up(text.weights.extent(1), kRows);
  std::vector<Unit> units = make_vector<Unit>(kAttentionName, count);
  auto unit = units.begin();
  for (const AttentionText& text : texts) {
    const std::int64_t rows = text.weights.extent(1);
    for (std::int64_t first = 0; first < rows; first += kRows) {
      *unit++ = {&text, first, std::min(kRows, rows - first)};
    }
  }
  return units;
}

}  // namespace

AttentionMeasures::AttentionMeasures(std::int64_t heads, bool pairs) : heads_(heads), pairs_(pairs) {
  check_size(kAttentionName, "heads", heads, 1, kWidest);
  sums_ = make_vector<double>(kAttentionName, heads * kSums + 2 * this->pairs());
}

void AttentionMeasures::check(const AttentionText& text, std::size_t number) const {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
  const std::string of_text = " of text " + std::to_string(number);
  ops::check_view(kAttentionName, "weights", text.weights);
  const std::int64_t rows = text.weights.extent(1);
  const std::int64_t length = text.weights.extent(2);
  if (text.weights.extent(0) != heads_ || length >= kMostTokens || (rows > 0 && length == 0)) {
    ops::fail(kAttentionName, "weights" + of_text + " have shape " + ops::describe(text.weights.shape) +
                                  ", expected [" + std::to_string(heads_) + ", R, L] with 0 < L < 2^24");
  }
  if (text.rows.empty() ? rows > length : static_cast<std::int64_t>(text.rows.size()) != rows) {
    ops::fail(kAttentionName, "rows" + of_text + " has " + std::to_string(text.rows.size()) +
                                  " entries, expected one for each of " + std::to_string(rows) + " rows");
  }
  const auto check_tokens = [&](const char* name, std::span<const std::int64_t> tokens) {
    for (const std::int64_t token : tokens) {
      if (token >= 0 && token < length) continue;
      ops::fail(kAttentionName, name + of_text + " holds token " + std::to_string(token) + ", expected 0 to " +
                                    std::to_string(length - 1));
    }
  };
  check_tokens("rows", text.rows);
  check_tokens("separators", text.separators);
}

void AttentionMeasures::add(Engine& engine, std::span<const AttentionText> texts) {
  for (std::size_t number = 0; number < texts.size(); ++number) check(texts[number], number);
  const std::vector<Unit> units = units_of(texts);
  // A unit sums for itself, and the units are added in their order, whoever computed them.
  const auto heads = static_cast<std::size_t>(heads_), every_pair = static_cast<std::size_t>(pairs());
  std::vector<double> partial = make_vector<double>(kAttentionName, units.size(), sums_.size());
  std::vector<double> entropies = make_vector<double>(kAttentionName, units.size(), heads + every_pair);
  std::vector<std::uint32_t> empty = make_vector<std::uint32_t>(kAttentionName, units.size(), heads);
  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  const int workers = static_cast<int>(std::min<std::size_t>(units.size(), static_cast<std::size_t>(engine.threads())));
  runtime::parallel_for(engine, static_cast<std::int64_t>(units.size()), workers, [&](std::int64_t task, int) {
    const auto number = static_cast<std::size_t>(task);
    double* const sums = partial.data() + number * sums_.size();
    double* const divergences = sums + heads_ * kSums;
    double* const own = entropies.data() + number * (heads + every_pair);
    measure(kernels, units[number], heads_,
            {sums, divergences, divergences + every_pair, own, pairs_ ? own + heads : nullptr,
             empty.data() + number * heads});
  });
  for (std::size_t number = 0; number < units.size(); ++number) {
    for (std::size_t n = 0; n < sums_.size(); ++n) sums_[n] += partial[number * sums_.size() + n];
    rows_ += units[number].rows;
  }
}

Undefined AttentionMeasures::state(std::int64_t head) const noexcept {
  const double* const sums = sums_.data() + head * kSums;
  if (rows_ == 0) return Undefined::no_rows;
  if (sums[kNotFinite] > 0) return Undefined::not_finite;
  if (sums[kNotWeights] > 0) return Undefined::not_weights;
  return sums[kSeeing] == 0 ? Undefined::zero : Undefined::none;
}

HeadAttention AttentionMeasures::head(std::int64_t head) const {
  if (head < 0 || head >= heads_) {
    ops::fail(kAttentionName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  HeadAttention result;
  if (state(head) != Undefined::none) {
    for (Measure HeadAttention::*const one : kMeasures) result.*one = state(head);
    return result;
  }
  const double* const sums = sums_.data() + head * kSums;
  const auto mean = [&](std::int64_t sum) { return sums[sum] / sums[kSeeing]; };
  const auto peaks = [&](std::int64_t sum) { return sums[kPeaks] == 0 ? Measure(Undefined::even) : mean(sum); };
  result.rows = static_cast<std::int64_t>(sums[kSeeing]);
  result.entropy = std::max(0.0, mean(kEntropy));
  result.confidence = mean(kConfidence);
  result.distance = mean(kDistance);
  result.peaks_previous = peaks(kPeaksPrevious);
  result.peaks_next = peaks(kPeaksNext);
  result.peaks_itself = peaks(kPeaksItself);
  result.peaks_first = peaks(kPeaksFirst);
  result.peaks_separator = peaks(kPeaksSeparator);
  result.weight_first = mean(kWeightFirst);
  result.weight_separators = mean(kWeightSeparators);
  result.even_no_op = mean(kEvenNoOp);
  result.even_local = mean(kEvenLocal);
  for (std::int64_t n = 0; n < kProfile; ++n) {
    result.profile[static_cast<std::size_t>(n)] = mean(kProfileBegin + n);
  }
  const double* const itself = result.profile.data() + HeadAttention::kProfileReach;
  result.weight_local =
      std::accumulate(itself - HeadAttention::kLocalReach, itself + HeadAttention::kLocalReach + 1, 0.0);
  return result;
}

HeadKinds HeadAttention::kinds(const KindThresholds& thresholds) const noexcept {
  HeadKinds kinds;
  kinds.why = rows > 0 && rows < thresholds.fewest_rows ? Undefined::too_few_rows : entropy.why();
  if (kinds.why != Undefined::none) return kinds;
  const auto often = [&](const Measure& share) { return share.value_or(0) >= thresholds.positional; };
  const auto lies_there = [&](double weight, double threshold, const Measure& even) {
    return weight >= std::max(threshold, thresholds.times_even * even.value_or(0));
  };
  kinds.previous_token = often(peaks_previous);
  kinds.next_token = often(peaks_next);
  kinds.first_token = often(peaks_first);
  kinds.separator = often(peaks_separator);
  kinds.local = lies_there(weight_local.value_or(0), thresholds.local, even_local);
  kinds.no_op = lies_there(weight_first.value_or(0) + weight_separators.value_or(0), thresholds.no_op, even_no_op);
  return kinds;
}

Measure AttentionMeasures::jensen_shannon(std::int64_t a, std::int64_t b) const {
  for (const std::int64_t head : {a, b}) {
    if (head >= 0 && head < heads_) continue;
    ops::fail(kAttentionName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  if (!pairs_) ops::fail(kAttentionName, "was made without pairs, expected with, for divergences");
  for (const std::int64_t head : {a, b}) {
    if (state(head) != Undefined::none) return state(head);
  }
  if (a == b) return 0.0;
  if (a > b) std::swap(a, b);
  // Pairs that begin with 0 … a − 1 come before.
  const std::int64_t number = a * heads_ - a * (a + 1) / 2 + b - a - 1;
  const double* const divergences = sums_.data() + heads_ * kSums;
  const double counted = divergences[pairs() + number];
  if (counted == 0) return Undefined::zero;
  // Rounding may leave two heads that agree a little below 0.
  return std::max(0.0, divergences[number] / counted);
}

}  // namespace headlight::analysis
