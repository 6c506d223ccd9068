// The one place where the keywords of attention() and attention_backward() become AttentionOptions.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "array.h"
#include "headlight/attention.h"

namespace headlight::python {

// What was given for each, None where nothing was.
struct AttentionKeywords {
  nb::handle causal, align, window, chunk, query_lengths, key_lengths, query_offsets, key_offsets, query_start,
      key_start, mask, mask_means, bias, scale, softcap, alibi, sinks, dropout, seed;
};

// Their names, in the order of the members.
inline constexpr std::array kAttentionKeywords{
    "causal",      "align",       "window",    "chunk",   "query_lengths", "key_lengths", "query_offsets",
    "key_offsets", "query_start", "key_start", "mask",    "mask_means",    "bias",        "scale",
    "softcap",     "alibi",       "sinks",     "dropout", "seed"};
static_assert(sizeof(AttentionKeywords) == kAttentionKeywords.size() * sizeof(nb::handle));

// The same with types and defaults, as signatures show them.
#define HEADLIGHT_ATTENTION_KEYWORDS                                                                                \
  "causal: Alignment | None = None, align: Alignment | None = None, window: Window | None = None, chunk: int = 0, " \
  "query_lengths: Integers | None = None, key_lengths: Integers | None = None, "                                    \
  "query_offsets: Integers | None = None, key_offsets: Integers | None = None, "                                    \
  "query_start: int | Integers | None = None, key_start: int | Integers = 0, mask: Array | None = None, "           \
  "mask_means: MaskMeans | None = None, bias: Array | None = None, scale: float | None = None, "                    \
  "softcap: float | None = None, alibi: Array | None = None, sinks: Array | None = None, dropout: float = 0.0, "    \
  "seed: int = 0"

// The options, and what they look at, for as long as a call lasts.
class ReadAttentionOptions {
 public:
  // Throws TypeError and ValueError naming the keyword; what a keyword's values mean is for the engine to refuse.
  ReadAttentionOptions(const char* operation, const AttentionKeywords& given);
  ReadAttentionOptions(const ReadAttentionOptions&) = delete;
  ReadAttentionOptions& operator=(const ReadAttentionOptions&) = delete;

  [[nodiscard]] AttentionOptions& options() noexcept { return options_; }
  // Throws ValueError for a list that was given and is empty though there are sequences: to the engine it is not given.
  void check_lists(std::int64_t batch) const;
  // The array behind options().bias, or null.
  [[nodiscard]] const Array* bias() const noexcept { return bias_ ? &*bias_ : nullptr; }

 private:
  using Integers = std::vector<std::int64_t>;

  Start read_start(const char* argument, nb::handle given, Integers& storage);
  void read_positions(const AttentionKeywords& given);
  void read_lengths(const AttentionKeywords& given);
  void read_mask(const AttentionKeywords& given);
  void read_scores(const AttentionKeywords& given);

  // One entry for each sequence.
  const Integers& read_list(const char* argument, nb::handle given, Integers& storage);

  const char* operation_;
  const char* empty_list_ = nullptr;  // the name of one without entries
  AttentionOptions options_;
  Integers query_lengths_, key_lengths_, query_offsets_, key_offsets_, query_start_, key_start_;
  std::optional<Array> mask_, bias_, slopes_, sinks_;
};

}  // namespace headlight::python
