// The tokenizer of a TextEncoder, whichever it is: BERT's, or that of a tokenizer.json of another kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/tokenizer.h"
#include "headlight/text/tokenizer.h"
#include "text/scratch.h"

namespace headlight::models {

class TextTokenizer {
 public:
  virtual ~TextTokenizer() = default;

  // Puts the ids of a text behind those there are, with what stands around a text: at most max_length, of which the
  // text's end is cut off. `scratch` is that of this tokenizer alone, and what it holds lasts over calls. Throws
  // std::invalid_argument for what is not UTF-8.
  virtual void append(std::string_view text, std::int64_t max_length, text::Scratch& scratch,
                      std::vector<std::int64_t>& ids) const = 0;
  // The same of two texts, of which the longer one is cut, and as many types of tokens behind `types`.
  virtual void append_pair(std::string_view first, std::string_view second, std::int64_t max_length,
                           text::Scratch& scratch, std::vector<std::int64_t>& ids,
                           std::vector<std::int64_t>& types) const = 0;
  // How many stand behind a text.
  [[nodiscard]] virtual std::int64_t tokens_behind() const noexcept = 0;
  // How many stand around a text, and around two.
  [[nodiscard]] virtual std::int64_t tokens_around(bool pair) const noexcept = 0;
  // One more than the largest id.
  [[nodiscard]] virtual std::int64_t size() const noexcept = 0;
  // With a zero byte behind it; nothing for an id that no token has. Lives as long as this.
  [[nodiscard]] virtual std::optional<std::string_view> token(std::int64_t id) const = 0;
  [[nodiscard]] virtual std::optional<std::int64_t> id(std::string_view token) const = 0;
  // Of ids of tokens.
  [[nodiscard]] virtual std::string decode(std::span<const std::int64_t> ids) const = 0;
  // What append() works in at most for each byte of a text where no token must end.
  [[nodiscard]] virtual std::int64_t bytes_of_byte() const noexcept = 0;
  // Whether Transformers calls the token of that id, which stands behind a text or is its last, a special one.
  [[nodiscard]] virtual bool is_special(std::int64_t id) const noexcept = 0;
  // Null for another tokenizer.
  [[nodiscard]] virtual const Tokenizer* bert() const noexcept { return nullptr; }
};

[[nodiscard]] std::unique_ptr<TextTokenizer> make_text_tokenizer(Tokenizer tokenizer);
// `types`: whether the network is told which tokens are those of a second text. `special`: ids of the tokens that
// Transformers calls special, in ascending order.
[[nodiscard]] std::unique_ptr<TextTokenizer> make_text_tokenizer(text::Tokenizer tokenizer, bool types,
                                                                 std::vector<std::int64_t> special = {});

}  // namespace headlight::models
