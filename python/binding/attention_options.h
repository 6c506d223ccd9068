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

// The keywords, as signatures show them: name, type, default. Whatever lists them is made of this table.
#define HEADLIGHT_FOR_ATTENTION_KEYWORDS(KEYWORD)       \
  KEYWORD(causal, "Alignment | None", "None")           \
  KEYWORD(align, "Alignment | None", "None")            \
  KEYWORD(window, "Window | None", "None")              \
  KEYWORD(chunk, "int", "0")                            \
  KEYWORD(query_lengths, "Integers | None", "None")     \
  KEYWORD(key_lengths, "Integers | None", "None")       \
  KEYWORD(query_offsets, "Integers | None", "None")     \
  KEYWORD(key_offsets, "Integers | None", "None")       \
  KEYWORD(query_start, "int | Integers | None", "None") \
  KEYWORD(key_start, "int | Integers", "0")             \
  KEYWORD(mask, "Array | None", "None")                 \
  KEYWORD(mask_means, "MaskMeans | None", "None")       \
  KEYWORD(bias, "Array | None", "None")                 \
  KEYWORD(scale, "float | None", "None")                \
  KEYWORD(softcap, "float | None", "None")              \
  KEYWORD(alibi, "Array | None", "None")                \
  KEYWORD(sinks, "Array | None", "None")                \
  KEYWORD(dropout, "float", "0.0")                      \
  KEYWORD(seed, "int", "0")                             \
  KEYWORD(soft_cap, "float | None", "None")             \
  KEYWORD(slopes, "Array | None", "None")

// What was given for each, None where nothing was.
struct AttentionKeywords {
#define HEADLIGHT_MEMBER(name, type, otherwise) nb::handle name;
  HEADLIGHT_FOR_ATTENTION_KEYWORDS(HEADLIGHT_MEMBER)
#undef HEADLIGHT_MEMBER
};

// Their names, in the order of the members.
#define HEADLIGHT_NAME(name, type, otherwise) #name,
inline constexpr std::array kAttentionKeywords{HEADLIGHT_FOR_ATTENTION_KEYWORDS(HEADLIGHT_NAME)};
#undef HEADLIGHT_NAME

// The part of a signature that has all of them, a ", " behind each.
#define HEADLIGHT_IN_SIGNATURE(name, type, otherwise) #name ": " type " = " otherwise ", "
#define HEADLIGHT_ATTENTION_KEYWORDS HEADLIGHT_FOR_ATTENTION_KEYWORDS(HEADLIGHT_IN_SIGNATURE)

// Other names of options, which Python alone has.
struct AttentionAlias {
  nb::handle AttentionKeywords::*alias;
  const char* alias_name;
  nb::handle AttentionKeywords::*keyword;
  const char* keyword_name;
};
inline constexpr std::array kAttentionAliases{
    AttentionAlias{&AttentionKeywords::soft_cap, "soft_cap", &AttentionKeywords::softcap, "softcap"},
    AttentionAlias{&AttentionKeywords::slopes, "slopes", &AttentionKeywords::alibi, "alibi"}};

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
