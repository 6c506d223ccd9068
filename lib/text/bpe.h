// Byte pair encoding (Sennrich et al. 2016): of all pairs of neighbours the one of lowest rank becomes one token, the
// leftmost first, until no pair is left that merges.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_fallback.h"
#include "text/merge_table.h"
#include "text/parts.h"
#include "text/table_limit.h"
#include "text/token_index.h"
#include "text/tokenizer_lists.h"
#include "text/vocabulary.h"

namespace headlight::text {

class Bpe final : public VocabularyModel {
 public:
  // `model` says all but the tokens and the merges.
  Bpe(const JsonValue& model, const TokenizerLists& lists, TableLimit& limit);

  // From now on pieces are bytes, and not the characters that ByteLevel writes them as. False, and nothing has changed,
  // where that is not the same.
  [[nodiscard]] bool take_bytes();
  // After the last take_bytes().
  void prepare(TableLimit& limit);

  void append(std::string_view piece, Scratch& scratch, std::vector<std::int64_t>& ids) const override;
  void append_first(std::string_view piece, std::size_t most, Scratch& scratch,
                    std::vector<std::int64_t>& ids) const override;

 private:
  // Two characters, as what they are at first, that no token holds side by side: no merge crosses such a seam. A set
  // with few bits, which may say that a seam is none.
  class Neighbours {
   public:
    void add(std::uint32_t left, std::uint32_t right) { bits_[bit_of(left, right)] = true; }
    static constexpr std::size_t kBytes = std::size_t{1} << 17;
    [[nodiscard]] bool may_have(std::uint32_t left, std::uint32_t right) const { return bits_[bit_of(left, right)]; }

   private:
    static constexpr int kBits = 20;
    [[nodiscard]] static std::size_t bit_of(std::uint32_t left, std::uint32_t right) noexcept {
      return static_cast<std::size_t>((std::uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15 >> (64 - kBits));
    }
    std::vector<bool> bits_ = std::vector<bool>(std::size_t{1} << kBits);
  };

  [[nodiscard]] std::uint32_t find(std::string_view token) const noexcept override { return index_.find(token); }
  void read_merges(const TokenizerLists& lists, TableLimit& limit);
  void find_merges(const TokenizerLists& lists, TableLimit& limit);
  void read_unknown(const JsonValue& model);
  [[nodiscard]] bool has_affixes() const noexcept { return !prefix_.empty() || !suffix_.empty(); }
  // The token that a piece is if merges make it, or kNone; and the piece that a token is, false where no piece is.
  [[nodiscard]] std::uint32_t key(std::string_view piece) const noexcept;
  [[nodiscard]] bool piece_of(std::string_view token, std::string& piece) const;
  void find_neighbours();
  void find_whole();
  // Where the piece ends that begins at `begin`, of those that are merged each by itself.
  [[nodiscard]] std::size_t end_of_word(std::string_view text, std::size_t begin) const;
  void append_word(std::string_view word, Scratch& scratch, std::vector<std::int64_t>& ids) const;
  void make_word(std::string_view word, Scratch& scratch, std::vector<std::int64_t>& ids) const;
  void append_first_of_word(std::string_view word, std::size_t most, Scratch& scratch,
                            std::vector<std::int64_t>& ids) const;
  [[nodiscard]] std::uint32_t single(std::string_view character, bool first, bool last, std::string& text) const;
  // What the characters of a piece are at first, with kForeign where that is no token of theirs.
  void begin(std::string_view piece, Scratch& scratch) const;
  void begin_bytes(std::string_view piece, Scratch& scratch) const;
  // What lies between seams, part by part, until there are `most` ids. Whether a part that the end of the piece ends is
  // whole is not known where the piece `goes_on`: then it is left out.
  void append_parts(std::string_view piece, bool goes_on, std::size_t most, Scratch& scratch,
                    std::vector<std::int64_t>& ids) const;
  void append_part(std::string_view text, const std::uint32_t* symbols, std::size_t count, Scratch& scratch,
                   std::vector<std::int64_t>& ids) const;
  void merge_few(const std::uint32_t* symbols, std::size_t count, std::vector<std::int64_t>& ids) const;
  void merge_many(const std::uint32_t* symbols, std::size_t count, Scratch& scratch,
                  std::vector<std::int64_t>& ids) const;

  TokenIndex index_;
  MergeTable merges_;
  std::string prefix_, suffix_;
  std::uint32_t unknown_ = TokenTable::kNone;
  ByteFallback fallback_;
  bool fuses_unknown_ = false, ignores_merges_ = false, takes_bytes_ = false;
  std::array<std::uint32_t, 256> bytes_{};  // where pieces are bytes: the token of each
  std::vector<std::uint32_t> singles_;      // tokens of one character below U+10000
  std::vector<bool> whole_;                 // by id: a piece that is this token becomes it
  Neighbours neighbours_;
  std::size_t longest_ = 0;
  // No merge crosses the beginning of U+2581, or of several.
  bool splits_at_metaspace_ = false;
};

}  // namespace headlight::text
