// What Transformers makes of a tokenizer.json by the tokenizer_class of a folder.
//
// PreTrainedTokenizerFast and TokenizersBackend take all of the file. A class of its own, such as RobertaTokenizer,
// takes all of it in Transformers 4; in Transformers 5 it takes the vocabulary, the merges and the added tokens, and
// makes the normalizer, the pre_tokenizer and mostly the post_processor by itself. So a file has to say what its class
// makes. Two kinds of files that Transformers 4 wrote say it in other words, and get what the class makes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "files/json_value.h"
#include "models/tokenizers/listed_tokens.h"
#include "text/pipeline.h"

namespace headlight::models {

struct TokenizerClass {
  std::string_view name;  // without "Fast" at its end
  enum class Kind : std::uint8_t { bytes, gemma, llama, sentence_piece, word_piece } kind;
  // In the words of described_model() and described_parts().
  std::string_view model, normalizer, pre_tokenizer;
  // What stands around a text: what the post_processor of the file puts there, nothing, or these tokens.
  enum class Around : std::uint8_t { by_file, nothing, cls_sep, bos_eos } around;
  // What the model takes for the unknown: nothing, since it is one of bytes; unk_token; its id; or the id 3.
  enum class Unknown : std::uint8_t { bytes, token, id_of_token, third_id } unknown;
  // Tokens where no file names them, in the order of kNamedTokens; "" for none.
  std::array<std::string_view, kNamedTokens.size()> tokens;
  // Special tokens where no file lists any.
  std::array<std::string_view, 3> listed{};
  bool adds_tokens_again = false;  // special ones, without options
};

// Null for a name that is not in the table.
[[nodiscard]] const TokenizerClass* find_tokenizer_class(std::string_view name) noexcept;

// Throws FileError where the model, the normalizer or the pre_tokenizer of `tokenizer`, a tokenizer.json, is not what
// the class makes. Returns what it makes where the file says that in other words. `config`: tokenizer_config.json.
[[nodiscard]] text::ReplacedParts check_class(const files::JsonValue& tokenizer, const TokenizerClass& of,
                                              const std::optional<files::JsonValue>& config);

}  // namespace headlight::models
