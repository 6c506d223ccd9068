// What a tokenizer is made of: the parts that tokenizer.json names. Each is made by its file's read_…(), of the JSON
// object of its key, and is immutable once the tokenizer is.
//
//   text ─ AddedTokens (raw) ─ Normalizer ─ AddedTokens (normalized) ─ PreTokenizer ─ Model ─ PostProcessor ─ ids
//   ids ─ tokens ─ Decoder ─ text
//
// Texts between them are UTF-8. A piece is a part of the text that the model makes tokens of by itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"
#include "text/scratch.h"

namespace headlight::text {

using files::JsonValue;

// Ids are below that.
inline constexpr std::int64_t kMostIds = std::int64_t{1} << 21;
// Bytes of a token.
inline constexpr std::size_t kLongestToken = 1024;

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // `whole_front`: becomes false where the text's first character is taken away.
  virtual void apply(std::string& text, Spare& spare, bool& whole_front) const = 0;
  // Whether what becomes of the text before a cut (text/cut.h) does not depend on what lies behind, and ends with what
  // becomes of a letter of cuts, in which there is no mark of ASCII.
  [[nodiscard]] virtual bool passes_cuts() const { return false; }
};

// Takes pieces one after another.
class PieceSink {
 public:
  virtual ~PieceSink() = default;
  // `first`: the piece begins where the text does. Valid during the call.
  virtual void take(std::string_view piece, bool first) = 0;
};

// What a pre-tokenizer does at a cut: its pieces end there; it may leave the letters before it and what stands behind
// in one piece, as they are; or who knows.
enum class AtCut : std::uint8_t { splits, passes, unknown };

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Whether a ByteLevel at its end writes the bytes of pieces as characters; from keep_bytes() on it gives the bytes.
  [[nodiscard]] virtual bool writes_bytes() const { return false; }
  virtual void keep_bytes() {}
  // `space`: what normalizers make of that of the cut, " " or "\u2581".
  [[nodiscard]] virtual AtCut at_cut(std::string_view space) const = 0;
  // `piece` is not empty; empty pieces may come out of it.
  virtual void split(std::string_view piece, bool first, Scratch& scratch, PieceSink& out) const = 0;
};

// Bytes of a piece, enough most often, of which a model tries to make its first `most` ids, no token being longer than
// `longest`.
[[nodiscard]] inline std::size_t first_bytes(std::size_t most, std::size_t longest) noexcept {
  constexpr std::size_t kFew = 1024, kBytesOfToken = 6;
  return std::max({kFew, 4 * longest, std::min(most, SIZE_MAX / 16) * kBytesOfToken});
}

class Model {
 public:
  virtual ~Model() = default;
  virtual void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const = 0;
  // The first ids of the piece, `most` at least where there are so many.
  virtual void append_first(std::string_view piece, std::size_t most, Scratch& scratch,
                            std::vector<std::int64_t>& ids) const {
    static_cast<void>(most);
    append(piece, scratch, ids);
  }
  [[nodiscard]] virtual std::optional<std::int64_t> id(std::string_view token) const = 0;
  // A zero byte stands behind it; nothing for an id that no token has.
  [[nodiscard]] virtual std::optional<std::string_view> token(std::int64_t id) const noexcept = 0;
  // How many tokens it has, and one more than the largest id.
  [[nodiscard]] virtual std::int64_t count() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// The type of a part; refuses one without.
[[nodiscard]] std::string type_of(const JsonValue& part);
// That of a model, where a file does not say it, as the oldest do not, by the keys that it has.
[[nodiscard]] std::string type_of_model(const JsonValue& model);
// Refuses a member that is not one of these, "type" aside.
void expect_keys(const JsonValue& part, std::initializer_list<std::string_view> keys);
// Members that must be there.
[[nodiscard]] std::string needed_string(const JsonValue& part, std::string_view key);
[[nodiscard]] bool needed_boolean(const JsonValue& part, std::string_view key);
// One character, which must be there.
[[nodiscard]] char32_t needed_character(const JsonValue& part, std::string_view key);
// Refuses a part that is made of more than 64, or in which more than four write their pieces anew, as Metaspace and
// ByteLevel do.
void expect_few_parts(const JsonValue& part);
// Throws std::invalid_argument where a text of so many bytes has become one of far more.
void check_growth(std::size_t before, std::size_t after);
// The parts of a Sequence.
[[nodiscard]] std::vector<JsonValue> needed_parts(const JsonValue& sequence, std::string_view key);
// The same with the parts of a Sequence among them in its place.
[[nodiscard]] std::vector<JsonValue> flat_parts(const JsonValue& sequence, std::string_view key);

}  // namespace headlight::text
