#include "models/gguf/tokenizer_parts.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/gguf/splittings.h"

namespace headlight::models {
namespace {

// A list of JSON, without what is empty.
std::string array_of(std::initializer_list<std::string_view> values) {
  std::string text("[");
  for (const std::string_view value : values) {
    if (value.empty()) continue;
    text.append(text.size() > 1 ? "," : "").append(value);
  }
  return text.append("]");
}

// What stands around texts; where no key says so: whether a token begins and ends them. `twice`: RoBERTa's pairs have
// two tokens between.
std::string around(const GgufTokens& tokens, bool begins, bool ends, bool twice) {
  const GgufMetadata& metadata = tokens.metadata();
  const std::optional<std::size_t> first = tokens.id_of(metadata.has(kGgufClass) ? kGgufClass : kGgufBegin),
                                   last = tokens.id_of(kGgufEnd),
                                   between = tokens.id_of(metadata.has(kGgufSeparator) ? kGgufSeparator : kGgufEnd);
  const auto asked = [&](std::string_view key, bool otherwise, bool has_id, std::string_view of) {
    if (!metadata.flag(key, otherwise)) return false;
    if (!has_id) metadata.fail(key, "is true without " + std::string(of));
    return true;
  };
  const bool front = asked("tokenizer.ggml.add_bos_token", begins && first, first.has_value(), kGgufBegin);
  const bool behind = asked("tokenizer.ggml.add_eos_token", ends && last, last.has_value(), kGgufEnd);
  const bool separates = asked("tokenizer.ggml.add_sep_token", behind, between.has_value(), kGgufSeparator);
  if (!front && !behind) return "";
  // Of them by the texts of their tokens, as published files name them.
  JsonObject special(":", ",");
  std::vector<std::pair<std::string, std::size_t>> named;
  const auto token = [&](std::size_t id) {
    const std::string name = tokens.text(id), quoted = json_text(name);
    const auto same = std::find_if(named.begin(), named.end(), [&](const auto& other) { return other.first == name; });
    if (same != named.end() && same->second != id) {
      metadata.fail(kGgufTokens, "holds one text as the tokens " + std::to_string(same->second) + " and " +
                                     std::to_string(id) + ", both of which stand around texts");
    }
    if (same == named.end()) {
      named.emplace_back(name, id);
      special.add_text(name,
                       "{\"id\":" + quoted + ",\"ids\":[" + std::to_string(id) + "],\"tokens\":[" + quoted + "]}");
    }
    return "{\"SpecialToken\":{\"id\":" + quoted + ",\"type_id\":0}}";
  };
  const auto text = [](char name) {
    return std::string("{\"Sequence\":{\"id\":\"").append(1, name).append("\",\"type_id\":0}}");
  };
  const std::string begin = front ? token(*first) : "", end = behind ? token(*last) : "";
  // Llama's second text begins as the first does.
  const std::string middle = separates ? token(*between) : front && !behind ? begin : "";
  JsonObject processor(":", ",");
  processor.add("type", "TemplateProcessing");
  processor.add_text("single", array_of({begin, text('A'), end}));
  processor.add_text("pair", array_of({begin, text('A'), middle, twice ? middle : "", text('B'), end}));
  processor.add_text("special_tokens", "{" + special.members() + "}");
  return processor.document();
}

GgufTokenizerParts byte_level(const GgufTokens& tokens) {
  const GgufMetadata& metadata = tokens.metadata();
  const GgufSplitting& splitting = gguf_splitting(metadata);
  GgufTokenizerParts parts{.model = {":", ","},
                           .lists = {tokens, "gpt2", GgufTokenForm::pieces, splitting.mask_takes_space}};
  parts.model.add("type", "BPE");
  parts.model.add("ignore_merges", splitting.ignores_merges);
  if (metadata.flag(kGgufComposes, splitting.composes)) parts.normalizer = R"({"type":"NFC"})";
  parts.pre_tokenizer = splitting.parts();
  const bool roberta = metadata.architecture() == "bert";
  parts.post_processor = around(tokens, roberta || splitting.ignores_merges, roberta, roberta);
  parts.decoder = R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  return parts;
}

GgufTokenizerParts by_scores(const GgufTokens& tokens) {
  GgufTokenizerParts parts{.model = {":", ","}, .lists = {tokens, "llama", GgufTokenForm::scored, false}};
  parts.model.add("type", "BPE");
  if (const auto unknown = tokens.id_of(kGgufUnknown)) parts.model.add("unk_token", tokens.text(*unknown));
  parts.model.add("fuse_unk", true);
  parts.model.add("byte_fallback", true);
  const bool prefix = tokens.metadata().flag(kGgufPrefix, true);
  constexpr std::string_view kReplace = R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})";
  parts.normalizer =
      prefix ? R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)" + std::string(kReplace) + "]}"
             : std::string(kReplace);
  parts.post_processor = around(tokens, true, false, false);
  parts.decoder =
      std::string(
          R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"})") +
      (prefix ? R"(,{"type":"Strip","content":" ","start":1,"stop":0}]})" : "]}");
  return parts;
}

GgufTokenizerParts unigram(const GgufTokens& tokens) {
  const GgufMetadata& metadata = tokens.metadata();
  GgufTokenizerParts parts{.model = {":", ","}, .lists = {tokens, "t5", GgufTokenForm::scored, true}};
  for (const std::string_view key : {kGgufPrefix, kGgufRemovesSpace}) {
    if (!metadata.flag(key, true)) metadata.fail(key, "is false, expected true beside the model t5");
  }
  parts.model.add("type", "Unigram");
  const auto unknown = tokens.id_of(kGgufUnknown);
  if (!unknown) metadata.fail(kGgufUnknown, "is missing beside the model t5");
  parts.model.add("unk_id", *unknown);
  constexpr std::string_view kMetaspace = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})";
  parts.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)" + std::string(kMetaspace) + "]}";
  const bool roberta = metadata.architecture() == "bert";
  parts.post_processor = around(tokens, roberta, true, roberta);
  parts.decoder = kMetaspace;
  return parts;
}

}  // namespace

JsonObject GgufTokenizerParts::beside_model() const {
  JsonObject document(":", ",");
  const auto add = [&](const char* key, std::string_view value) {
    if (!value.empty()) document.add_text(key, value);
  };
  add("normalizer", normalizer);
  add("pre_tokenizer", pre_tokenizer);
  add("post_processor", post_processor);
  add("decoder", decoder);
  return document;
}

std::string GgufTokenizerParts::text() const {
  JsonObject document = beside_model();
  document.add_text("model", model.document());
  return document.document();
}

GgufTokenizerParts read_gguf_tokenizer_parts(const GgufTokens& tokens, std::string_view model) {
  const GgufMetadata& metadata = tokens.metadata();
  const auto refuse = [&](std::string_view key) {
    if (metadata.flag(key, false)) {
      metadata.fail(key, "is true, expected false beside the model " + std::string(model));
    }
  };
  refuse(kGgufLowerCase);
  refuse(kGgufStripsAccents);
  if (model != "gpt2") refuse(kGgufComposes);
  return model == "gpt2" ? byte_level(tokens) : model == "llama" ? by_scores(tokens) : unigram(tokens);
}

}  // namespace headlight::models
