// How many texts may be in memory at a time, where somebody said how much of it there is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "headlight/models/text_encoder.h"

namespace headlight::models {

// For whoever reads texts one after another and hands some of them to each call of a model. All sizes are in bytes.
//
//   const TextBudget budget(encoder.call_bytes(engine, 512), {.copies = 2, .result = 1536});
//   if (memory < budget.least()) …
//   const TextBudget::Share share = budget.share(memory);  // then calls with texts within it
class TextBudget {
 public:
  // What is held beside what the model works in.
  struct Held {
    std::int64_t copies = 1;  // for each byte of a text, until the call with it is over
    std::int64_t result = 0;  // for each text, until its result is given away
    std::int64_t spare = 0;   // whatever the texts are
  };
  // What a call may take.
  struct Share {
    std::size_t texts = 1;       // at most
    std::size_t text_bytes = 0;  // of these together, and so of one
  };
  static constexpr std::size_t kTexts = 64;                               // of a call, however much memory there is
  static constexpr std::int64_t kLeastTextBytes = std::int64_t{1} << 16;  // texts as long as that have room always

  // `call` is TextEncoder::call_bytes() of the longest call.
  TextBudget(const TextEncoder::CallBytes& call, const Held& held) noexcept
      : copies_(held.copies + call.text_byte),
        one_text_(call.one_text + held.result + held.spare),
        further_text_(call.further_text + held.result) {}

  // The least memory that share() divides: that of one text.
  [[nodiscard]] std::int64_t least() const noexcept { return one_text_ + copies_ * kLeastTextBytes; }
  // Of `memory`, least() or more: a quarter of what is left goes to further texts at most, the rest to long ones.
  [[nodiscard]] Share share(std::int64_t memory) const noexcept {
    const std::int64_t texts =
        std::clamp<std::int64_t>(1 + (memory - least()) / 4 / further_text_, 1, std::int64_t{kTexts});
    return {static_cast<std::size_t>(texts),
            static_cast<std::size_t>((memory - one_text_ - (texts - 1) * further_text_) / copies_)};
  }
  // A memory in which share() has room for one text of so many bytes.
  [[nodiscard]] std::int64_t needed(std::size_t text_bytes) const noexcept {
    const std::int64_t of_text = copies_ * static_cast<std::int64_t>(text_bytes);
    return one_text_ + of_text + std::min(of_text / 3 + 1, (std::int64_t{kTexts} - 1) * further_text_);
  }

 private:
  std::int64_t copies_;  // for each byte of a text
  std::int64_t one_text_;
  std::int64_t further_text_;
};

}  // namespace headlight::models
