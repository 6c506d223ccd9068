// Of what attention() refuses, the lists of numbers: one for each sequence, sample or head.
#include <cmath>
#include <limits>
#include <string>

#include "ops/attention/check.h"

namespace headlight::ops {
namespace {

void check_lengths(std::string_view operation, std::string_view name, std::span<const std::int64_t> lengths,
                   std::int64_t batch, std::int64_t limit) {
  if (lengths.empty()) return;
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    fail(operation, std::string(name) + " has " + std::to_string(lengths.size()) +
                        " entries, expected B = " + std::to_string(batch));
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > limit) {
      fail(operation, std::string(name) + "[" + std::to_string(b) + "] is " + std::to_string(lengths[b]) +
                          ", expected 0 to " + std::to_string(limit));
    }
  }
}

void check_packed(std::string_view operation, const AttentionOptions& options, const AttentionSizes& sizes) {
  if (options.query_offsets.empty()) {
    if (!options.key_offsets.empty()) fail(operation, "key_offsets given without query_offsets");
    return;
  }
  if (!options.query_lengths.empty() || !options.key_lengths.empty()) {
    fail(operation, "query_offsets given together with query_lengths or key_lengths; packed sequences have no padding");
  }
  if (sizes.batch != 1) {
    fail(operation, "query_offsets given with B = " + std::to_string(sizes.batch) + ", expected B = 1");
  }
  check_offsets(operation, "query_offsets", options.query_offsets, sizes.query_length, "Lq");
  if (options.key_offsets.empty()) {
    if (sizes.key_length != sizes.query_length) {
      fail(operation, "query_offsets given without key_offsets, but Lq = " + std::to_string(sizes.query_length) +
                          " and Lk = " + std::to_string(sizes.key_length));
    }
    return;
  }
  if (options.key_offsets.size() != options.query_offsets.size()) {
    fail(operation, "key_offsets has " + std::to_string(options.key_offsets.size()) + " entries, query_offsets " +
                        std::to_string(options.query_offsets.size()));
  }
  check_offsets(operation, "key_offsets", options.key_offsets, sizes.key_length, "Lk");
}

// One number for each query head, or none.
void check_heads(std::string_view operation, std::string_view name, std::span<const float> numbers,
                 const AttentionSizes& sizes) {
  if (numbers.empty() || static_cast<std::int64_t>(numbers.size()) == sizes.query_heads) return;
  fail(operation, std::string(name) + " has " + std::to_string(numbers.size()) +
                      " entries, expected Hq = " + std::to_string(sizes.query_heads));
}

void check_slopes(std::string_view operation, const AttentionOptions& options, const AttentionSizes& sizes) {
  check_heads(operation, "alibi", options.alibi, sizes);
  for (std::size_t h = 0; h < options.alibi.size(); ++h) {
    if (std::isfinite(options.alibi[h])) continue;
    fail(operation, "alibi[" + std::to_string(h) + "] is " + text_of(options.alibi[h]) + ", expected a finite number");
  }
}

void check_start(std::string_view operation, std::string_view name, const Start& start, std::int64_t sequences) {
  constexpr std::int64_t kFurthest = std::int64_t{1} << 60;
  const auto check = [&](const std::string& entry, std::int64_t position) {
    if (position >= 0 && position <= kFurthest) return;
    fail(operation, entry + " is " + std::to_string(position) + ", expected 0 to 2^60");
  };
  if (start.of_all) return check(std::string(name), *start.of_all);
  const std::span<const std::int64_t> each = start.of_each;
  if (!each.empty() && static_cast<std::int64_t>(each.size()) != sequences) {
    fail(operation, std::string(name) + " has " + std::to_string(each.size()) + " entries, expected " +
                        std::to_string(sequences) + ", one for each sequence");
  }
  for (std::size_t s = 0; s < each.size(); ++s) check(std::string(name) + "[" + std::to_string(s) + "]", each[s]);
}

}  // namespace

void check_lists(std::string_view operation, const AttentionOptions& options, const AttentionSizes& sizes) {
  check_lengths(operation, "query_lengths", options.query_lengths, sizes.batch, sizes.query_length);
  check_lengths(operation, "key_lengths", options.key_lengths, sizes.batch, sizes.key_length);
  check_packed(operation, options, sizes);
  if (options.key_start || options.query_start) {
    const auto packed = static_cast<std::int64_t>(options.query_offsets.size()) - 1;
    const std::int64_t sequences = options.query_offsets.empty() ? sizes.batch : packed;
    check_start(operation, "key_start", options.key_start, sequences);
    check_start(operation, "query_start", options.query_start, sequences);
  }
  check_slopes(operation, options, sizes);
  check_heads(operation, "sinks", options.sinks, sizes);
  for (std::size_t h = 0; h < options.sinks.size(); ++h) {
    if (options.sinks[h] < std::numeric_limits<float>::infinity()) continue;
    fail(operation,
         "sinks[" + std::to_string(h) + "] is " + text_of(options.sinks[h]) + ", expected a number or -inf (none)");
  }
}

void check_offsets(std::string_view operation, std::string_view name, std::span<const std::int64_t> offsets,
                   std::int64_t length, std::string_view axis) {
  const std::string named(name);
  if (offsets.front() != 0) fail(operation, named + "[0] is " + std::to_string(offsets.front()) + ", expected 0");
  for (std::size_t s = 1; s < offsets.size(); ++s) {
    if (offsets[s] < offsets[s - 1]) {
      fail(operation, named + "[" + std::to_string(s) + "] is " + std::to_string(offsets[s]) + ", less than the " +
                          std::to_string(offsets[s - 1]) + " before it");
    }
  }
  if (offsets.back() != length) {
    fail(operation, named + " ends with " + std::to_string(offsets.back()) + ", expected " + std::string(axis) + " = " +
                        std::to_string(length));
  }
}

}  // namespace headlight::ops
