#include "headlight/analysis/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernels/kernels.h"
#include "ops/check.h"
#include "runtime/parallel.h"

namespace headlight::analysis {
namespace {

constexpr std::string_view kName = "AttentionMeasures";
// Rows of a unit of work.
constexpr std::int64_t kRows = 32;
constexpr std::int64_t kProfile = 2 * HeadAttention::kProfileReach + 1;

// What is summed for each head.
enum Sum : std::int64_t {
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
  kWeightLocal,
  kEvenNoOp,
  kEvenLocal,
  kProfileBegin,
  kSums = kProfileBegin + kProfile
};

struct Unit {
  const AttentionText* text;
  std::int64_t first;
  std::int64_t rows;
};

// The row of token i: where its weight lies. The entropy is the kernel's.
void add_row(const float* weights, std::int64_t length, std::int64_t i, std::span<const std::int64_t> separators,
             double* sums) noexcept {
  std::int64_t peak = 0;
  for (std::int64_t j = 1; j < length; ++j) {
    if (weights[j] > weights[peak]) peak = j;
  }
  // Two chains of sums, for an addition takes four cycles and two start in each.
  double distance[2] = {};
  double step = static_cast<double>(i);
  for (std::int64_t j = 0; j < length; ++j, --step) distance[j & 1] += static_cast<double>(weights[j]) * std::abs(step);
  const bool at_separator = std::find(separators.begin(), separators.end(), peak) != separators.end();
  sums[kConfidence] += static_cast<double>(weights[peak]);
  sums[kDistance] += distance[0] + distance[1];
  sums[kPeaksPrevious] += peak == i - 1 ? 1 : 0;
  sums[kPeaksNext] += peak == i + 1 ? 1 : 0;
  sums[kPeaksItself] += peak == i ? 1 : 0;
  sums[kPeaksFirst] += peak == 0 ? 1 : 0;
  sums[kPeaksSeparator] += at_separator ? 1 : 0;
  sums[kWeightFirst] += static_cast<double>(weights[0]);
  double marks = 1;
  for (const std::int64_t separator : separators) {
    if (separator == 0) continue;
    sums[kWeightSeparators] += static_cast<double>(weights[separator]);
    ++marks;
  }
  const std::int64_t near =
      std::min(length, i + HeadAttention::kLocalReach + 1) - std::max<std::int64_t>(0, i - HeadAttention::kLocalReach);
  sums[kEvenNoOp] += marks / static_cast<double>(length);
  sums[kEvenLocal] += static_cast<double>(near) / static_cast<double>(length);
  const std::int64_t begin = std::max<std::int64_t>(0, i - HeadAttention::kProfileReach);
  const std::int64_t end = std::min(length, i + HeadAttention::kProfileReach + 1);
  for (std::int64_t j = begin; j < end; ++j) {
    const auto weight = static_cast<double>(weights[j]);
    sums[kProfileBegin + HeadAttention::kProfileReach + j - i] += weight;
    if (std::abs(j - i) <= HeadAttention::kLocalReach) sums[kWeightLocal] += weight;
  }
}

// Everything that a unit adds to the sums.
void measure(const kernels::RowKernels& kernels, const Unit& unit, std::int64_t heads, double* sums, double* own,
             double* mixed) noexcept {
  const View<const float, 3>& weights = unit.text->weights;
  kernels.entropies({&weights(0, unit.first, 0), weights.stride(0), weights.stride(1), heads, unit.rows,
                     weights.extent(2), own, mixed});
  for (std::int64_t head = 0; head < heads; ++head) {
    sums[head * kSums + kEntropy] = own[head];
    for (std::int64_t r = unit.first; r < unit.first + unit.rows; ++r) {
      const std::int64_t token = unit.text->rows.empty() ? r : unit.text->rows[static_cast<std::size_t>(r)];
      add_row(&weights(head, r, 0), weights.extent(2), token, unit.text->separators, sums + head * kSums);
    }
  }
}

std::vector<Unit> units_of(std::span<const AttentionText> texts) {
  std::vector<Unit> units;
  for (const AttentionText& text : texts) {
    const std::int64_t rows = text.weights.extent(1);
    for (std::int64_t first = 0; first < rows; first += kRows) {
      units.push_back({&text, first, std::min(kRows, rows - first)});
    }
  }
  return units;
}

}  // namespace

AttentionMeasures::AttentionMeasures(std::int64_t heads, bool pairs) : heads_(heads), pairs_(pairs) {
  if (heads < 1) ops::fail(kName, "heads is " + std::to_string(heads) + ", expected at least 1");
  sums_.resize(static_cast<std::size_t>(heads * kSums + (pairs ? heads * (heads - 1) / 2 : 0)));
}

void AttentionMeasures::check(const AttentionText& text, std::size_t number) const {
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
  const std::string of_text = " of text " + std::to_string(number);
  ops::check_view(kName, "weights", text.weights);
  const std::int64_t rows = text.weights.extent(1);
  const std::int64_t length = text.weights.extent(2);
  if (text.weights.extent(0) != heads_ || length >= kMostTokens || (rows > 0 && length == 0)) {
    ops::fail(kName, "weights" + of_text + " have shape " + ops::describe(text.weights.shape) + ", expected [" +
                         std::to_string(heads_) + ", R, L] with 0 < L < 2^24");
  }
  if (text.rows.empty() ? rows > length : static_cast<std::int64_t>(text.rows.size()) != rows) {
    ops::fail(kName, "rows" + of_text + " has " + std::to_string(text.rows.size()) +
                         " entries, expected one for each of " + std::to_string(rows) + " rows");
  }
  const auto check_tokens = [&](const char* name, std::span<const std::int64_t> tokens) {
    for (const std::int64_t token : tokens) {
      if (token >= 0 && token < length) continue;
      ops::fail(kName, name + of_text + " holds token " + std::to_string(token) + ", expected 0 to " +
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
  std::vector<double> partial(units.size() * sums_.size());
  std::vector<double> own(units.size() * static_cast<std::size_t>(heads_));
  const kernels::RowKernels& kernels = kernels::row_kernels(engine.isa());
  const int lanes = static_cast<int>(std::min<std::size_t>(units.size(), static_cast<std::size_t>(engine.threads())));
  runtime::parallel_for(engine, static_cast<std::int64_t>(units.size()), lanes, [&](std::int64_t task, int) {
    const auto number = static_cast<std::size_t>(task);
    double* const sums = partial.data() + number * sums_.size();
    measure(kernels, units[number], heads_, sums, own.data() + number * static_cast<std::size_t>(heads_),
            pairs_ ? sums + heads_ * kSums : nullptr);
  });
  for (std::size_t number = 0; number < units.size(); ++number) {
    for (std::size_t n = 0; n < sums_.size(); ++n) sums_[n] += partial[number * sums_.size() + n];
    rows_ += units[number].rows;
  }
}

HeadAttention AttentionMeasures::head(std::int64_t head) const {
  if (head < 0 || head >= heads_) {
    ops::fail(kName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  HeadAttention result;
  if (rows_ == 0) return result;
  const double* const sums = sums_.data() + head * kSums;
  const auto mean = [&](std::int64_t sum) { return sums[sum] / static_cast<double>(rows_); };
  result.entropy = std::max(0.0, mean(kEntropy));
  if (mean(kEntropy) != mean(kEntropy)) result.entropy = Undefined::not_finite;
  result.confidence = mean(kConfidence);
  result.distance = mean(kDistance);
  result.peaks_previous = mean(kPeaksPrevious);
  result.peaks_next = mean(kPeaksNext);
  result.peaks_itself = mean(kPeaksItself);
  result.peaks_first = mean(kPeaksFirst);
  result.peaks_separator = mean(kPeaksSeparator);
  result.weight_first = mean(kWeightFirst);
  result.weight_separators = mean(kWeightSeparators);
  result.weight_local = mean(kWeightLocal);
  result.even_no_op = mean(kEvenNoOp);
  result.even_local = mean(kEvenLocal);
  for (std::int64_t n = 0; n < kProfile; ++n) {
    result.profile[static_cast<std::size_t>(n)] = Measure(mean(kProfileBegin + n)).value_or(0);
  }
  return result;
}

HeadKinds HeadAttention::kinds(const KindThresholds& thresholds) const noexcept {
  const auto often = [&](const Measure& share) { return share.value_or(0) >= thresholds.positional; };
  const auto lies_there = [&](double weight, double threshold, const Measure& even) {
    return weight >= std::max(threshold, thresholds.times_even * even.value_or(0));
  };
  return {.previous_token = often(peaks_previous),
          .next_token = often(peaks_next),
          .first_token = often(peaks_first),
          .separator = often(peaks_separator),
          .local = lies_there(weight_local.value_or(0), thresholds.local, even_local),
          .no_op = lies_there(weight_first.value_or(0) + weight_separators.value_or(0), thresholds.no_op, even_no_op)};
}

std::size_t AttentionMeasures::pair(std::int64_t a, std::int64_t b) const noexcept {
  // Pairs that begin with 0 … a − 1 come before.
  return static_cast<std::size_t>(heads_ * kSums + a * heads_ - a * (a + 1) / 2 + b - a - 1);
}

Measure AttentionMeasures::jensen_shannon(std::int64_t a, std::int64_t b) const {
  for (const std::int64_t head : {a, b}) {
    if (head >= 0 && head < heads_) continue;
    ops::fail(kName, "head is " + std::to_string(head) + ", expected 0 to " + std::to_string(heads_ - 1));
  }
  if (!pairs_) ops::fail(kName, "was made without pairs, expected with, for divergences");
  if (rows_ == 0) return Undefined::no_rows;
  if (a > b) std::swap(a, b);
  const auto entropy = [&](std::int64_t head) { return sums_[static_cast<std::size_t>(head * kSums + kEntropy)]; };
  const double mixed = a == b ? entropy(a) : sums_[pair(a, b)];
  const double divergence = (mixed - (entropy(a) + entropy(b)) / 2) / static_cast<double>(rows_);
  // Rounding may leave two heads that agree a little below 0.
  return divergence < 0 ? 0.0 : divergence;
}

}  // namespace headlight::analysis
