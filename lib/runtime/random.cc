#include "runtime/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "runtime/philox.h"

namespace headlight::runtime {
namespace {

std::array<std::uint32_t, 4> words_at(std::uint64_t four, std::uint64_t seed, std::uint32_t stream) noexcept {
  constexpr std::uint32_t kInitialisation = 0xFFFFFFFF;
  return philox4x32({static_cast<std::uint32_t>(four), static_cast<std::uint32_t>(four >> 32), kInitialisation, stream},
                    philox_key(seed));
}

// values[j] = of_words(words)[j mod 4], the words being those of ⌊j/4⌋.
template <class Function>
void fill(std::span<float> values, std::uint64_t seed, std::uint32_t stream, Function&& of_words) {
  for (std::size_t begin = 0; begin < values.size(); begin += 4) {
    const std::array<float, 4> four = of_words(words_at(begin / 4, seed, stream));
    std::copy_n(four.begin(), std::min<std::size_t>(4, values.size() - begin),
                values.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}  // namespace

void fill_uniform(std::span<float> values, float low, float high, std::uint64_t seed, std::uint32_t stream) {
  const float width = high - low;
  fill(values, seed, stream, [=](const std::array<std::uint32_t, 4>& words) {
    std::array<float, 4> four{};
    for (std::size_t index = 0; index < 4; ++index) {
      four[index] = low + width * (static_cast<float>(words[index] >> 8) * 0x1p-24F);
    }
    return four;
  });
}

void fill_normal(std::span<float> values, float mean, float standard_deviation, std::uint64_t seed,
                 std::uint32_t stream) {
  fill(values, seed, stream, [=](const std::array<std::uint32_t, 4>& words) {
    std::array<float, 4> four{};
    for (std::size_t pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2 * std::log((static_cast<double>(words[pair]) + 1) * 0x1p-32));
      const double angle = 2 * std::numbers::pi * static_cast<double>(words[pair + 1]) * 0x1p-32;
      four[pair] = static_cast<float>(mean + standard_deviation * radius * std::cos(angle));
      four[pair + 1] = static_cast<float>(mean + standard_deviation * radius * std::sin(angle));
    }
    return four;
  });
}

}  // namespace headlight::runtime
