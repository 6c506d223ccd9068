// What the cases of operations on rows draw.
#pragma once

#include <vector>

#include "digests/draws.h"
#include "digests/family.h"

namespace headlight::test {

// The sizes, memory and numbers of a case.
struct DigestRows {
  explicit DigestRows(DigestCase& c_) : c(c_) {
    count = c.random.once_in(3) ? c.random.integer(0, 5) : c.random.integer(6, 90);
    width = c.random.once_in(4) ? c.random.integer(1, 17) : c.random.integer(1, c.random.once_in(5) ? 1300 : 300);
    c.words << " rows=" << count << " width=" << width;
  }

  View<float, 2> empty() { return memory.rows(c.random, count, width); }
  View<float, 2> filled(float scale = 1.0f) { return filled(count, scale); }
  View<float, 2> filled(std::int64_t rows, float scale) {
    const View<float, 2> view = memory.rows(c.random, rows, width);
    fill(c.random, view, scale);
    if (c.random.once_in(16)) {
      put_specials(c.random, view);
      c.words << " specials";
    }
    return view;
  }
  std::span<float> vector() {
    const View<float, 1> view(memory.floats(width), {width});
    fill(c.random, view);
    return {view.data, static_cast<std::size_t>(width)};
  }
  // Into a fresh place or, now and then, into x.
  View<float, 2> beside_or(View<float, 2> x) { return c.random.once_in(4) ? x : empty(); }
  std::vector<std::int64_t> numbers(std::int64_t least, std::int64_t most) {
    std::vector<std::int64_t> drawn(static_cast<std::size_t>(count));
    for (std::int64_t& number : drawn) number = c.random.integer(least, most);
    return drawn;
  }

  DigestCase& c;
  DigestMemory memory;
  std::int64_t count = 0, width = 0;
};

}  // namespace headlight::test
