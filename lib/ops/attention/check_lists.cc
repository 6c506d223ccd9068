// Of what attention() refuses, the lists of numbers: one for each sequence, sample or head.
#include <cmath>
#include <limits>
#include <string>

#include "ops/attention/check.h"
#include "ops/offsets_check.h"

namespace headlight::ops {
namespace {

void check_lengths(std::string_view operation, std::string_view name, std::span<const std::int64_t> lengths,
                   std::int64_t batch, std::int64_t limit) {
  if (lengths.empty()) return;
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    fail(operation, name, " has ", lengths.size(), " entries, expected B = ", batch);
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > limit) {
      fail(operation, name, "[", b, "] is ", lengths[b], ", expected 0 to ", limit);
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
    fail(operation, "query_offsets given with B = ", sizes.batch, ", expected B = 1");
  }
  check_offsets(operation, "query_offsets", options.query_offsets, sizes.query_length, "Lq");
  if (options.key_offsets.empty()) {
    if (sizes.key_length != sizes.query_length) {
      fail(operation, "query_offsets given without key_offsets, but Lq = ", sizes.query_length,
           " and Lk = ", sizes.key_length);
    }
    return;
  }
  if (options.key_offsets.size() != options.query_offsets.size()) {
    fail(operation, "key_offsets has ", options.key_offsets.size(), " entries, query_offsets ",
         options.query_offsets.size());
  }
  check_offsets(operation, "key_offsets", options.key_offsets, sizes.key_length, "Lk");
}

// One number for each query head, or none.
void check_heads(std::string_view operation, std::string_view name, std::span<const float> numbers,
                 const AttentionSizes& sizes) {
  if (numbers.empty() || static_cast<std::int64_t>(numbers.size()) == sizes.query_heads) return;
  fail(operation, name, " has ", numbers.size(), " entries, expected Hq = ", sizes.query_heads);
}

void check_slopes(std::string_view operation, const AttentionOptions& options, const AttentionSizes& sizes) {
  check_heads(operation, "alibi", options.alibi, sizes);
  for (std::size_t h = 0; h < options.alibi.size(); ++h) {
    if (std::isfinite(options.alibi[h])) continue;
    fail(operation, "alibi[", h, "] is ", text_of(options.alibi[h]), ", expected a finite number");
  }
}

void check_start(std::string_view operation, std::string_view name, const Start& start, std::int64_t sequences) {
  constexpr std::int64_t kFurthest = std::int64_t{1} << 60;
  constexpr const char* kExpected = ", expected 0 to 2^60";
  const auto is_near = [](std::int64_t position) { return position >= 0 && position <= kFurthest; };
  if (start.of_all) {
    if (!is_near(*start.of_all)) fail(operation, name, " is ", *start.of_all, kExpected);
    return;
  }
  const std::span<const std::int64_t> each = start.of_each;
  if (!each.empty() && static_cast<std::int64_t>(each.size()) != sequences) {
    fail(operation, name, " has ", each.size(), " entries, expected ", sequences, ", one for each sequence");
  }
  for (std::size_t s = 0; s < each.size(); ++s) {
    if (!is_near(each[s])) fail(operation, name, "[", s, "] is ", each[s], kExpected);
  }
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
    fail(operation, "sinks[", h, "] is ", text_of(options.sinks[h]), ", expected a number or -inf (none)");
  }
}

}  // namespace headlight::ops
