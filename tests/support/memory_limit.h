// Little memory, or none at all, and what is said of it.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "headlight/out_of_memory.h"
#include "support/sanitizer.h"

namespace headlight::test {

// Sanitizers reserve more addresses than any limit grants.
inline const bool kLimits = !under_sanitizer();

// Bytes of address space that the process takes now, from proc(5).
inline std::size_t addresses() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// So much more memory and no more, as long as it lives.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{addresses() + more, before_.rlim_max};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ADD_FAILURE() << "the limit of " << limit.rlim_cur << " bytes is refused";
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

// Takes whatever a limit leaves in pieces of 4 KiB, and then of less down to `least` bytes, as long as it lives.
class AllMemory {
 public:
  explicit AllMemory(std::size_t least = kPiece) {
    for (std::size_t bytes = kPiece; bytes >= least; bytes -= alignof(std::max_align_t)) {
      while (auto* const piece = static_cast<Piece*>(std::malloc(bytes))) last_ = new (piece) Piece{last_};
    }
  }
  ~AllMemory() {
    while (last_ != nullptr) std::free(std::exchange(last_, last_->before));
  }
  AllMemory(const AllMemory&) = delete;
  AllMemory& operator=(const AllMemory&) = delete;

 private:
  static constexpr std::size_t kPiece = 4096;
  struct Piece {
    Piece* before;
  };
  Piece* last_ = nullptr;
};

// What is said when 64 MiB more are to be had and over 1 GiB is asked for; "" where nothing is lacking.
template <class Function>
std::string lack(Function f) {
  const MemoryLimit limit(std::size_t{64} << 20);
  try {
    f();
  } catch (const OutOfMemory& error) {
    EXPECT_GT(error.bytes(), std::size_t{1} << 30);
    return error.what();
  }
  return "";
}

// What is said when there is no memory at all; "" by an error that names nobody, and where there is none.
template <class Function>
std::string lack_of_all(Function f) {
  std::optional<OutOfMemory> lacking;
  {
    const MemoryLimit limit(0);
    const AllMemory all(alignof(std::max_align_t));
    try {
      f();
    } catch (const OutOfMemory& error) {
      lacking = error;
    } catch (const std::bad_alloc&) {  // which names nobody
    }
  }
  return lacking ? lacking->what() : "";
}

}  // namespace headlight::test
