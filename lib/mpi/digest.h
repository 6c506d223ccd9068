// Numbers in a line that ranks compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headlight::mpi {

// FNV-1a over bytes that come in pieces.
class Digest {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes) sum_ = (sum_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325;
};

// How many, and a sum over their bits.
template <class T>
[[nodiscard]] std::string digest_of(std::span<const T> numbers) {
  Digest digest;
  digest.add(std::as_bytes(numbers));
  return std::to_string(numbers.size()) + (numbers.empty() ? "" : " numbers, digest " + std::to_string(digest.sum()));
}

}  // namespace headlight::mpi
