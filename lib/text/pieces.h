// Parts of a text, of which some match what it is split by, as pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/parts.h"
#include "text/utf8.h"

namespace headlight::text {

// What becomes of matches: pieces of their own; nothing; one piece with the matches beside them; the end of the piece
// before, or the beginning of the next one, of which each takes one match.
enum class Behavior : std::uint8_t { isolated, removed, contiguous, merged_with_previous, merged_with_next };

// The behaviour that a member names.
[[nodiscard]] Behavior read_behavior(const JsonValue& part, std::string_view key);

class Pieces {
 public:
  Pieces(std::string_view text, bool first, Behavior behavior, PieceSink& out)
      : text_(text), first_(first), behavior_(behavior), out_(out) {}

  // The next part, up to `end`.
  void add(std::size_t end, bool matches);
  // After the last one.
  void finish() { give(part_); }

 private:
  void give(std::size_t end) {
    if (end > given_) out_.take(text_.substr(given_, end - given_), first_ && given_ == 0);
    given_ = end;
  }

  std::string_view text_;
  bool first_;
  Behavior behavior_;
  PieceSink& out_;
  std::size_t given_ = 0;  // what lies before was given away
  std::size_t part_ = 0;   // and what lies before is known
  bool last_matches_ = false;
};

inline void Pieces::add(std::size_t end, bool matches) {
  if (end == part_) return;
  switch (behavior_) {
    case Behavior::removed:
      give(part_);
      if (matches) given_ = end;
      break;
    case Behavior::contiguous:
      if (matches != last_matches_) give(part_);
      break;
    case Behavior::merged_with_previous:
      if (!matches || last_matches_) give(part_);
      break;
    case Behavior::merged_with_next:
      if (matches || !last_matches_) give(part_);
      break;
    default:
      give(part_);
  }
  part_ = end;
  last_matches_ = matches;
}

// Characters that match stand each by itself, others together.
template <class Matches>
void split_characters(std::string_view text, bool first, Behavior behavior, PieceSink& out, Matches matches) {
  Pieces pieces(text, first, behavior, out);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); begin = at) {
    if (!matches(next_code_point(text, at))) continue;
    pieces.add(begin, false);
    pieces.add(at, true);
  }
  pieces.add(text.size(), false);
  pieces.finish();
}

}  // namespace headlight::text
