// Tokenizers of GGUF files as the tokenizer.json that they were made from, as far as the metadata say it. What they do
// not say: without the keys of newer files, whether BERT's letters become lower-case (they do unless a piece has a
// capital letter); and what an added token takes along (the mask token the space before it, in files of RoBERTa's and
// ModernBERT's kind).
#include "models/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "files/json_value.h"
#include "headlight/models/errors.h"
#include "headlight/models/tokenizer.h"
#include "headlight/text/tokenizer.h"
#include "models/gguf_merges.h"
#include "models/json_text.h"
#include "models/vocabulary.h"

namespace headlight::models {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model", kPre = "tokenizer.ggml.pre",
                           kTokens = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type",
                           kScores = "tokenizer.ggml.scores", kMerges = "tokenizer.ggml.merges",
                           kUnknownId = "tokenizer.ggml.unknown_token_id", kBegin = "tokenizer.ggml.bos_token_id",
                           kEnd = "tokenizer.ggml.eos_token_id",
                           kSeparator = "tokenizer.ggml.seperator_token_id",  // as the format spells it
    kPadding = "tokenizer.ggml.padding_token_id", kMask = "tokenizer.ggml.mask_token_id",
                           kClass = "tokenizer.ggml.cls_token_id", kPrefix = "tokenizer.ggml.add_space_prefix",
                           kRemovesSpace = "tokenizer.ggml.remove_extra_whitespaces",
                           kCharacters = "tokenizer.ggml.precompiled_charsmap",
                           kLowerCase = "tokenizer.ggml.normalizer.lowercase",
                           kStripsAccents = "tokenizer.ggml.normalizer.strip_accents",
                           kComposes = "tokenizer.ggml.normalizer.nfc";
constexpr std::size_t kLongestToken = 1024;
constexpr std::string_view kSpace = "\u2581";

// Of a token, with the numbers of the format (gguf.TokenType).
enum class TokenKind : std::int64_t { normal = 1, unknown, control, user_defined, unused, byte };

// A way in which byte-level tokenizers split texts, and its names in tokenizer.ggml.pre.
struct Splitting {
  std::string_view name;
  std::string_view parts;  // pre_tokenizer of tokenizer.json
  bool composes = false;   // NFC before it
  bool ignores_merges = false;
  bool mask_takes_space = false;
};
constexpr std::string_view kGpt2Parts =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
constexpr std::string_view kDigitParts =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]})";
constexpr std::string_view kLlama3Parts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
constexpr std::string_view kQwen2Parts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
constexpr std::array<Splitting, 10> kSplittings{{
    {"gpt-2", kGpt2Parts},
    {"roberta-bpe", kGpt2Parts, false, false, true},
    {"modern-bert", kGpt2Parts, true, false, true},
    {"smollm", kDigitParts},
    {"starcoder", kDigitParts},
    {"refact", kDigitParts},
    {"llama-bpe", kLlama3Parts, false, true},
    {"llama3", kLlama3Parts, false, true},
    {"llama-v3", kLlama3Parts, false, true},
    {"qwen2", kQwen2Parts, true},
}};

const Splitting& splitting_of(const GgufMetadata& metadata) {
  const std::string name = metadata.text(kPre).value_or("default");
  std::string expected;
  for (const Splitting& known : kSplittings) {
    if (known.name == name) return known;
    expected += (expected.empty() ? "" : ", ") + std::string(known.name);
  }
  metadata.fail(kPre, "is " + in_quotes(name) + ", expected one of " + expected);
}

std::string base64(const std::vector<std::int64_t>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t n = 0; n < 3; ++n) {
      three = three << 8 | (n < count ? static_cast<std::uint32_t>(bytes[at + n] & 0xFF) : 0u);
    }
    for (std::size_t n = 0; n < 4; ++n) text += n <= count ? kDigits[three >> (18 - 6 * n) & 63] : '=';
  }
  return text;
}

// A list of JSON, without what is empty.
std::string array_of(std::initializer_list<std::string_view> values) {
  std::string text("[");
  for (const std::string_view value : values) {
    if (value.empty()) continue;
    text.append(text.size() > 1 ? "," : "").append(value);
  }
  return text.append("]");
}

