// How many texts have room in a memory that was said beforehand.
#include "headlight/models/text_budget.h"

#include <gtest/gtest.h>

namespace headlight::models::text_budget_test {

TEST(TextBudget, WhatACallTakesFits) {
  const TextEncoder::CallBytes call{.one_text = 5'000'000, .further_text = 30'000, .text_byte = 20};
  const TextBudget::Held held{.copies = 6, .result = 1536, .spare = 1 << 20};
  const TextBudget budget(call, held);
  for (const std::int64_t more : {0, 1, 4'000'000, 500'000'000}) {
    const std::int64_t memory = budget.least() + more;
    const TextBudget::Share share = budget.share(memory);
    ASSERT_GE(share.texts, 1u);
    EXPECT_LE(share.texts, TextBudget::kTexts);
    EXPECT_GE(share.text_bytes, static_cast<std::size_t>(TextBudget::kLeastTextBytes));
    const auto texts = static_cast<std::int64_t>(share.texts), bytes = static_cast<std::int64_t>(share.text_bytes);
    const std::int64_t taken = call.one_text + held.spare + held.result +
                               (texts - 1) * (call.further_text + held.result) + bytes * (held.copies + call.text_byte);
    EXPECT_LE(taken, memory);
    EXPECT_GT(taken, memory - (held.copies + call.text_byte));
  }
  EXPECT_EQ(budget.share(budget.least()).texts, 1u);
  EXPECT_EQ(budget.share(budget.least() + 500'000'000).texts, TextBudget::kTexts);
}

TEST(TextBudget, WhatATextNeedsIsEnough) {
  const TextBudget budget({.one_text = 5'000'000, .further_text = 30'000}, {.copies = 8, .result = 1536});
  for (const std::size_t size : {70'000u, 1'000'000u, 300'000'000u}) {
    EXPECT_GE(budget.share(budget.needed(size)).text_bytes, size);
  }
}

}  // namespace headlight::models::text_budget_test
