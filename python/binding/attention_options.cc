#include "attention_options.h"

#include <string>

#include "values.h"

namespace headlight::python {
namespace {

constexpr std::array kCausal{Name<Causal>{"top_left", Causal::top_left},
                             Name<Causal>{"bottom_right", Causal::bottom_right}};
constexpr std::array kAlign{Name<Align>{"top_left", Align::top_left}, Name<Align>{"bottom_right", Align::bottom_right}};
constexpr std::array kMaskMeans{Name<MaskMeans>{"attend", MaskMeans::attend},
                                Name<MaskMeans>{"ignore", MaskMeans::ignore}};

bool given(nb::handle keyword) noexcept { return !keyword.is_none(); }

// A pair, either of which may be None: unbounded.
Window window_of(const char* operation, nb::handle pair) {
  if (!is_pair_like(pair)) {
    refuse_type(operation, "window is " + kind_of(pair) + ", expected a pair (left, right)");
  }
  if (nb::len(pair) != 2) {
    refuse_value(operation, "window has " + std::to_string(nb::len(pair)) + " entries, expected two: (left, right)");
  }
  const auto side = [&](int number, const char* argument) {
    const nb::object value = pair[number];
    return value.is_none() ? -1 : integer(operation, argument, value);
  };
  const std::int64_t left = side(0, "window[0]");
  return {left, side(1, "window[1]")};
}

// Each alias under the name of its keyword: all that follows, and its messages, know that one alone.
AttentionKeywords without_aliases(const char* operation, AttentionKeywords keywords) {
  for (const AttentionAlias& one : kAttentionAliases) {
    if (!given(keywords.*one.alias)) continue;
    if (given(keywords.*one.keyword)) {
      refuse_type(operation, std::string(one.alias_name) + " and " + one.keyword_name +
                                 " are both given, expected one of them: they are names of the same option");
    }
    keywords.*one.keyword = keywords.*one.alias;
  }
  return keywords;
}

}  // namespace

ReadAttentionOptions::ReadAttentionOptions(const char* operation, const AttentionKeywords& all_keywords)
    : operation_(operation) {
  const AttentionKeywords keywords = without_aliases(operation, all_keywords);
  read_positions(keywords);
  read_lengths(keywords);
  read_mask(keywords);
  read_scores(keywords);
}

const ReadAttentionOptions::Integers& ReadAttentionOptions::read_list(const char* argument, nb::handle keyword,
                                                                      Integers& storage) {
  storage = integers(operation_, argument, keyword);
  if (storage.empty() && empty_list_ == nullptr) empty_list_ = argument;
  return storage;
}

void ReadAttentionOptions::check_lists(std::int64_t batch) const {
  const auto packed = static_cast<std::int64_t>(query_offsets_.size()) - 1;
  const std::int64_t sequences = query_offsets_.empty() ? batch : packed;
  if (empty_list_ == nullptr || sequences == 0) return;
  refuse_value(operation_, std::string(empty_list_) + " has 0 entries, expected " + std::to_string(sequences));
}

Start ReadAttentionOptions::read_start(const char* argument, nb::handle keyword, Integers& storage) {
  if (is_one_integer(keyword)) return Start(integer(operation_, argument, keyword));
  return Start(read_list(argument, keyword, storage));
}

void ReadAttentionOptions::read_positions(const AttentionKeywords& keywords) {
  if (given(keywords.causal)) options_.causal = one_of(operation_, "causal", keywords.causal, kCausal);
  if (given(keywords.align)) options_.align = one_of(operation_, "align", keywords.align, kAlign);
  if (given(keywords.window)) options_.window = window_of(operation_, keywords.window);
  if (given(keywords.chunk)) options_.chunk = integer(operation_, "chunk", keywords.chunk);
  if (given(keywords.query_start)) {
    options_.query_start = read_start("query_start", keywords.query_start, query_start_);
  }
  if (given(keywords.key_start)) options_.key_start = read_start("key_start", keywords.key_start, key_start_);
}

void ReadAttentionOptions::read_lengths(const AttentionKeywords& keywords) {
  const auto offsets = [&](const char* argument, nb::handle keyword, Integers& storage) {
    storage = integers(operation_, argument, keyword);
    if (storage.empty()) refuse_value(operation_, std::string(argument) + " has 0 entries, expected at least [0]");
    return std::span<const std::int64_t>(storage);
  };
  if (given(keywords.query_lengths)) {
    options_.query_lengths = read_list("query_lengths", keywords.query_lengths, query_lengths_);
  }
  if (given(keywords.key_lengths)) {
    options_.key_lengths = read_list("key_lengths", keywords.key_lengths, key_lengths_);
  }
  if (given(keywords.query_offsets)) {
    options_.query_offsets = offsets("query_offsets", keywords.query_offsets, query_offsets_);
  }
  if (given(keywords.key_offsets)) {
    options_.key_offsets = offsets("key_offsets", keywords.key_offsets, key_offsets_);
  }
}

void ReadAttentionOptions::read_mask(const AttentionKeywords& keywords) {
  if (!given(keywords.mask)) {
    if (given(keywords.mask_means)) refuse_value(operation_, "mask_means given without mask");
    return;
  }
  mask_.emplace(operation_, "mask", keywords.mask);
  const View<const std::uint8_t, 4> entries = mask_->broadcast_booleans();
  if (!given(keywords.mask_means)) {
    refuse_value(operation_, "mask given without mask_means, which says what True means: 'attend' or 'ignore'");
  }
  options_.mask = BooleanMask(entries, one_of(operation_, "mask_means", keywords.mask_means, kMaskMeans));
}

void ReadAttentionOptions::read_scores(const AttentionKeywords& keywords) {
  if (given(keywords.bias)) {
    bias_.emplace(operation_, "bias", keywords.bias);
    options_.bias = bias_->broadcast_floats();
  }
  if (given(keywords.scale)) options_.scale = number(operation_, "scale", keywords.scale);
  if (given(keywords.softcap)) options_.softcap = number(operation_, "softcap", keywords.softcap);
  if (given(keywords.alibi)) options_.alibi = slopes_.emplace(operation_, "alibi", keywords.alibi).vector();
  if (given(keywords.sinks)) options_.sinks = sinks_.emplace(operation_, "sinks", keywords.sinks).vector();
  if (given(keywords.dropout)) options_.dropout.probability = number(operation_, "dropout", keywords.dropout);
  if (given(keywords.seed)) options_.dropout.seed = seed_of(operation_, "seed", keywords.seed);
}

}  // namespace headlight::python
