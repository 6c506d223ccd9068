// Added tokens as the files of a folder list them, and the ids that they get.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"
#include "headlight/models/tokenizer.h"
#include "models/model_folder.h"
#include "text/token_list.h"

namespace headlight::models {

// Keys of tokens that have a name, in the order in which Transformers adds them. Every other key that ends in "_token"
// names one, too.
inline constexpr std::array<const char*, 7> kNamedTokens = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                            "pad_token", "cls_token", "mask_token"};
[[nodiscard]] inline bool is_named_token(std::string_view key) noexcept {
  return std::find(kNamedTokens.begin(), kNamedTokens.end(), key) != kNamedTokens.end();
}
// Lists of tokens that have none.
inline constexpr std::array<const char*, 2> kTokenLists = {"extra_special_tokens", "additional_special_tokens"};

// A token of a list; its id in `token` is what the file claims, where it claims one.
struct ListedToken {
  AddedToken token;
  bool has_id = false;
  // Where it was read, for errors. Nowhere: a default of BERT's tokenizer, which may be missing from the table.
  std::optional<files::JsonValue> place{};
  // It is left out where the vocabulary does not have it.
  bool needs_piece = false;
};

// Of a text, or of an object with `content` and the members of AddedToken; `special` where it says nothing of that.
// Throws FileError for another value, or a member that is not known.
[[nodiscard]] ListedToken read_listed_token(const files::JsonValue& value, bool special);

// special_tokens_map.json. Appends keys that nobody knows. Throws FileError for one that is refused.
[[nodiscard]] files::JsonValue read_special_tokens(const ModelFolder& folder, std::vector<std::string>& unknown);

// Of a tokenizer.json: that its padding names a token that it matches in texts, where the other files name none.
// Transformers would add it.
void check_padding(const files::JsonValue& tokenizer, const std::optional<files::JsonValue>& config,
                   const std::optional<files::JsonValue>& special);

// Tokens in the order in which they are added.
class ListedTokens {
 public:
  // Of one content that is added again the last properties count.
  void add(ListedToken token);
  // One that is there already stays as it is.
  void add_unless_there(ListedToken token);
  [[nodiscard]] const ListedToken* find(std::string_view content) const;
  [[nodiscard]] std::span<const ListedToken> list() const noexcept { return list_; }

 private:
  std::vector<ListedToken> list_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

// The tokens with the ids that Transformers gives them: that of the vocabulary, or, in the order in which they are
// added, the next one behind it. Throws FileError naming a token whose file claims another id, or for which `rows` rows
// of the table of embeddings are too few; such a default is left out. `has_gaps`: the vocabulary, of the file `path`,
// leaves out ids; then no token may come behind it, for Transformers would give it an id that another one has.
[[nodiscard]] std::vector<AddedToken> number_tokens(const ListedTokens& listed, const text::TokenList& vocabulary,
                                                    std::int64_t rows, bool has_gaps, const std::string& path);

}  // namespace headlight::models
