#include "models/gguf_splittings.h"

#include <array>
#include <string>

#include "headlight/models/errors.h"
#include "models/gguf_tokens.h"

namespace headlight::models {
namespace {

constexpr std::string_view kGpt2Parts =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
constexpr std::string_view kDigitParts =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]})";
constexpr std::string_view kLlama3Parts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
constexpr std::string_view kQwen2Parts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
// Capital letters begin a word.
constexpr std::string_view kTekkenParts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
constexpr std::string_view kGpt4oParts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
constexpr std::string_view kSeedCoderParts =
    R"x({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})x";
// Names and what belongs to them as llama.cpp has them (src/llama-vocab.cpp of
// https://github.com/ggml-org/llama.cpp); NFC, which it does not apply, of those whose tokenizers have it (command-r's:
// CohereTokenizer of Transformers). Of deepseek-r1-qwen and megrez that is not known, so they are none of these.
constexpr std::array<GgufSplitting, 37> kSplittings{{
    {"gpt-2", kGpt2Parts},
    {"phi-2", kGpt2Parts},
    {"mellum", kGpt2Parts},
    {"trillion", kGpt2Parts},
    {"exaone4", kGpt2Parts},
    {"granite-docling", kGpt2Parts},
    {"roberta-bpe", kGpt2Parts, false, false, true},
    {"modern-bert", kGpt2Parts, true, false, true},
    {"smollm", kDigitParts},
    {"starcoder", kDigitParts},
    {"refact", kDigitParts},
    {"codeshell", kDigitParts},
    {"command-r", kDigitParts, true},
    {"exaone", kDigitParts},
    {"minerva-7b", kDigitParts},
    {"mellum2", kDigitParts},
    {"llama-bpe", kLlama3Parts, false, true},
    {"llama3", kLlama3Parts, false, true},
    {"llama-v3", kLlama3Parts, false, true},
    {"falcon3", kLlama3Parts, false, true},
    {"falcon-h1", kLlama3Parts, false, true},
    {"pixtral", kLlama3Parts, false, true},
    {"midm-2.0", kLlama3Parts, false, true},
    {"lfm2", kLlama3Parts, false, true},
    {"jina-v5-nano", kLlama3Parts, false, true},
    {"dbrx", kLlama3Parts},
    {"smaug-bpe", kLlama3Parts},
    {"glm4", kLlama3Parts},
    {"chatglm-bpe", kLlama3Parts},
    {"qwen2", kQwen2Parts, true},
    {"grok-2", kQwen2Parts},
    {"tekken", kTekkenParts, false, true},
    {"gpt-4o", kGpt4oParts},
    {"llama4", kGpt4oParts},
    {"kanana2", kGpt4oParts},
    {"minimax-m2", kGpt4oParts},
    {"seed-coder", kSeedCoderParts},
}};

}  // namespace

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
