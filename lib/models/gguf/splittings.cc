#include "models/gguf/splittings.h"

#include <array>
#include <string>

#include "headlight/models/errors.h"
#include "models/gguf/tokens.h"
#include "models/json_text.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

using Splitter = GgufSplitting::Splitter;
using SplitterKind = Splitter::Kind;

// What an expression finds, in characters that stand for bytes.
constexpr std::array<Splitter, 2> characters_of(std::string_view expression) {
  return {Splitter{SplitterKind::expression, expression}, Splitter{SplitterKind::bytes}};
}

constexpr std::array kGpt2{Splitter{SplitterKind::words}};
constexpr std::array kSingleDigits{Splitter{SplitterKind::digits}, Splitter{SplitterKind::words}};
constexpr std::array kLlama3 = characters_of(
    R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x");
constexpr std::array kQwen2 = characters_of(
    R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x");
// Capital letters begin a word.
constexpr std::array kTekken = characters_of(
    R"x([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)x");
constexpr std::array kGpt4o = characters_of(
    R"x([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)x");
constexpr std::array kSeedCoder = characters_of(
    R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)x");
// Its numbers are split once bytes are characters, of which some are numbers.
constexpr std::array kFalcon{Splitter{SplitterKind::punctuation}, Splitter{SplitterKind::words},
                             Splitter{SplitterKind::numbers}, Splitter{SplitterKind::expression, "[0-9][0-9][0-9]"}};
constexpr std::array kBloom = characters_of(R"x( ?[^(\s|[.,!?…。，、।۔،])]+)x");
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF)"
    R"(\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5)"
    R"(\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD\u1C90-\u1CBA)"
    R"(\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45)"
    R"(\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE)"
    R"(\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102)"
    R"(\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128\u212A-\u212D\u212F-\u2134\u2139)"
    R"(\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3)"
    R"(\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06)"
    R"(\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
// Han and what lies below, which has kana, and Hangul.
constexpr std::string_view kDeepSeekSyllables = R"([\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+)";
// What is published as \s+$ would read white space anew from each of its characters: where no line ends in a piece,
// all up to the last other character is a match as well.
constexpr std::array kDeepSeekLlm{
    Splitter{SplitterKind::expression, R"([\r\n])"},
    Splitter{SplitterKind::expression, kDeepSeekLetters},
    Splitter{SplitterKind::expression, R"(\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+)"},
    Splitter{SplitterKind::expression, R"((?:\s*\S)+|\s+)"},
    Splitter{SplitterKind::expression, kDeepSeekSyllables},
    Splitter{SplitterKind::digits},
    Splitter{SplitterKind::bytes}};
constexpr std::array kDeepSeekCoder{Splitter{SplitterKind::expression, R"([\r\n])"},
                                    Splitter{SplitterKind::expression, R"(\s?\p{L}+)"},
                                    Splitter{SplitterKind::expression, R"(\s?\p{P}+)"},
                                    Splitter{SplitterKind::expression, kDeepSeekSyllables},
                                    Splitter{SplitterKind::digits},
                                    Splitter{SplitterKind::bytes}};
constexpr std::array kDeepSeekV3{
    Splitter{SplitterKind::expression, R"(\p{N}{1,3})"},
    Splitter{SplitterKind::expression, R"([\u4E00-\u9FA5\u3040-\u30FF]+)"},
    Splitter{
        SplitterKind::expression,
        R"x([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)x"},
    Splitter{SplitterKind::bytes}};
// Names and what belongs to them as llama.cpp has them (src/llama-vocab.cpp of
// https://github.com/ggml-org/llama.cpp); NFC, which it does not apply, of those whose tokenizers have it (command-r's:
// CohereTokenizer of Transformers). Of deepseek-r1-qwen, megrez, hunyuan-dense, poro-chat and gpt3-finnish that is not
// known, so they are none of these. Splitters are those of the models' tokenizer.json.
constexpr std::array<GgufSplitting, 42> kSplittings{{
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"mellum", kGpt2},
    {"trillion", kGpt2},
    {"exaone4", kGpt2},
    {"granite-docling", kGpt2},
    {"roberta-bpe", kGpt2, false, false, true},
    {"modern-bert", kGpt2, true, false, true},
    {"smollm", kSingleDigits},
    {"starcoder", kSingleDigits},
    {"refact", kSingleDigits},
    {"codeshell", kSingleDigits},
    {"command-r", kSingleDigits, true},
    {"exaone", kSingleDigits},
    {"minerva-7b", kSingleDigits},
    {"mellum2", kSingleDigits},
    {"llama-bpe", kLlama3, false, true},
    {"llama3", kLlama3, false, true},
    {"llama-v3", kLlama3, false, true},
    {"falcon3", kLlama3, false, true},
    {"falcon-h1", kLlama3, false, true},
    {"pixtral", kLlama3, false, true},
    {"midm-2.0", kLlama3, false, true},
    {"lfm2", kLlama3, false, true},
    {"jina-v5-nano", kLlama3, false, true},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
    {"glm4", kLlama3},
    {"chatglm-bpe", kLlama3},
    {"qwen2", kQwen2, true},
    {"grok-2", kQwen2},
    {"tekken", kTekken, false, true},
    {"gpt-4o", kGpt4o},
    {"llama4", kGpt4o},
    {"kanana2", kGpt4o},
    {"minimax-m2", kGpt4o},
    {"seed-coder", kSeedCoder},
    {"falcon", kFalcon},
    {"bloom", kBloom},
    {"deepseek-llm", kDeepSeekLlm},
    {"deepseek-coder", kDeepSeekCoder},
    {"deepseek-v3", kDeepSeekV3},
}};

std::string pre_tokenizer_text(const Splitter& splitter) {
  JsonObject part(":", ",");
  switch (splitter.kind) {
    case SplitterKind::expression:
      part.add("type", "Split");
      part.add_text("pattern", R"({"Regex":)" + json_text(splitter.expression) + "}");
      part.add("behavior", "Isolated");
      part.add("invert", false);
      break;
    case SplitterKind::digits:
    case SplitterKind::numbers:
      part.add("type", "Digits");
      part.add("individual_digits", splitter.kind == SplitterKind::digits);
      break;
    case SplitterKind::punctuation:
      part.add("type", "Punctuation");
      part.add("behavior", "Contiguous");
      break;
    case SplitterKind::words:
    case SplitterKind::bytes:
      part.add("type", "ByteLevel");
      part.add("add_prefix_space", false);
      part.add("trim_offsets", true);
      part.add("use_regex", splitter.kind == SplitterKind::words);
  }
  return "{" + part.members() + "}";
}

}  // namespace

std::string GgufSplitting::parts() const {
  std::string list;
  for (const Splitter& splitter : splitters) list.append(list.empty() ? "" : ",").append(pre_tokenizer_text(splitter));
  return splitters.size() == 1 ? list : R"({"type":"Sequence","pretokenizers":[)" + list + "]}";
}

const GgufSplitting& gguf_splitting(const GgufMetadata& metadata) {
  const std::string name = metadata.text(kGgufPre).value_or("default");
  std::string expected;
  for (const GgufSplitting& known : kSplittings) {
    if (known.name == name) return known;
    runtime::append_item(expected, known.name);
  }
  metadata.fail(kGgufPre, "is " + in_quotes(name) + ", expected one of " + expected);
}

}  // namespace headlight::models