class GgufTokenizerReader {
 public:
  GgufTokenizerReader(const GgufMetadata& metadata, std::int64_t rows)
      : metadata_(metadata), tokens_(metadata.texts(kTokens)), types_(metadata.integers(kTypes)) {
    if (tokens_.empty()) metadata.fail(kTokens, "is missing or empty");
    if (static_cast<std::int64_t>(tokens_.size()) > rows) {
      metadata.fail(kTokens, "has " + std::to_string(tokens_.size()) +
                                 " tokens, expected at most the rows of 'token_embd.weight', " + std::to_string(rows));
    }
    check_count(kTypes, types_.size());
    for (const std::string_view token : tokens_) {
      if (token.size() > kLongestToken)
        metadata.fail(kTokens, "has a token of " + std::to_string(token.size()) + " bytes");
    }
    // Of chats and of gaps in programs; and a copy of what is here.
    for (const char* const key :
         {"tokenizer.chat_template", "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.fim_suf_token_id",
          "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
          "tokenizer.ggml.fim_sep_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
          "tokenizer.ggml.token_type_count", "tokenizer.huggingface.json"}) {
      metadata.pass_over(key);
    }
    for (const std::string_view key :
         {kPadding, kMask, kUnknownId, kSeparator, kClass, kBegin, kEnd, kPre, kScores, kPrefix, kRemovesSpace}) {
      metadata.pass_over(key);
    }
  }

  std::unique_ptr<TextTokenizer> word_piece() const {
    std::vector<std::string> vocabulary;
    TokenizerOptions options;
    for (std::size_t n = 0; n < tokens_.size(); ++n) {
      const std::string_view token = tokens_[n];
      const bool bracketed = token.size() > 2 && token.front() == '[' && token.back() == ']';
      if (is_special(n) || bracketed) {
        vocabulary.emplace_back(token);
        continue;
      }
      const auto is_capital = [](char byte) { return byte >= 'A' && byte <= 'Z'; };
      if (std::any_of(token.begin(), token.end(), is_capital)) options.lower_case = false;
      const bool begins = token.starts_with(kSpace);
      std::string& piece = vocabulary.emplace_back(begins ? 0u : 2u, '#');
      piece.append(begins ? token.substr(kSpace.size()) : token);
    }
    options.lower_case = metadata_.flag(kLowerCase, options.lower_case);
    if (metadata_.has(kStripsAccents)) options.strip_accents = metadata_.flag(kStripsAccents, false);
    options.unk_token = name_of({kUnknownId}, options.unk_token);
    options.cls_token = name_of({kClass, kBegin}, options.cls_token);
    options.sep_token = name_of({kSeparator, kEnd}, options.sep_token);
    options.pad_token = name_of({kPadding}, options.pad_token);
    options.mask_token = name_of({kMask}, options.mask_token);
    for (const char* const key :
         {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_sep_token"}) {
      if (!metadata_.flag(key, true)) metadata_.fail(key, "is false, expected true beside the model bert");
    }
    if (const auto excess = vocabulary_excess(vocabulary)) metadata_.fail(kTokens, *excess);
    return make_text_tokenizer(Tokenizer(std::move(vocabulary), options, metadata_.file().path()));
  }

  // The others, by the text of a tokenizer.json.
  std::string by_parts(const std::string& model) const {
    JsonObject document(":", ",");
    for (const std::string_view key : {kLowerCase, kStripsAccents}) {
      if (metadata_.flag(key, false)) metadata_.fail(key, "is true, expected false beside the model " + model);
    }
    if (model != "gpt2" && metadata_.flag(kComposes, false)) {
      metadata_.fail(kComposes, "is true, expected false beside the model " + model);
    }
    try {
      if (model == "gpt2") {
        add_byte_level(document);
      } else if (model == "llama") {
        add_by_scores(document);
      } else {
        add_unigram(document);
      }
    } catch (const nlohmann::json::exception&) {
      metadata_.fail(kTokens, "or a string beside it is not UTF-8");
    }
    return document.document();
  }

 private:
  void check_count(std::string_view key, std::size_t count) const {
    if (count == 0 || count == tokens_.size()) return;
    metadata_.fail(key, "has " + std::to_string(count) + " elements, expected one for each of the " +
                            std::to_string(tokens_.size()) + " tokens");
  }
  // One for each token; they are sorted by, so each is finite.
  [[nodiscard]] std::vector<double> scores_beside(const std::string& model) const {
    std::vector<double> scores = metadata_.numbers(kScores);
    if (scores.empty()) metadata_.fail(kScores, "is missing beside the model " + model);
    check_count(kScores, scores.size());
    for (std::size_t n = 0; n < scores.size(); ++n) {
      if (std::isfinite(scores[n])) continue;
      metadata_.fail(kScores, "has the score " + std::to_string(scores[n]) + " of token " + std::to_string(n) +
                                  ", expected finite numbers");
    }
    return scores;
  }
  [[nodiscard]] bool is(std::size_t token, TokenKind kind) const {
    return !types_.empty() && types_[token] == static_cast<std::int64_t>(kind);
  }
  [[nodiscard]] bool is_special(std::size_t token) const {
    return is(token, TokenKind::control) || is(token, TokenKind::unknown);
  }
  // Whether it is found in the text as it stands.
  [[nodiscard]] bool is_added(std::size_t token) const {
    return is_special(token) || is(token, TokenKind::user_defined);
  }

  // The id that a key gives; none without the key.
  [[nodiscard]] std::optional<std::size_t> id_of(std::string_view key) const {
    if (!metadata_.has(key)) return std::nullopt;
    return static_cast<std::size_t>(
        metadata_.size(key, 0, std::nullopt, static_cast<std::int64_t>(tokens_.size()) - 1));
  }
  // The token of the first of those keys that is there.
  [[nodiscard]] std::string name_of(std::initializer_list<std::string_view> keys, const std::string& otherwise) const {
    for (const std::string_view key : keys) {
      if (const auto id = id_of(key)) return std::string(tokens_[*id]);
    }
    return otherwise;
  }

  void add_byte_level(JsonObject& document) const {
    const Splitting& splitting = splitting_of(metadata_);
    const std::vector<std::string_view> merges = metadata_.texts(kMerges);
    std::string list;
    for (const std::string_view merge : merges) list.append(list.empty() ? "" : ",").append(json_text(merge));
    JsonObject model(":", ",");
    model.add("type", "BPE");
    model.add("ignore_merges", splitting.ignores_merges);
    model.add_text("vocab", vocabulary_text(pieces()));
    model.add_text("merges", array_of({list}));
    if (metadata_.flag(kComposes, splitting.composes)) document.add_text("normalizer", R"({"type":"NFC"})");
    document.add_text("pre_tokenizer", splitting.parts);
    document.add_text("model", model.document());
    document.add_text("added_tokens", added_text(splitting.mask_takes_space));
    const bool roberta = metadata_.architecture() == "bert";
    add_around(document, roberta || splitting.ignores_merges, roberta, roberta);
    document.add_text("decoder",
                      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})");
  }

