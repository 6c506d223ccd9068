// What stands around the tokens of a text, or of two texts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "text/parts.h"

namespace headlight::text {

// A part of a sequence: the tokens of a text, or tokens of its own.
struct TemplatePart {
  enum class Kind : std::uint8_t { first_text, second_text, tokens } kind = Kind::tokens;
  std::vector<std::int64_t> ids{};
  std::int64_t type = 0;  // of its tokens, as TokenPair::types
};

struct PostProcessor {
  std::vector<TemplatePart> single{{TemplatePart::Kind::first_text}};
  std::vector<TemplatePart> pair{{TemplatePart::Kind::first_text}, {TemplatePart::Kind::second_text, {}, 1}};
};

// `part` of the file: an object with the type BertProcessing, RobertaProcessing, ByteLevel, TemplateProcessing, or a
// Sequence in which one at most adds tokens. Refuses others, and ids that are no tokens.
[[nodiscard]] PostProcessor read_post_processor(const JsonValue& part, const std::function<bool(std::int64_t)>& is_id);

}  // namespace headlight::text
