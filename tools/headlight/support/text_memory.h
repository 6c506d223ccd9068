// How a run over texts keeps within a memory that was said beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "headlight/models/text_budget.h"
#include "headlight/models/text_encoder.h"

namespace headlight::program {

// How much of the texts is in memory at a time.
class TextMemory {
 public:
  // As much as is fast, however long texts are.
  TextMemory() = default;
  // What a run may hold at most beside the model's weights, where calls of the model take `call`, and the results of a
  // text `result` bytes until they are written. Throws std::runtime_error, saying what is needed, where `bytes` are too
  // few for that.
  TextMemory(std::int64_t bytes, const models::TextEncoder::CallBytes& call, std::int64_t result);

  // Texts of a call, at most.
  [[nodiscard]] std::size_t texts() const noexcept { return share_.texts; }
  // Bytes of the texts of a call together, and so of one.
  [[nodiscard]] std::size_t text_bytes() const noexcept { return share_.text_bytes; }
  // Throws models::FileError for line `number` of `name`, whose text has more of them.
  [[noreturn]] void fail_by_size(const std::string& name, std::size_t number, std::size_t size) const;

 private:
  std::optional<models::TextBudget> budget_;
  models::TextBudget::Share share_{models::TextBudget::kTexts, SIZE_MAX};
  std::int64_t allowed_ = 0;  // what was said
};

}  // namespace headlight::program
