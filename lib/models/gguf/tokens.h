// The tokens of a GGUF file, which all of its tokenizers have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "models/gguf/array.h"
#include "models/gguf/metadata.h"

namespace headlight::models {

// Keys of tokenizers.
inline constexpr std::string_view kGgufModel = "tokenizer.ggml.model";
inline constexpr std::string_view kGgufPre = "tokenizer.ggml.pre";
inline constexpr std::string_view kGgufTokens = "tokenizer.ggml.tokens";
inline constexpr std::string_view kGgufScores = "tokenizer.ggml.scores";
inline constexpr std::string_view kGgufMerges = "tokenizer.ggml.merges";
inline constexpr std::string_view kGgufUnknown = "tokenizer.ggml.unknown_token_id";
inline constexpr std::string_view kGgufBegin = "tokenizer.ggml.bos_token_id";
inline constexpr std::string_view kGgufEnd = "tokenizer.ggml.eos_token_id";
inline constexpr std::string_view kGgufSeparator = "tokenizer.ggml.seperator_token_id";  // as the format spells it
inline constexpr std::string_view kGgufPadding = "tokenizer.ggml.padding_token_id";
inline constexpr std::string_view kGgufMask = "tokenizer.ggml.mask_token_id";
inline constexpr std::string_view kGgufClass = "tokenizer.ggml.cls_token_id";
inline constexpr std::string_view kGgufPrefix = "tokenizer.ggml.add_space_prefix";
inline constexpr std::string_view kGgufRemovesSpace = "tokenizer.ggml.remove_extra_whitespaces";
inline constexpr std::string_view kGgufCharacters = "tokenizer.ggml.precompiled_charsmap";
inline constexpr std::string_view kGgufLowerCase = "tokenizer.ggml.normalizer.lowercase";
inline constexpr std::string_view kGgufStripsAccents = "tokenizer.ggml.normalizer.strip_accents";
inline constexpr std::string_view kGgufComposes = "tokenizer.ggml.normalizer.nfc";

// They lie in the file, and so do their kinds: what asks for one of some number goes through those before it.
class GgufTokens {
 public:
  // Refuses a file without tokens, more of them than `rows`, one of more than text::kLongestToken bytes, and kinds of
  // which there are not as many.
  GgufTokens(const GgufMetadata& metadata, std::int64_t rows);

  [[nodiscard]] const GgufMetadata& metadata() const noexcept { return metadata_; }
  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }
  // In the order of their ids.
  [[nodiscard]] GgufArray::Strings texts() const noexcept { return tokens_.strings(); }
  [[nodiscard]] std::string text(std::size_t id) const;
  // Whether it is a control token, or the unknown one.
  [[nodiscard]] bool is_special(std::size_t id) const noexcept;
  // Whether it is found in the text as it stands.
  [[nodiscard]] bool is_added(std::size_t id) const noexcept;

  // The id that a key gives; none without the key.
  [[nodiscard]] std::optional<std::size_t> id_of(std::string_view key) const;
  // The token of the first of those keys that is there.
  [[nodiscard]] std::string name_of(std::initializer_list<std::string_view> keys, const std::string& otherwise) const;
  // One for each of them; refuses another number.
  void check_count(std::string_view key, std::size_t count) const;

 private:
  [[nodiscard]] bool is(std::size_t id, std::int64_t kind) const noexcept;

  const GgufMetadata& metadata_;
  GgufArray tokens_, kinds_;
};

}  // namespace headlight::models
