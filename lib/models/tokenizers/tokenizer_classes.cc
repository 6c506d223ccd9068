#include "models/tokenizers/tokenizer_classes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "headlight/models/errors.h"
#include "models/tokenizers/described_parts.h"

namespace headlight::models {
namespace {

using files::JsonValue;
using Kind = TokenizerClass::Kind;
using Around = TokenizerClass::Around;
using Unknown = TokenizerClass::Unknown;
using Tokens = decltype(TokenizerClass::tokens);

constexpr std::string_view kBytePieces = "ByteLevel";
constexpr std::string_view kWords = "WhitespaceSplit, Metaspace";
constexpr std::string_view kQwenPieces =
    R"(Split /(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+/ Isolated, ByteLevel without a pattern)";

// bos, eos, unk, sep, pad, cls, mask
constexpr Tokens kRoberta{"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kMpnet{"<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"};
constexpr Tokens kGpt2{"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "", "", ""};
constexpr Tokens kNeoX{"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "", "<|padding|>", "", ""};
constexpr Tokens kQwen2{"", "<|endoftext|>", "<|endoftext|>", "", "<|endoftext|>", "", ""};
constexpr Tokens kGemma{"<bos>", "<eos>", "<unk>", "", "<pad>", "", "<mask>"};
constexpr Tokens kLlama{"<s>", "</s>", "<unk>", "", "", "", ""};

// Of Transformers 5.24, src/transformers/models/*/tokenization_*.py.
// clang-format off
constexpr TokenizerClass kTokenizerClasses[] = {
    {"RobertaTokenizer", Kind::bytes, "BPE", "none", kBytePieces, Around::cls_sep, Unknown::bytes, kRoberta},
    {"BartTokenizer", Kind::bytes, "BPE", "none", kBytePieces, Around::cls_sep, Unknown::bytes, kRoberta},
    {"GPT2Tokenizer", Kind::bytes, "BPE", "none", kBytePieces, Around::by_file, Unknown::bytes, kGpt2},
    {"CodeGenTokenizer", Kind::bytes, "BPE", "none", kBytePieces, Around::by_file, Unknown::bytes, kGpt2},
    {"GPTNeoXTokenizer", Kind::bytes, "BPE", "NFC", kBytePieces, Around::nothing, Unknown::bytes, kNeoX},
    {"Qwen2Tokenizer", Kind::bytes, "BPE", "NFC", kQwenPieces, Around::by_file, Unknown::bytes, kQwen2, {}, true},
    {"GemmaTokenizer", Kind::gemma, "BPE fuse_unk byte_fallback", "Replace ' ' by '▁'", "Split ' ' MergedWithPrevious", Around::by_file, Unknown::token, kGemma},
    {"LlamaTokenizer", Kind::llama, "BPE fuse_unk byte_fallback", "none", "Metaspace unsplit", Around::by_file, Unknown::bytes, kLlama},
    {"XLMRobertaTokenizer", Kind::sentence_piece, "Unigram", "Precompiled", kWords, Around::bos_eos, Unknown::third_id, kRoberta},
    {"CamembertTokenizer", Kind::sentence_piece, "Unigram", "Precompiled", kWords, Around::bos_eos, Unknown::id_of_token, kRoberta, {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}},
    {"MPNetTokenizer", Kind::word_piece, "WordPiece", "BertNormalizer", "BertPreTokenizer", Around::cls_sep, Unknown::token, kMpnet},
};
// clang-format on

using Parts = std::vector<std::string>;

void expect_part(const JsonValue& tokenizer, const char* key, const std::string& is, std::string_view expected,
                 const TokenizerClass& of) {
  if (is == expected) return;
  tokenizer.fail(key, "is " + is + ", expected " + std::string(expected) + " for the tokenizer_class " +
                          in_quotes(of.name) + " (see docs/model-folders.md)");
}

JsonValue made_part(const JsonValue& tokenizer, const std::string& json) {
  return JsonValue::parse_object(tokenizer.path(), json);
}

enum class Prepend : std::uint8_t { never, first, always };

std::string metaspace(Prepend prepend, bool splits) {
  constexpr std::array<const char*, 3> kSchemes{"never", "first", "always"};
  return R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": ")" +
         std::string(kSchemes[static_cast<std::size_t>(prepend)]) + R"(", "split": )" + (splits ? "true" : "false") +
         "}";
}

// Transformers 4 wrote Metaspace alone behind a normalizer that makes one space of several. The class splits at white
// space before, so that no token stands for a space at the end of a text or before an added token.
text::ReplacedParts check_sentence_piece(const JsonValue& tokenizer, const TokenizerClass& of) {
  const auto normalizer = tokenizer.object("normalizer"), pre_tokenizer = tokenizer.object("pre_tokenizer");
  const Parts normalizers = described_parts(normalizer), pieces = described_parts(pre_tokenizer);
  Parts others;
  bool merges_spaces = false;
  text::ReplacedParts made;
  for (std::size_t n = 0; n < normalizers.size(); ++n) {
    const std::string& part = normalizers[n];
    const bool merges = part == "Replace / {2,}/ by ' '" || part == "Replace / {2,}/ by '▁'";
    merges_spaces = merges_spaces || merges;
    if (merges || part == "Strip right" || part == "Strip left right") {
      made.replaces_normalizer = true;
      continue;
    }
    others.push_back(part);
    made.normalizer = parts_of(normalizer)[n];
  }
  if (!others.empty()) expect_part(tokenizer, "normalizer", joined(others), of.normalizer, of);
  if (merges_spaces && pieces == Parts{"Metaspace"}) {
    const auto scheme = parts_of(pre_tokenizer)[0].string("prepend_scheme");
    const Prepend prepend = scheme == "never" ? Prepend::never : Prepend::always;
    made.pre_tokenizer =
        made_part(tokenizer, R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, )" +
                                 metaspace(prepend, true) + "]}");
  } else {
    expect_part(tokenizer, "pre_tokenizer", joined(pieces), of.pre_tokenizer, of);
  }
  return made;
}

// Transformers 4 wrote a normalizer that puts a space before each text, and behind each added token. The class puts
// none before what begins with one, and behind added tokens only as a `legacy` one.
text::ReplacedParts check_llama(const JsonValue& tokenizer, const TokenizerClass& of,
                                const std::optional<JsonValue>& config) {
  const std::string normalizers = joined(described_parts(tokenizer.object("normalizer")));
  const std::string pieces = joined(described_parts(tokenizer.object("pre_tokenizer")));
  const bool prefix = !config || config->boolean("add_prefix_space").value_or(true);
  const bool legacy = config && config->boolean("legacy").value_or(false);
  const bool first = prefix && !legacy;
  text::ReplacedParts made;
  if (prefix && pieces == "none" && normalizers == "Prepend '▁', Replace ' ' by '▁'") {
    made.replaces_normalizer = true;
    made.pre_tokenizer = made_part(tokenizer, metaspace(first ? Prepend::first : Prepend::always, false));
    return made;
  }
  expect_part(tokenizer, "normalizer", normalizers, of.normalizer, of);
  expect_part(tokenizer, "pre_tokenizer", pieces, first ? "Metaspace first unsplit" : of.pre_tokenizer, of);
  return made;
}

}  // namespace

const TokenizerClass* find_tokenizer_class(std::string_view name) noexcept {
  const auto* const found = std::find_if(std::begin(kTokenizerClasses), std::end(kTokenizerClasses),
                                         [&](const TokenizerClass& one) { return one.name == name; });
  return found == std::end(kTokenizerClasses) ? nullptr : found;
}

text::ReplacedParts check_class(const JsonValue& tokenizer, const TokenizerClass& of,
                                const std::optional<JsonValue>& config) {
  if (const auto model = tokenizer.object("model"))
    expect_part(tokenizer, "model", described_model(*model), of.model, of);
  if (of.kind == Kind::sentence_piece) return check_sentence_piece(tokenizer, of);
  if (of.kind == Kind::llama) return check_llama(tokenizer, of, config);
  expect_part(tokenizer, "normalizer", joined(described_parts(tokenizer.object("normalizer"))), of.normalizer, of);
  const std::string pieces = joined(described_parts(tokenizer.object("pre_tokenizer")));
  // The normalizer leaves no space that Gemma's could split at.
  if (of.kind == Kind::gemma && pieces == "none") return {};
  expect_part(tokenizer, "pre_tokenizer", pieces, of.pre_tokenizer, of);
  return {};
}

}  // namespace headlight::models
