// Lists of texts, and how a call of a model goes through them: in slices, between which it says how far it is.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "interruptible.h"
#include "progress.h"

namespace headlight::python {

// One str is one text; else any iterable of them.
[[nodiscard]] std::vector<std::string> texts_of(const char* operation, nb::handle given);

// How texts are cut into slices: text by text, or in groups of at most so many tokens.
class TextSlices {
 public:
  // `prompt` stands in front of each text, of which at most max_length tokens count. Keeps texts and prompt by
  // reference.
  TextSlices(const char* operation, const models::TextEncoder& model, const std::vector<std::string>& texts,
             std::string_view prompt, std::int64_t max_length, nb::handle batch_tokens);

  [[nodiscard]] const Work& work() const noexcept { return work_; }
  // The texts of items first … first + count − 1, and the number of the first.
  [[nodiscard]] std::size_t begin(std::int64_t first) const {
    return groups_.empty() ? static_cast<std::size_t>(first) : groups_[static_cast<std::size_t>(first)];
  }
  [[nodiscard]] std::span<const std::string> texts(std::int64_t first, std::int64_t count) const {
    return std::span(texts_).subspan(begin(first), begin(first + count) - begin(first));
  }
  // visit(first, count) of one group at a time, where there are groups.
  template <class Visit>
  void each(std::int64_t first, std::int64_t count, const Visit& visit) const {
    if (groups_.empty()) return visit(first, count);
    for (std::int64_t one = first; one < first + count; ++one) visit(one, 1);
  }

 private:
  void group(const char* operation, const models::TextEncoder& model, std::int64_t most);

  const std::vector<std::string>& texts_;
  std::string_view prompt_;
  std::int64_t max_length_;
  Work work_;
  std::vector<std::size_t> groups_;  // where each begins, and the end; none where each text is an item
};

// Calls visit(number of the first, texts) for all of them, and says how far it is.
template <class Visit>
void for_texts(const TextSlices& slices, const Progress& progress, const Visit& visit) {
  compute_in_slices(
      slices.work(),
      [&](std::int64_t first, std::int64_t count) {
        slices.each(first, count,
                    [&](std::int64_t one, std::int64_t of) { visit(slices.begin(one), slices.texts(one, of)); });
      },
      [&](std::int64_t done) { progress(slices.begin(done)); });
}

}  // namespace headlight::python
