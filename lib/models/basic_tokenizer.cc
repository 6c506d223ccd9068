#include "models/basic_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "models/normalizer.h"
#include "text/utf8.h"

namespace headlight::models {
namespace {

using text::next_code_point;

// The code points that have come since the last space or word, normalised one after another.
class Words {
 public:
  Words(const TokenizerOptions& options, WordSink& sink)
      : normalizer_(options), whole_(options.whole_words), sink_(sink) {}

  // A code point of the text that is no white space. False: no more is wanted.
  bool push(char32_t codepoint) {
    return normalizer_.apply(
        codepoint, [this] { sort_marks(); }, [this](char32_t part) { return append(part); },
        [this] { first_mark_ = size_; });
  }
  // The same of one that is normalised.
  bool push_normalized(char32_t codepoint) {
    const bool goes_on = append(codepoint);
    first_mark_ = size_;
    return goes_on;
  }

  // White space, or the end of the text.
  bool finish() {
    sort_marks();
    const bool goes_on = whole_ ? take_chunk(true) : take_word();
    size_ = first_mark_ = 0;
    return goes_on;
  }

 private:
  bool append(char32_t codepoint) {
    if (whole_) {
      codepoints_[size_++] = codepoint;
      return size_ < codepoints_.size() || take_chunk(false);
    }
    if (is_punctuation(codepoint)) return take_word() && sink_.take_word({&codepoint, 1});
    // What goes on is only too long.
    if (size_ <= kLongestWord) codepoints_[size_++] = codepoint;
    return true;
  }

  bool take_word() {
    const bool goes_on = size_ == 0 || sink_.take_word({codepoints_.data(), size_});
    size_ = first_mark_ = 0;
    return goes_on;
  }

  bool take_chunk(bool ends) {
    // Marks that others may yet come before wait, unless they are more than any word has.
    if (!normalizer_.strips() || first_mark_ <= kLongestWord + 1) sort_marks();
    std::size_t taken = 0;
    const bool goes_on = first_mark_ == 0 || sink_.take_chunk({codepoints_.data(), first_mark_}, ends, taken);
    const auto begin = codepoints_.begin();
    std::copy(begin + static_cast<std::ptrdiff_t>(taken), begin + static_cast<std::ptrdiff_t>(size_), begin);
    size_ -= taken;
    first_mark_ -= taken;
    return goes_on;
  }

  // Puts the marks behind the last base character into canonical order.
  void sort_marks() {
    if (normalizer_.strips()) {
      CodePointNormalizer::sort_marks(codepoints_.data() + first_mark_, codepoints_.data() + size_);
    }
    first_mark_ = size_;
  }

  CodePointNormalizer normalizer_;
  bool whole_;
  WordSink& sink_;
  // A word and one more; of whole words as many as make looking ahead rare.
  std::array<char32_t, 512> codepoints_{};
  std::size_t size_ = 0;
  std::size_t first_mark_ = 0;  // behind the last base character
};

}  // namespace

bool split_words(std::string_view text, const TokenizerOptions& options, WordSink& sink) {
  Words words(options, sink);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t codepoint = next_code_point(text, at);
    if (options.clean_text && is_removed(codepoint)) continue;
    const bool apart = options.split_ideographs && !options.whole_words && is_ideograph(codepoint);
    const bool space = is_white_space(codepoint);
    if ((apart || space) && !words.finish()) return false;
    if (space) continue;
    if (!words.push(codepoint)) return false;
    if (apart && !words.finish()) return false;
  }
  return words.finish();
}

bool split_normalized(std::string_view text, const TokenizerOptions& options, WordSink& sink) {
  Words words(options, sink);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t codepoint = next_code_point(text, at);
    if (!(is_white_space(codepoint) ? words.finish() : words.push_normalized(codepoint))) return false;
  }
  return words.finish();
}

}  // namespace headlight::models
