// What the fuzzers share: bytes as numbers and texts, and how a broken promise ends the program.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string_view>

namespace headlight::fuzz {

// Ends the program where a promise is broken, as a sanitizer does.
inline void must(bool kept, const char* promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n", promise);
  std::abort();
}

// The same for a number, which says how far off it is.
inline void must_be_near(double actual, double truth, double allowed, const char* promise) {
  if (actual == truth || std::abs(actual - truth) <= allowed) return;
  std::fprintf(stderr, "%g, expected %g within %g\n", actual, truth, allowed);
  must(false, promise);
}

// Draws from the input, front to back; behind its end all is 0.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] std::uint8_t byte() {
    if (left_.empty()) return 0;
    const auto drawn = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return drawn;
  }
  [[nodiscard]] std::uint64_t word() {
    std::uint64_t drawn = 0;
    for (int n = 0; n < 8; ++n) drawn = drawn << 8 | byte();
    return drawn;
  }
  // From `least` to `most`, of one byte, or of two where one does not reach.
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) {
    const std::int64_t count = most - least + 1;
    std::int64_t drawn = byte();
    if (count > 256) drawn = drawn << 8 | byte();
    return least + drawn % count;
  }
  [[nodiscard]] bool once_in(int n) { return byte() % n == n - 1; }
  // Mostly `sane`; else a number at which sizes go wrong, or any.
  [[nodiscard]] std::int64_t wild(std::int64_t sane) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    switch (byte()) {
      case 248:
        return -1;
      case 249:
        return 0;
      case 250:
        return sane == kMost ? sane : sane + 1;
      case 251:
        return std::int64_t{1} << 31;
      case 252:
        return std::int64_t{1} << 62;
      case 253:
        return kMost;
      case 254:
        return -kMost - 1;
      case 255:
        return static_cast<std::int64_t>(word());
      default:
        return sane;
    }
  }
  // Up to the next line that holds `separator` alone, which is passed over, or all that is left.
  [[nodiscard]] std::string_view until_line(std::string_view separator) {
    std::size_t at = left_.find(separator);
    while (at != std::string_view::npos && ((at > 0 && left_[at - 1] != '\n') || !ends_line(at + separator.size()))) {
      at = left_.find(separator, at + 1);
    }
    const std::string_view text = left_.substr(0, at);
    left_.remove_prefix(at == std::string_view::npos ? left_.size()
                                                     : std::min(at + separator.size() + 1, left_.size()));
    return text;
  }
  [[nodiscard]] std::string_view rest() const { return left_; }

 private:
  [[nodiscard]] bool ends_line(std::size_t at) const { return at >= left_.size() || left_[at] == '\n'; }

  std::string_view left_;
};

// What reading takes beside what its bound names: the head of a document.
inline constexpr std::size_t kFewBytes = 1024;

[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace headlight::fuzz
