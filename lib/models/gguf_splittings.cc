#include "models/gguf_splittings.h"

#include <array>
#include <string>

#include "headlight/models/errors.h"
#include "models/gguf_tokens.h"

namespace headlight::models {
namespace {

// What splits before bytes are written, as JSON writes it: nothing, digits, or what a regular expression matches.
constexpr std::string_view kGpt2, kDigitParts = R"({"type":"Digits","individual_digits":true})";
constexpr std::string_view kLlama3 =
    R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)x";
constexpr std::string_view kQwen2 =
    R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)x";
// Capital letters begin a word.
constexpr std::string_view kTekken =
    R"x([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)x";
constexpr std::string_view kGpt4o =
    R"x([^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)x";
constexpr std::string_view kSeedCoder =
    R"x((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)x";
// Names and what belongs to them as llama.cpp has them (src/llama-vocab.cpp of
// https://github.com/ggml-org/llama.cpp); NFC, which it does not apply, of those whose tokenizers have it (command-r's:
// CohereTokenizer of Transformers). Of deepseek-r1-qwen and megrez that is not known, so they are none of these.
constexpr std::array<GgufSplitting, 37> kSplittings{{
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"mellum", kGpt2},
    {"trillion", kGpt2},
    {"exaone4", kGpt2},
    {"granite-docling", kGpt2},
    {"roberta-bpe", kGpt2, false, false, true},
    {"modern-bert", kGpt2, true, false, true},
    {"smollm", kDigitParts},
    {"starcoder", kDigitParts},
    {"refact", kDigitParts},
    {"codeshell", kDigitParts},
    {"command-r", kDigitParts, true},
    {"exaone", kDigitParts},
    {"minerva-7b", kDigitParts},
    {"mellum2", kDigitParts},
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
}};

}  // namespace

std::string GgufSplitting::parts() const {
  const bool by_expression = !splits_by.empty() && splits_by != kDigitParts;
  std::string text;
  if (!splits_by.empty()) text.append(R"({"type":"Sequence","pretokenizers":[)");
  if (by_expression) {
    text.append(R"({"type":"Split","pattern":{"Regex":")").append(splits_by);
    text.append(R"("},"behavior":"Isolated","invert":false})");
  } else {
    text.append(splits_by);
  }
  if (!splits_by.empty()) text.append(",");
  text.append(R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)");
  return text.append(by_expression ? "false}" : "true}").append(splits_by.empty() ? "" : "]}");
}

const GgufSplitting& gguf_splitting(const GgufMetadata& metadata) {
  const std::string name = metadata.text(kGgufPre).value_or("default");
  std::string expected;
  for (const GgufSplitting& known : kSplittings) {
    if (known.name == name) return known;
    expected += (expected.empty() ? "" : ", ") + std::string(known.name);
  }
  metadata.fail(kGgufPre, "is " + in_quotes(name) + ", expected one of " + expected);
}

}  // namespace headlight::models
