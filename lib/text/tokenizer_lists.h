// What a tokenizer has as much of as its file is long: tokens, merges, added tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headlight::text {

// One of `added_tokens`.
struct AddedEntry {
  std::string_view content;
  std::int64_t id = -1;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// The lists are gone through where they lie, in a tokenizer.json or in another file, as often as a reader needs them:
// nobody has copies of their texts, which are valid during a call of `take` alone. Entries have numbers, by which
// refusals name them. Each function throws FileError where its list is missing or an entry is not as it should be.
class TokenizerLists {
 public:
  enum class List : std::uint8_t { tokens, merges, added };

  virtual ~TokenizerLists() = default;

  // The tokens of a model in the order of the file: with their ids, or, of a model that has them, with scores; the id
  // is then the number.
  using TakeToken = std::function<void(std::size_t number, std::string_view token, std::int64_t id)>;
  virtual void for_each_token(const TakeToken& take) const = 0;
  using TakeScore = std::function<void(std::size_t number, std::string_view token, double score)>;
  virtual void for_each_score(const TakeScore& take) const = 0;

  // Whether merges are those of the tokens' scores (ScoreMerges), and not listed.
  [[nodiscard]] virtual bool merges_by_scores() const { return false; }
  // Else two tokens each, in the order of their ranks; and how many there may be.
  using TakeMerge = std::function<void(std::size_t number, std::string_view left, std::string_view right)>;
  virtual void for_each_merge(const TakeMerge& take) const = 0;
  [[nodiscard]] virtual std::size_t count_merges() const = 0;

  // None where there is no list of them.
  using TakeAdded = std::function<void(std::size_t number, const AddedEntry& entry)>;
  virtual void for_each_added(const TakeAdded& take) const = 0;

  // Throw FileError: of an entry, one of its members where `key` is not empty, and of a list.
  [[noreturn]] virtual void fail(List list, std::size_t number, std::string_view key,
                                 const std::string& message) const = 0;
  [[noreturn]] virtual void fail(List list, const std::string& message) const = 0;
};

// Whether an entry of merges is the first line of a merges.txt, which is none: "#version: 0.2".
[[nodiscard]] inline bool is_version(std::string_view line) noexcept { return line.starts_with("#version"); }

// "a b"; nothing where there is no space, or more than one.
[[nodiscard]] inline std::optional<std::pair<std::string_view, std::string_view>> two_tokens(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(line.substr(0, space), line.substr(space + 1));
}

}  // namespace headlight::text
