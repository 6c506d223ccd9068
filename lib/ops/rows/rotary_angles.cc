// Formulas as in Hugging Face's transformers (modeling_rope_utils.py), in float64.
#include "ops/rows/rotary_angles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "headlight/rotary.h"
#include "ops/check.h"
#include "ops/offsets_check.h"
#include "ops/rows/rotary_check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {
namespace {

using Kind = RotaryScalingKind;

constexpr std::string_view kRotaryAnglesName = "rotary_angles";

// A task; the frequencies of a sequence are worked out again in each.
constexpr std::int64_t kRowsTogether = 64;

// What the frequencies depend on of a sequence's length: 0 where that is nothing.
std::int64_t length_that_counts(const RotaryScaling& scaling, std::int64_t length) noexcept {
  if (scaling.kind == Kind::dynamic) return std::max(length, scaling.original_length);
  if (scaling.kind == Kind::longrope) return length > scaling.original_length ? 1 : 0;
  return 0;
}

double llama3_frequency(const RotaryScaling& scaling, double theta) noexcept {
  const double turns = static_cast<double>(scaling.original_length) * theta / (2 * std::numbers::pi);
  if (turns > scaling.high_frequency_factor) return theta;
  if (turns < scaling.low_frequency_factor) return theta / scaling.factor;
  const double share =
      (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - share) * theta / scaling.factor + share * theta;
}

// Pairs before `first` keep θ, those from `last` on take θ / factor.
struct YarnRange {
  YarnRange() = default;
  explicit YarnRange(const RotarySpec& spec) noexcept {
    const RotaryScaling& scaling = spec.scaling;
    const auto dims = static_cast<double>(spec.dims);
    const auto pair_of = [&](double turns) {
      const double length = static_cast<double>(scaling.original_length);
      return dims * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(spec.base));
    };
    first = pair_of(scaling.fast_turns);
    last = pair_of(scaling.slow_turns);
    if (scaling.whole_pairs) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, dims - 1);
    if (first == last) last += 0.001;
  }
  double first = 0, last = 0;
};

// θ_i for all pairs of a head, by what length_that_counts() says.
void fill_frequencies(const RotarySpec& spec, std::int64_t head_dim, std::int64_t length, double* theta) noexcept {
  const RotaryScaling& scaling = spec.scaling;
  const std::int64_t pairs = spec.dims / 2;
  const auto dims = static_cast<double>(scaling.kind == Kind::proportional ? head_dim : spec.dims);
  double base = spec.base;
  if (scaling.kind == Kind::dynamic) {
    const double ratio = static_cast<double>(length) / static_cast<double>(scaling.original_length);
    base *= std::pow(scaling.factor * ratio - (scaling.factor - 1), dims / (dims - 2));
  }
  const YarnRange range = scaling.kind == Kind::yarn ? YarnRange(spec) : YarnRange();
  const std::vector<double>& factors = length > 0 ? scaling.long_factors : scaling.short_factors;
  for (std::int64_t i = 0; i < pairs; ++i) {
    // Not by its negative power: that of the first pair is 1, also of an infinite base.
    const double plain = 1 / std::pow(base, 2 * static_cast<double>(i) / dims);
    if (scaling.kind == Kind::linear || scaling.kind == Kind::proportional) {
      theta[i] = plain / scaling.factor;
    } else if (scaling.kind == Kind::llama3) {
      theta[i] = llama3_frequency(scaling, plain);
    } else if (scaling.kind == Kind::yarn) {
      const double ramp = std::clamp((static_cast<double>(i) - range.first) / (range.last - range.first), 0.0, 1.0);
      theta[i] = plain / scaling.factor * ramp + plain * (1 - ramp);
    } else if (scaling.kind == Kind::longrope) {
      theta[i] = plain / factors[static_cast<std::size_t>(i)];
    } else {
      theta[i] = plain;
    }
  }
  std::fill(theta + pairs, theta + rotary_columns(spec, head_dim) / 2, 0.0);
}

double attention_factor(const RotaryScaling& scaling) noexcept {
  if (scaling.kind != Kind::yarn && scaling.kind != Kind::longrope) return 1;
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  if (scaling.factor <= 1) return 1;
  if (scaling.kind == Kind::yarn) return 0.1 * std::log(scaling.factor) + 1;
  return std::sqrt(1 + std::log(scaling.factor) / std::log(static_cast<double>(scaling.original_length)));
}

void check(const RotarySpec& spec, std::int64_t head_dim, std::span<const std::int64_t> positions,
           std::span<const std::int64_t> offsets, View<float, 2> table) {
  ops::check_rotary_spec(kRotaryAnglesName, spec, head_dim);
  const auto rows = static_cast<std::int64_t>(positions.size());
  const std::array<std::int64_t, 2> expected = {rows, rotary_columns(spec, head_dim)};
  const ops::Extent extent = ops::check_output(kRotaryAnglesName, "cosines_and_sines", table, expected,
                                               "[N, the numbers of a head that are turned]");
  ops::check_offsets(kRotaryAnglesName, "offsets", offsets, rows, "N");
  ops::check_disjoint(kRotaryAnglesName, "cosines_and_sines", extent, "positions", ops::extent_of(positions));
  ops::check_disjoint(kRotaryAnglesName, "cosines_and_sines", extent, "offsets", ops::extent_of(offsets));
  for (std::size_t n = 0; n < positions.size(); ++n) {
    if (positions[n] >= 0 && positions[n] < std::int64_t{1} << 53) continue;
    ops::fail(kRotaryAnglesName, "positions[", n, "] is ", positions[n], ", expected 0 to 2^53 - 1");
  }
}

