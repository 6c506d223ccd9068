// Arithmetic of sizes. Inlined always: files that are compiled for different instruction sets share these functions,
// and no copy of one may be left for the linker to choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headlight {

[[gnu::always_inline]] constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) noexcept { return a < b ? a : b; }
[[gnu::always_inline]] constexpr std::int64_t larger(std::int64_t a, std::int64_t b) noexcept { return a > b ? a : b; }

// ⌈a / b⌉ for a ≥ 0, b > 0.
[[gnu::always_inline]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept {
  return (a + b - 1) / b;
}
// The next multiple of b.
[[gnu::always_inline]] constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) noexcept {
  return divide_up(a, b) * b;
}

// The same for counts of bytes, which 63 bits may not hold.
template <class T>
requires std::is_same_v<T, std::size_t>
[[gnu::always_inline]] constexpr std::size_t divide_up(T a, std::size_t b) noexcept { return (a + b - 1) / b; }
template <class T>
requires std::is_same_v<T, std::size_t>
[[gnu::always_inline]] constexpr std::size_t round_up(T a, std::size_t b) noexcept { return divide_up(a, b) * b; }

}  // namespace headlight
