#include "headlight/text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "files/input_file.h"
#include "files/json_value.h"
#include "text/idle_pool.h"
#include "text/pipeline.h"
#include "text/utf8.h"

namespace headlight::text {
namespace {

constexpr std::size_t kLongestText = (std::size_t{1} << 31) - 1;

void check_text(std::string_view text, const char* name) {
  if (text.size() > kLongestText) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(text.size()) +
                                " bytes, expected less than 2^31");
  }
  if (const std::size_t at = first_invalid(text); at != text.size()) {
    throw std::invalid_argument(std::string(name) + " is not UTF-8 at its byte " + std::to_string(at));
  }
}

std::int64_t tokens_of(const std::vector<TemplatePart>& parts) {
  std::size_t count = 0;
  for (const TemplatePart& part : parts) count += part.ids.size();
  return static_cast<std::int64_t>(count);
}

// What max_length leaves to texts.
std::int64_t room_for_texts(std::int64_t max_length, std::int64_t around) {
  if (max_length >= around) return max_length - around;
  throw std::invalid_argument("max_length is " + std::to_string(max_length) + ", expected at least the " +
                              std::to_string(around) + " tokens around");
}

}  // namespace

struct Tokenizer::State : Pipeline {
  explicit State(Pipeline parts) : Pipeline(std::move(parts)) {}

  // Calls take(scratch), which is that of this call alone.
  template <class Take>
  void with_scratch(Take take) const {
    take(*scratches.take());
  }

  mutable IdlePool<Scratch> scratches;
};

Tokenizer Tokenizer::read(const std::string& path) {
  std::error_code none;
  std::string file = path;
  if (std::filesystem::is_directory(path, none)) {
    file += file.ends_with('/') ? "" : "/";
    file += "tokenizer.json";
  }
  return parse(JsonValue::parse_object(file, files::read_text(file, JsonValue::kLargestFile)));
}

Tokenizer Tokenizer::parse(std::string_view json, std::string_view source) {
  return parse(JsonValue::parse_object(std::string(source), std::string(json)));
}

Tokenizer Tokenizer::parse(const files::JsonValue& document) { return of(Pipeline(document)); }

Tokenizer Tokenizer::of(Pipeline parts) { return Tokenizer(std::make_shared<const State>(std::move(parts))); }

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  check_text(text, "text");
  std::vector<std::int64_t> ids;
  state_->with_scratch(
      [&](Scratch& scratch) { state_->append_around(state_->processor.single, special, text, {}, scratch, ids); });
  return ids;
}

std::vector<std::int64_t> Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                                 SpecialTokens special) const {
  check_text(first, "first");
  check_text(second, "second");
  std::vector<std::int64_t> ids;
  state_->with_scratch(
      [&](Scratch& scratch) { state_->append_around(state_->processor.pair, special, first, second, scratch, ids); });
  return ids;
}

std::vector<std::int64_t> Tokenizer::encode_within(std::string_view text, std::int64_t max_length) const {
  std::vector<std::int64_t> ids;
  state_->with_scratch([&](Scratch& scratch) { append_within(text, max_length, scratch, ids); });
  return ids;
}

TokenPair Tokenizer::encode_pair_within(std::string_view first, std::string_view second,
                                        std::int64_t max_length) const {
  TokenPair pair;
  state_->with_scratch(
      [&](Scratch& scratch) { append_pair_within(first, second, max_length, scratch, pair.ids, pair.types); });
  return pair;
}

void Tokenizer::append_within(std::string_view text, std::int64_t max_length, Scratch& scratch,
                              std::vector<std::int64_t>& ids) const {
  check_text(text, "text");
  const std::vector<TemplatePart>& parts = state_->processor.single;
  state_->append_within(parts, room_for_texts(max_length, tokens_of(parts)), text, {}, scratch, ids, nullptr);
}

void Tokenizer::append_pair_within(std::string_view first, std::string_view second, std::int64_t max_length,
                                   Scratch& scratch, std::vector<std::int64_t>& ids,
                                   std::vector<std::int64_t>& types) const {
  check_text(first, "first");
  check_text(second, "second");
  const std::vector<TemplatePart>& parts = state_->processor.pair;
  state_->append_within(parts, room_for_texts(max_length, tokens_of(parts)), first, second, scratch, ids, &types);
}

TokensAround Tokenizer::tokens_around() const noexcept {
  const std::vector<TemplatePart>& single = state_->processor.single;
  TokensAround around{.text = tokens_of(single), .pair = tokens_of(state_->processor.pair)};
  for (auto part = single.rbegin(); part != single.rend() && part->kind == TemplatePart::Kind::tokens; ++part) {
    around.behind += static_cast<std::int64_t>(part->ids.size());
  }
  return around;
}

std::string Tokenizer::decode(const std::vector<std::int64_t>& ids, SpecialTokens special) const {
  std::vector<std::string> tokens;
  for (std::size_t n = 0; n < ids.size(); ++n) {
    const auto token = state_->token(ids[n]);
    if (!token) {
      throw std::invalid_argument("ids[" + std::to_string(n) + "] is " + std::to_string(ids[n]) +
                                  ", expected the id of a token");
    }
    if (special == SpecialTokens::with || !state_->added->is_special(*token)) tokens.emplace_back(*token);
  }
  std::string text;
  if (state_->decoder != nullptr) state_->decoder->apply(tokens);
  for (const std::string& token : tokens) {
    if (state_->decoder == nullptr && &token != &tokens.front()) text += ' ';
    text += token;
  }
  return text;
}

std::optional<std::string> Tokenizer::token(std::int64_t id) const {
  const auto found = state_->token(id);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

std::optional<std::string_view> Tokenizer::find_token(std::int64_t id) const noexcept { return state_->token(id); }

std::optional<std::int64_t> Tokenizer::id(std::string_view token) const { return state_->id(token); }

std::int64_t Tokenizer::size() const noexcept { return std::max(state_->model->size(), state_->added->size()); }

}  // namespace headlight::text
