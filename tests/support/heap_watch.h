// How much of the heap a reader takes, so that a test can say "no more than twice the file".
//
// A program that links the object library `headlight_heap_watch` has the bytes counted that operator new hands out and
// operator delete gets back, as they were asked for (but those of over-aligned types). Under the address and thread
// sanitizers, which own those functions, their allocation hooks count, and so what the C library hands out, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headlight::test {

// Watches what all threads hold beyond what they held when it was made. One at a time.
class HeapWatch {
 public:
  HeapWatch() noexcept;
  // The most bytes that they held at a time.
  [[nodiscard]] std::size_t most() const noexcept;

 private:
  std::int64_t before_;
};

// The same, and ends the program where at its own end they were more than `allowed`; or, where an exception ends it,
// more than that and kMessages, which putting an error's message together may take: it quotes 200 bytes of a file, some
// as four characters, and more than once.
class HeapLimit {
 public:
  static constexpr std::size_t kMessages = std::size_t{1} << 14;

  explicit HeapLimit(std::size_t allowed) noexcept : allowed_(allowed) {}
  ~HeapLimit();
  HeapLimit(const HeapLimit&) = delete;
  HeapLimit& operator=(const HeapLimit&) = delete;

 private:
  HeapWatch heap_;
  std::size_t allowed_;
};

}  // namespace headlight::test
