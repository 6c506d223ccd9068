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
constexpr std::array<GgufSplitting, 10> kSplittings{{
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