  void add_by_scores(JsonObject& document) const {
    const std::vector<double> scores = scores_beside("llama");
    JsonObject model(":", ",");
    model.add("type", "BPE");
    if (const auto unknown = id_of(kUnknownId)) model.add("unk_token", tokens_[*unknown]);
    model.add("fuse_unk", true);
    model.add("byte_fallback", true);
    model.add_text("vocab", vocabulary_text(tokens_.size()));
    const std::optional<std::string> merges = merges_text(tokens_, scores);
    if (!merges) metadata_.fail(kTokens, "has too many tokens that are made of two others");
    model.add_text("merges", *merges);
    const bool prefix = metadata_.flag(kPrefix, true);
    metadata_.pass_over(kRemovesSpace);
    constexpr std::string_view kReplace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
    document.add_text("normalizer", prefix ? R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)" +
                                                 std::string(kReplace) + "]}"
                                           : std::string(kReplace));
    document.add_text("model", model.document());
    document.add_text("added_tokens", added_text(false));
    add_around(document, true, false, false);
    document.add_text(
        "decoder",
        std::string(
            R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})") +
            (prefix ? R"(,{"type":"Strip","content":" ","start":1,"stop":0}]})" : "]}"));
  }

  void add_unigram(JsonObject& document) const {
    const std::vector<double> scores = scores_beside("t5");
    for (const std::string_view key : {kPrefix, kRemovesSpace}) {
      if (!metadata_.flag(key, true)) metadata_.fail(key, "is false, expected true beside the model t5");
    }
    std::string list;
    for (std::size_t n = 0; n < tokens_.size(); ++n) {
      list.append(n == 0 ? "[" : ",[").append(json_text(tokens_[n])).append(",").append(json_text(scores[n])) += ']';
    }
    JsonObject model(":", ",");
    model.add("type", "Unigram");
    if (const auto unknown = id_of(kUnknownId)) model.add("unk_id", *unknown);
    model.add_text("vocab", array_of({list}));
    const std::vector<std::int64_t> characters = metadata_.integers(kCharacters);
    if (!characters.empty()) {
      document.add_text("normalizer", R"({"type":"Precompiled","precompiled_charsmap":")" + base64(characters) + "\"}");
    }
    constexpr std::string_view kMetaspace = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})";
    document.add_text("pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)" +
                                           std::string(kMetaspace) + "]}");
    document.add_text("model", model.document());
    document.add_text("added_tokens", added_text(true));
    const bool roberta = metadata_.architecture() == "bert";
    add_around(document, roberta, true, roberta);
    document.add_text("decoder", kMetaspace);
  }

  // How many tokens the model has: those that stand behind its last one were added.
  [[nodiscard]] std::size_t pieces() const {
    std::size_t count = tokens_.size();
    while (count > 0 && is_added(count - 1)) --count;
    return count;
  }

  [[nodiscard]] std::string vocabulary_text(std::size_t count) const {
    JsonObject vocabulary(":", ",");
    for (std::size_t n = 0; n < count; ++n) vocabulary.add(tokens_[n], n);
    return vocabulary.document();
  }

  [[nodiscard]] std::string added_text(bool mask_takes_space) const {
    const auto mask = mask_takes_space ? id_of(kMask) : std::nullopt;
    std::string list;
    for (std::size_t n = 0; n < tokens_.size(); ++n) {
      if (!is_added(n)) continue;
      JsonObject token(":", ",");
      token.add("id", n);
      token.add("content", tokens_[n]);
      for (const char* const key : {"single_word", "rstrip", "normalized"}) token.add(key, false);
      token.add("lstrip", mask == n);
      token.add("special", is_special(n));
      list.append(list.empty() ? "" : ",").append(token.document());
    }
    return array_of({list});
  }

  // What stands around texts; where no key says so: whether a token begins and ends them. `twice`: RoBERTa's pairs have
  // two tokens between.
  void add_around(JsonObject& document, bool begins, bool ends, bool twice) const {
    const std::optional<std::size_t> first = id_of(metadata_.has(kClass) ? kClass : kBegin), last = id_of(kEnd),
                                     between = id_of(metadata_.has(kSeparator) ? kSeparator : kEnd);
    const auto asked = [&](std::string_view key, bool otherwise, bool has_id, std::string_view of) {
      if (!metadata_.flag(key, otherwise)) return false;
      if (!has_id) metadata_.fail(key, "is true without " + std::string(of));
      return true;
    };
    const bool front = asked("tokenizer.ggml.add_bos_token", begins && first, first.has_value(), kBegin);
    const bool behind = asked("tokenizer.ggml.add_eos_token", ends && last, last.has_value(), kEnd);
    const bool separates = asked("tokenizer.ggml.add_sep_token", behind, between.has_value(), kSeparator);
    if (!front && !behind) return;
    std::string special;
    const auto token = [&](std::size_t id) {
      const std::string name = json_text(std::to_string(id));
      if (special.find(name + ":") == std::string::npos) {
        special.append(special.empty() ? "" : ",").append(name).append(":{\"id\":").append(name);
        special.append(",\"ids\":[").append(std::to_string(id)).append("],\"tokens\":[").append(name).append("]}");
      }
      return "{\"SpecialToken\":{\"id\":" + name + ",\"type_id\":0}}";
    };
    const auto text = [](char name) { return std::string("{\"Sequence\":{\"id\":\"") + name + "\",\"type_id\":0}}"; };
    const std::string begin = front ? token(*first) : "", end = behind ? token(*last) : "";
    // Llama's second text begins as the first does.
    const std::string middle = separates ? token(*between) : front && !behind ? begin : "";
    JsonObject processor(":", ",");
    processor.add("type", "TemplateProcessing");
    processor.add_text("single", array_of({begin, text('A'), end}));
    processor.add_text("pair", array_of({begin, text('A'), middle, twice ? middle : "", text('B'), end}));
    processor.add_text("special_tokens", "{" + special + "}");
    document.add_text("post_processor", processor.document());
  }

  const GgufMetadata& metadata_;
  std::vector<std::string_view> tokens_;
  std::vector<std::int64_t> types_;
};

}  // namespace

GgufTokenizer read_gguf_tokenizer(const GgufMetadata& metadata, std::int64_t rows) {
  const std::string model = metadata.text(kModel).value_or("");
  if (model != "bert" && model != "gpt2" && model != "llama" && model != "t5") {
    metadata.fail(kModel, "is " + in_quotes(model) + ", expected bert, gpt2, llama or t5");
  }
  const GgufTokenizerReader reader(metadata, rows);
  if (model == "bert") return {.tokenizer = reader.word_piece()};
  std::string text = reader.by_parts(model);
  auto tokenizer = make_text_tokenizer(text::Tokenizer::parse(text, metadata.file().path()), false);
  return {std::move(tokenizer), std::move(text)};
}

std::string gguf_tokenizer_text(const GgufMetadata& metadata, std::int64_t rows) {
  return GgufTokenizerReader(metadata, rows).by_parts(metadata.text(kModel).value_or(""));
}

}  // namespace headlight::models
