// Tokenizers of GGUF files are those of the tokenizer.json that they were made from, as far as the metadata say it.
// What they do not say: without the keys of newer files, whether BERT's letters become lower-case (they do unless a
// piece has a capital letter); and what an added token takes along (the mask token the space before it, in files of
// RoBERTa's and ModernBERT's kind).
#include "models/gguf/tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "headlight/models/tokenizer.h"
#include "headlight/text/tokenizer.h"
#include "models/gguf/tokenizer_parts.h"
#include "models/gguf/tokens.h"
#include "models/json_text.h"
#include "models/tokenizers/tokenizer_files.h"
#include "models/tokenizers/vocabulary.h"
#include "text/pipeline.h"
#include "text/precompiled.h"
#include "text/table_limit.h"
#include "text/token_list.h"

namespace headlight::models {
namespace {

constexpr std::string_view kSpace = "\u2581";

text::TableLimit limit_of(const GgufFile& file, std::size_t held) {
  held += file.metadata().size_bytes() + file.tensors().size_bytes();
  for (const GgufTensor& tensor : file.tensors()) held += tensor.shape().size_bytes() + tensor.bytes.size();
  return {file.path(), static_cast<std::size_t>(file.bytes()), held};
}

// take(piece, whether it is one of those that are spelt as they are) of each token as vocab.txt has it.
template <class Take>
void for_each_piece(const GgufTokens& tokens, const Take& take) {
  std::string piece;
  std::size_t id = 0;
  for (const std::string_view token : tokens.texts()) {
    const bool bracketed = token.size() > 2 && token.front() == '[' && token.back() == ']';
    const bool whole = tokens.is_special(id++) || bracketed, begins = token.starts_with(kSpace);
    piece.assign(whole || begins ? "" : "##").append(whole || !begins ? token : token.substr(kSpace.size()));
    take(std::string_view(piece), whole);
  }
}

std::unique_ptr<TextTokenizer> word_piece(const GgufTokens& tokens, text::TableLimit limit) {
  const GgufMetadata& metadata = tokens.metadata();
  TokenizerFiles files{.vocabulary = {}, .limit = std::move(limit), .options = {}, .path = {}, .model_max_length = {}};
  TokenizerOptions& options = files.options;
  std::size_t bytes = 0;
  for_each_piece(tokens, [&](std::string_view piece, bool whole) {
    const auto is_capital = [](char byte) { return byte >= 'A' && byte <= 'Z'; };
    if (!whole && std::any_of(piece.begin(), piece.end(), is_capital)) options.lower_case = false;
    bytes += piece.size();
  });
  if (const auto excess = vocabulary_excess(tokens.size(), bytes)) metadata.fail(kGgufTokens, *excess);
  files.limit.take(text::TokenList::memory_of(tokens.size(), bytes));
  files.vocabulary.reserve(tokens.size(), bytes);
  for_each_piece(tokens, [&](std::string_view piece, bool) { files.vocabulary.add(piece); });
  options.lower_case = metadata.flag(kGgufLowerCase, options.lower_case);
  if (metadata.has(kGgufStripsAccents)) options.strip_accents = metadata.flag(kGgufStripsAccents, false);
  options.unk_token = tokens.name_of({kGgufUnknown}, options.unk_token);
  options.cls_token = tokens.name_of({kGgufClass, kGgufBegin}, options.cls_token);
  options.sep_token = tokens.name_of({kGgufSeparator, kGgufEnd}, options.sep_token);
  options.pad_token = tokens.name_of({kGgufPadding}, options.pad_token);
  options.mask_token = tokens.name_of({kGgufMask}, options.mask_token);
  for (const char* const key :
       {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_sep_token"}) {
    if (!metadata.flag(key, true)) metadata.fail(key, "is false, expected true beside the model bert");
  }
  files.path = metadata.file().path();
  return make_text_tokenizer(std::move(files).tokenizer());
}

// SentencePiece's normalizer, which Unigram has.
std::unique_ptr<text::Normalizer> read_characters(const GgufMetadata& metadata, std::string_view model,
                                                  text::TableLimit& limit) {
  const GgufArray array = model == "t5" ? metadata.integers(kGgufCharacters) : GgufArray();
  if (array.empty()) return nullptr;
  limit.take(array.size());
  const std::string bytes = gguf_bytes(array);
  auto made = std::make_unique<text::Precompiled>(
      bytes, [&](const std::string& message) { metadata.fail(kGgufCharacters, message); }, limit);
  limit.give_back(array.size());
  return made;
}

}  // namespace

std::unique_ptr<TextTokenizer> read_gguf_tokenizer(const GgufMetadata& metadata, std::int64_t rows, std::size_t held) {
  const std::string model = metadata.text(kGgufModel).value_or("");
  if (model != "bert" && model != "gpt2" && model != "llama" && model != "t5") {
    metadata.fail(kGgufModel, "is " + in_quotes(model) + ", expected bert, gpt2, llama or t5");
  }
  const GgufTokens tokens(metadata, rows);
  text::TableLimit limit = limit_of(metadata.file(), held);
  if (model == "bert") return word_piece(tokens, std::move(limit));
  const GgufTokenizerParts parts = read_gguf_tokenizer_parts(tokens, model);
  const files::JsonValue document = files::JsonValue::parse_object(metadata.file().path(), parts.text());
  auto characters = read_characters(metadata, model, limit);
  text::Pipeline pipeline(document, parts.lists, std::move(characters), limit);
  return make_text_tokenizer(text::Tokenizer::of(std::move(pipeline)), false);
}

}  // namespace headlight::models
