// What the cases of all families draw: memory, places in it, and numbers. Braces, not parentheses, stand around calls
// that draw, since only braces say in which order.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "headlight/tensor.h"
#include "support/random.h"

namespace headlight::test {

// One of a list, all as likely.
template <class T, std::size_t N>
T one_of(Random& random, const T (&list)[N]) {
  return list[random.integer(0, static_cast<std::int64_t>(N) - 1)];
}

// Memory for the views of one case.
class DigestMemory {
 public:
  // Zeros.
  float* floats(std::int64_t count) {
    blocks_.emplace_back(typename View<float, 1>::Shape{count});
    return blocks_.back().data();
  }

  // [B, L, H, D]: contiguous, or with the heads outside (memory [B, H, L, D]), or as columns of a wider matrix that
  // start anywhere.
  View<float, 4> heads(Random& random, const View<float, 4>::Shape& shape) {
    const auto [batch, length, count, dim] = shape;
    switch (random.integer(0, 3)) {
      case 0:
        return {floats(batch * count * length * dim), shape, {count * length * dim, dim, length * dim, 1}};
      case 1: {
        const std::int64_t first = random.integer(0, 17);
        const std::int64_t row = count * dim + first + random.integer(0, 17);
        return {floats(batch * length * row + first) + first, shape, {length * row, row, dim, 1}};
      }
      default:
        return {floats(batch * length * count * dim), shape};
    }
  }

  // [N, E], contiguous or with gaps between the rows.
  View<float, 2> rows(Random& random, std::int64_t count, std::int64_t width) {
    if (!random.once_in(3)) return {floats(count * width), {count, width}};
    const std::int64_t first = random.integer(0, 9);
    const std::int64_t row = width + first + random.integer(0, 9);
    return {floats(count * row + first) + first, {count, width}, {row, 1}};
  }

 private:
  std::vector<Tensor<float, 1>> blocks_;
};

inline void fill(Random& random, View<float, 1> view, float scale = 1.0f) {
  for (std::int64_t n = 0; n < view.extent(0); ++n) view(n) = scale * random.normal();
}
inline void fill(Random& random, View<float, 2> view, float scale = 1.0f) {
  for (std::int64_t n = 0; n < view.extent(0); ++n) {
    fill(random, View<float, 1>(view.data + n * view.stride(0), {view.extent(1)}), scale);
  }
}
inline void fill(Random& random, View<float, 4> view, float scale = 1.0f) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t n = 0; n < view.extent(1); ++n) {
      View<float, 2> rows(view.data + b * view.stride(0) + n * view.stride(1), {view.extent(2), view.extent(3)},
                          {view.stride(2), view.stride(3)});
      fill(random, rows, scale);
    }
  }
}

inline constexpr float kDigestInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kDigestSpecials[] = {
    kDigestInfinity, -kDigestInfinity, std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f, 1e-40f, 3e38f, -3e38f};

// A number that is none, is very large or hardly one, here and there.
inline void put_specials(Random& random, View<float, 4> view) {
  if (view.size() == 0) return;
  for (std::int64_t count = random.integer(1, 3); count > 0; --count) {
    const std::int64_t b = random.integer(0, view.extent(0) - 1), n = random.integer(0, view.extent(1) - 1);
    const std::int64_t h = random.integer(0, view.extent(2) - 1), d = random.integer(0, view.extent(3) - 1);
    view(b, n, h, d) = one_of(random, kDigestSpecials);
  }
}
inline void put_specials(Random& random, View<float, 2> view) {
  put_specials(random, View<float, 4>(view.data, {1, view.extent(0), 1, view.extent(1)},
                                      {0, view.stride(0), 0, view.stride(1)}));
}

// n ≥ 1 numbers ≥ 0 that add up to `total`, as the offsets at which they start and end.
std::vector<std::int64_t> draw_offsets(Random& random, std::int64_t n, std::int64_t total);

}  // namespace headlight::test
