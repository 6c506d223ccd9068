// Tokenizers as published in tokenizer.json, the file of Hugging Face's tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/export.h"

namespace headlight::files {
class JsonValue;
}

namespace headlight::text {

struct Pipeline;
struct Scratch;

// Of encode(): whether the post-processor's tokens, such as <s>, stand around the text. Of decode(): whether special
// tokens are in the text.
enum class SpecialTokens : std::uint8_t { with, without };

// Two texts as one sequence: of each id, the type that the post-processor gives it, most often 0 of the first text and
// 1 of the second.
struct TokenPair {
  std::vector<std::int64_t> ids;    // of both texts, and what stands around them
  std::vector<std::int64_t> types;  // one for each
};

// How many tokens the post-processor puts around a text, how many of them stand behind it, and how many it puts around
// two texts.
struct TokensAround {
  std::int64_t text = 0;    // around one
  std::int64_t behind = 0;  // of those
  std::int64_t pair = 0;    // around two
};

// Text → token ids → text, by the parts that the file names:
//
//   added tokens → normalizer → pre_tokenizer → model (WordPiece, BPE, Unigram) → post_processor;   ids → decoder
//
// A text's ids are those of Hugging Face's tokenizers without truncation and padding, which belong to whoever makes a
// batch. For texts of n bytes, time is O(n log n) for BPE and O(n) times the longest token else; memory is O(n).
// Immutable; copies share one state, in which calls leave what they worked in for the next ones, at most 2 MiB for
// each of 16 threads; any number of threads may use one.
class HEADLIGHT_API Tokenizer {
 public:
  // `path`: tokenizer.json, or a folder that holds one. Throws models::FileError, naming file and key, where the file
  // cannot be read, has more than 32 MiB, or says what is not understood or contradicts itself.
  [[nodiscard]] static Tokenizer read(const std::string& path);
  // The same from memory; `source` names it in errors.
  [[nodiscard]] static Tokenizer parse(std::string_view json, std::string_view source = "tokenizer.json");
  // Internal: of a document that has been read.
  [[nodiscard]] static Tokenizer parse(const files::JsonValue& document);
  // Internal: of parts that have been made.
  [[nodiscard]] static Tokenizer of(Pipeline parts);

  // The ids of a text, and of two texts as one sequence. Throw std::invalid_argument where a text is not UTF-8, naming
  // the byte, or has 2³¹ bytes or more.
  [[nodiscard]] std::vector<std::int64_t> encode(std::string_view text,
                                                 SpecialTokens special = SpecialTokens::with) const;
  [[nodiscard]] std::vector<std::int64_t> encode_pair(std::string_view first, std::string_view second,
                                                      SpecialTokens special = SpecialTokens::with) const;
  // At most max_length ids, those of the post-processor among them, which all stay: the text's end is cut off, and of
  // two texts that of the longer one (truncation "longest_first"). A long text is gone through as far as its first
  // tokens need it, where the tokenizer splits at spaces; of two texts that are both too long, as far as tells which
  // has more. Throw as encode(), and std::invalid_argument where the tokens around are more than max_length.
  [[nodiscard]] std::vector<std::int64_t> encode_within(std::string_view text, std::int64_t max_length) const;
  [[nodiscard]] TokenPair encode_pair_within(std::string_view first, std::string_view second,
                                             std::int64_t max_length) const;
  [[nodiscard]] TokensAround tokens_around() const noexcept;
  // Internal: the same behind what `ids` and `types` hold, in memory that the caller keeps.
  void append_within(std::string_view text, std::int64_t max_length, Scratch& scratch,
                     std::vector<std::int64_t>& ids) const;
  void append_pair_within(std::string_view first, std::string_view second, std::int64_t max_length, Scratch& scratch,
                          std::vector<std::int64_t>& ids, std::vector<std::int64_t>& types) const;

  // The text of ids. What is not UTF-8 in it is U+FFFD. Throws std::invalid_argument for an id that no token has.
  [[nodiscard]] std::string decode(const std::vector<std::int64_t>& ids,
                                   SpecialTokens special = SpecialTokens::with) const;

  // The token of an id as the file spells it, "Ġstreet"; nothing for an id that no token has.
  [[nodiscard]] std::optional<std::string> token(std::int64_t id) const;
  // The same where it lies, with a zero byte behind it, as long as a copy of this lives.
  [[nodiscard]] std::optional<std::string_view> find_token(std::int64_t id) const noexcept;
  [[nodiscard]] std::optional<std::int64_t> id(std::string_view token) const;
  // One more than the largest id.
  [[nodiscard]] std::int64_t size() const noexcept;

 private:
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace headlight::text