// Rows [first, last) of the table, with room for the frequencies of one sequence; `lengths` of all sequences, where the
// angles depend on them.
void fill_rows(const RotarySpec& spec, std::int64_t head_dim, std::span<const std::int64_t> positions,
               std::span<const std::int64_t> offsets, const std::int64_t* lengths, const View<float, 2>& table,
               std::int64_t first, std::int64_t last, double* theta) noexcept {
  const std::int64_t pairs = table.extent(1) / 2;
  const double factor = attention_factor(spec.scaling);
  const bool asks_for_lengths = ops::angles_ask_for_lengths(spec);
  const bool interleaved = spec.pairing == RotaryPairing::interleaved;
  auto sequence = std::upper_bound(offsets.begin(), offsets.end(), first);  // where that behind it begins
  std::int64_t end = first, filled = -1;
  for (std::int64_t row = first; row < last; ++row) {
    if (row == end) {
      while (*sequence <= row) ++sequence;
      end = *sequence;
      const std::int64_t length = asks_for_lengths ? lengths[sequence - offsets.begin() - 1] : 0;
      const std::int64_t counted = length_that_counts(spec.scaling, length);
      if (counted != filled) fill_frequencies(spec, head_dim, counted, theta);
      filled = counted;
    }
    const auto position = static_cast<double>(positions[static_cast<std::size_t>(row)]);
    float* const to = table.data + row * table.stride(0);
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = position * theta[i];
      to[interleaved ? 2 * i : i] = static_cast<float>(std::cos(angle) * factor);
      to[interleaved ? 2 * i + 1 : pairs + i] = static_cast<float>(std::sin(angle) * factor);
    }
  }
}

// From those of one worker to the next one's: whole cache lines.
constexpr std::int64_t frequencies_of_worker(std::int64_t pairs) noexcept { return round_up(pairs, 16); }
std::size_t bytes_of_frequencies(int workers, std::int64_t pairs) noexcept {
  return static_cast<std::size_t>(workers * frequencies_of_worker(pairs)) * sizeof(double);
}

}  // namespace

std::int64_t rotary_columns(const RotarySpec& spec, std::int64_t head_dim) noexcept {
  return spec.scaling.kind == Kind::proportional && spec.dims > 0 ? head_dim : spec.dims;
}

void rotary_angles(Engine& engine, const RotarySpec& spec, std::int64_t head_dim,
                   std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                   View<float, 2> cosines_and_sines) {
  check(spec, head_dim, positions, offsets, cosines_and_sines);
  if (!ops::angles_ask_for_lengths(spec)) {
    return ops::fill_rotary_angles(engine, spec, head_dim, positions, offsets, nullptr, cosines_and_sines);
  }
  const std::size_t sequences = ops::sequences_with_rows(offsets);
  const runtime::Scratch scratch(engine, ops::lengths_bytes(spec, static_cast<std::int64_t>(sequences)),
                                 kRotaryAnglesName);
  auto* const lengths = reinterpret_cast<std::int64_t*>(scratch.data());
  std::int64_t* const begins = lengths + sequences;
  std::size_t sequence = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    if (offsets[s + 1] > offsets[s]) begins[sequence++] = offsets[s];
  }
  begins[sequences] = static_cast<std::int64_t>(positions.size());
  const std::span<const std::int64_t> with_rows(begins, sequences + 1);
  ops::find_sequence_lengths(positions, with_rows, lengths);
  ops::fill_rotary_angles(engine, spec, head_dim, positions, with_rows, lengths, cosines_and_sines);
}

namespace ops {

bool angles_ask_for_lengths(const RotarySpec& spec) noexcept {
  return spec.scaling.kind == Kind::dynamic || spec.scaling.kind == Kind::longrope;
}

std::size_t sequences_with_rows(std::span<const std::int64_t> offsets) noexcept {
  std::size_t count = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) count += offsets[s + 1] > offsets[s] ? 1 : 0;
  return count;
}

std::size_t lengths_bytes(const RotarySpec& spec, std::int64_t sequences) noexcept {
  return angles_ask_for_lengths(spec) ? static_cast<std::size_t>(2 * sequences + 1) * sizeof(std::int64_t) : 0;
}

std::size_t frequencies_bytes(const Engine& engine, std::int64_t columns) noexcept {
  return bytes_of_frequencies(engine.threads(), columns / 2);
}

void find_sequence_lengths(std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                           std::int64_t* lengths) noexcept {
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const auto begin = positions.begin() + offsets[s], end = positions.begin() + offsets[s + 1];
    lengths[s] = begin == end ? 0 : *std::max_element(begin, end) + 1;
  }
}

void fill_rotary_angles(Engine& engine, const RotarySpec& spec, std::int64_t head_dim,
                        std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                        const std::int64_t* lengths, View<float, 2> cosines_and_sines) {
  if (cosines_and_sines.size() == 0) return;

  const std::int64_t rows = cosines_and_sines.extent(0), pairs = cosines_and_sines.extent(1) / 2;
  const std::int64_t tasks = divide_up(rows, kRowsTogether);
  const int workers =
      runtime::workers_for(engine, tasks, runtime::costs::kRotaryAngle * static_cast<double>(cosines_and_sines.size()));
  const runtime::Scratch scratch(engine, bytes_of_frequencies(workers, pairs), kRotaryAnglesName);
  runtime::parallel_for(engine, tasks, workers, [&](std::int64_t task, int worker) {
    const std::int64_t first = task * kRowsTogether;
    fill_rows(spec, head_dim, positions, offsets, lengths, cosines_and_sines, first,
              std::min(rows, first + kRowsTogether),
              reinterpret_cast<double*>(scratch.data()) + worker * frequencies_of_worker(pairs));
  });
}

}  // namespace ops

}  // namespace headlight
