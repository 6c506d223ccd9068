#include "text_slices.h"

#include <algorithm>

#include "errors.h"
#include "values.h"

namespace headlight::python {
namespace {

// Of a tokenizer, counted as those of products, which take a fifth of a nanosecond or so.
constexpr double kOperationsOfByte = 250;

// Of products, an estimate.
double operations_of_token(const models::TextEncoder& model) {
  const EncoderOptions& network = model.options().encoder;
  const auto width = static_cast<double>(network.width);
  return static_cast<double>(network.layers) * 2 * width *
         (4 * width + 2 * static_cast<double>(network.feed_forward_width));
}

}  // namespace

std::vector<std::string> texts_of(const char* operation, nb::handle given) {
  if (PyUnicode_Check(given.ptr()) != 0) return {std::string(text(operation, "texts", given))};
  std::vector<std::string> texts;
  Items items(operation, "texts", given, "a str or a list of them");
  while (const nb::object one = items.next()) {
    texts.emplace_back(text(operation, ("texts[" + std::to_string(texts.size()) + "]").c_str(), one));
    if (texts.size() % 100'000 == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return texts;
}

TextSlices::TextSlices(const char* operation, const models::TextEncoder& model, const std::vector<std::string>& texts,
                       std::string_view prompt, std::int64_t max_length, nb::handle batch_tokens)
    : texts_(texts), prompt_(prompt), max_length_(max_length) {
  // Some four bytes are a token, and two more stand around each text.
  double tokens = 0;
  for (const std::string& one : texts) {
    tokens += std::min(static_cast<double>(prompt.size() + one.size()) / 4 + 2, static_cast<double>(max_length));
  }
  work_ = {.items = static_cast<std::int64_t>(texts.size()), .operations = tokens * operations_of_token(model)};
  if (!batch_tokens.is_none()) group(operation, model, integer(operation, "batch_tokens", batch_tokens));
}

void TextSlices::group(const char* operation, const models::TextEncoder& model, std::int64_t most) {
  if (most < 1) refuse_value(operation, "batch_tokens is " + std::to_string(most) + ", expected at least 1");
  groups_.push_back(0);
  std::int64_t tokens = 0;
  std::size_t bytes = 0;
  for (const std::string& one : texts_) bytes += prompt_.size() + one.size() + 1;
  const Work work{.items = static_cast<std::int64_t>(texts_.size()),
                  .operations = kOperationsOfByte * static_cast<double>(bytes)};
  const auto nobody = [](std::int64_t) {};
  std::string joined;
  const auto count_tokens = [&](std::int64_t first, std::int64_t count) {
    for (auto number = static_cast<std::size_t>(first); number < static_cast<std::size_t>(first + count); ++number) {
      joined.assign(prompt_).append(texts_[number]);
      const auto own = static_cast<std::int64_t>(model.tokenize(joined, max_length_).size());
      if (tokens > 0 && tokens + own > most) {
        groups_.push_back(number);
        tokens = 0;
      }
      tokens += own;
    }
  };
  compute_in_slices(work, count_tokens, nobody);
  groups_.push_back(texts_.size());
  work_.items = static_cast<std::int64_t>(groups_.size()) - 1;
}

}  // namespace headlight::python
