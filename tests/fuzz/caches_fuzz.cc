// What surrounds attention over caches, through the C interface: rows as integers with scales, parts of attention put
// together, scratch memory asked for and reserved. A call refuses and writes nothing; or integers and scales are the
// twin's, a merged row lies between those of its parts, what can be told can be reserved, and workers change no bit.
#include <cmath>
#include <iterator>
#include <limits>

#include "c/arguments.h"
#include "fuzz/c_tensor.h"
#include "reference/number_types.h"

namespace headlight::fuzz::caches_fuzz {
namespace {

using Floats = CTensor<float>;
using Integers = CTensor<std::int8_t>;
constexpr auto kInput = Floats::Kind::input;
constexpr auto kOutput = Floats::Kind::output;

const Engines& engines() {
  static const Engines all;
  return all;
}

struct Sizes {
  explicit Sizes(Bytes& bytes) : random(bytes.byte()) {
    numbers = bytes.once_in(4) ? Numbers::any : Numbers::tame;
    batch = bytes.integer(0, 3);
    length = bytes.integer(0, bytes.once_in(6) ? 60 : 9);
    heads = bytes.integer(0, 4);
    dim = bytes.integer(0, bytes.once_in(6) ? 140 : 20);
  }
  test::Random random;
  Numbers numbers;
  std::int64_t batch, length, heads, dim;
};

class Quantized {
 public:
  Quantized(Bytes& bytes, Sizes& sizes) {
    x_.draw(bytes, {sizes.batch, sizes.length, sizes.heads, sizes.dim}, kInput, sizes.random, sizes.numbers);
    integers_.draw(bytes, {sizes.batch, sizes.length, sizes.heads, sizes.dim}, Integers::Kind::output, sizes.random,
                   sizes.numbers);
    scales_.draw(bytes, {sizes.batch, sizes.length, sizes.heads}, kOutput, sizes.random, sizes.numbers);
    x_.narrow(bytes);
  }

  void check() {
    const std::vector<std::int8_t> integers = integers_.copy();
    const std::vector<float> scales = scales_.copy();
    const auto run = [&](headlight_engine* engine) {
      integers_.put_back(integers);
      scales_.put_back(scales);
      headlight_error error{};
      return accepted(headlight_quantize_rows(engine, x_.get(), integers_.get(), scales_.get(), &error), error);
    };
    if (!run(engines().pairs.front()->one.get())) {
      must(integers_.holds(integers) && scales_.holds(scales), "a refused call writes nothing");
      return;
    }
    for (const auto& pair : engines().pairs) {
      for (headlight_engine* const engine : {pair->one.get(), pair->three.get()}) {
        must(run(engine), "all engines take the same calls");
        check_against_the_twin();
      }
    }
  }

 private:
  void check_against_the_twin() const {
    const auto from = c::typed_view<4, const void*>("fuzz", "x", x_.get());
    const auto to = c::view<const std::int8_t, 4>("fuzz", "numbers", integers_.get());
    const auto scales = c::view<const float, 3>("fuzz", "scales", scales_.get());
    std::vector<float> row(static_cast<std::size_t>(to.extent(3)));
    for (std::int64_t b = 0; b < to.extent(0); ++b) {
      for (std::int64_t l = 0; l < to.extent(1); ++l) {
        for (std::int64_t h = 0; h < to.extent(2); ++h) {
          const std::int64_t first = b * from.stride(0) + l * from.stride(1) + h * from.stride(2);
          for (std::size_t d = 0; d < row.size(); ++d) {
            row[d] = test::get(from.data, first + static_cast<std::int64_t>(d), from.type);
          }
          const reference::Int8Numbers twin = reference::symmetric_int8(row);
          const float scale = scales(b, l, h);
          must(scale == twin.scale || (std::isnan(scale) && std::isnan(twin.scale)), "a scale is the twin's");
          for (std::size_t d = 0; d < row.size(); ++d) {
            must(to(b, l, h, static_cast<std::int64_t>(d)) == twin.integers[d], "an integer is the twin's");
          }
        }
      }
    }
  }

  Floats x_, scales_;
  Integers integers_;
};

class Merged {
 public:
  Merged(Bytes& bytes, Sizes& sizes) : numbers_(sizes.numbers), count_(static_cast<std::size_t>(bytes.integer(0, 4))) {
    const std::vector<std::int64_t> out{sizes.batch, sizes.length, sizes.heads, sizes.dim};
    const std::vector<std::int64_t> rows{sizes.batch, sizes.heads, sizes.length};
    for (std::size_t part = 0; part < count_; ++part) {
      outs_[part].draw(bytes, out, kInput, sizes.random, sizes.numbers);
      sums_[part].draw(bytes, rows, kInput, sizes.random, sizes.numbers);
    }
    out_.draw(bytes, out, kOutput, sizes.random, sizes.numbers);
    if (bytes.once_in(2)) sum_.draw(bytes, rows, kOutput, sizes.random, sizes.numbers);
  }

  void check() {
    const std::vector<float> out = out_.copy(), sum = sum_.copy();
    const auto run = [&](headlight_engine* engine) {
      out_.put_back(out);
      sum_.put_back(sum);
      const headlight_tensor* outs[kMost];
      const headlight_tensor* sums[kMost];
      for (std::size_t part = 0; part < kMost; ++part) {
        outs[part] = outs_[part].get();
        sums[part] = sums_[part].get();
      }
      headlight_error error{};
      return accepted(headlight_merge_attention(engine, outs, sums, count_, out_.get(), sum_.get(), &error), error);
    };
    if (!run(engines().pairs.front()->one.get())) {
      must(out_.holds(out) && sum_.holds(sum), "a refused call writes nothing");
      return;
    }
    for (const auto& pair : engines().pairs) {
      must(run(pair->one.get()), "all instruction sets take the same calls");
      const std::vector<float> out_by_one = out_.copy(), sum_by_one = sum_.copy();
      if (numbers_ == Numbers::tame) check_bounds();
      must(run(pair->three.get()), "any number of workers takes the same calls");
      must(out_.holds(out_by_one) && sum_.holds(sum_by_one), "workers change no bit");
    }
  }

 private:
  static constexpr std::size_t kMost = 4;

  // Weights are from 0 to 1 and sum to 1: a merged number is no larger than the largest of its parts, all below 2.
  void check_bounds() const {
    const auto out = c::typed_view<4, const void*>("fuzz", "out", out_.get());
    for (std::int64_t b = 0; b < out.extent(0); ++b) {
      for (std::int64_t i = 0; i < out.extent(1); ++i) {
        for (std::int64_t h = 0; h < out.extent(2); ++h) {
          for (std::int64_t d = 0; d < out.extent(3); ++d) {
            const std::int64_t at = b * out.stride(0) + i * out.stride(1) + h * out.stride(2) + d;
            must(std::abs(test::get(out.data, at, out.type)) <= 2 + 0x1p-16f, "a merged row lies between its parts");
          }
        }
      }
    }
  }

  Numbers numbers_;
  std::size_t count_;
  Floats outs_[kMost], sums_[kMost], out_, sum_;
};

// What a call of some shape takes from an engine, which is taken then.
template <class Shape, class Ask, class Reserve>
void ask_and_reserve(const Shape& shape, Ask ask, Reserve reserve) {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  headlight_engine* const engine = engines().pairs.back()->three.get();
  headlight_error error{};
  std::size_t needed = 0;
  if (!accepted(ask(engine, &shape, &needed, &error), error) || needed > kMost) return;
  must(accepted(reserve(engine, &shape, &error), error), "what can be told can be reserved");
  must(headlight_engine_scratch_bytes(engine) >= needed, "what is reserved is held");
  headlight_engine_release_scratch(engine);
}

void ask_for_memory(Bytes& bytes, const Sizes& sizes) {
  headlight_attention_shape attention = HEADLIGHT_OPTIONS(headlight_attention_shape);
  attention.batch = bytes.wild(sizes.batch);
  attention.query_length = bytes.wild(sizes.length);
  attention.key_length = bytes.wild(bytes.integer(0, 2000));
  attention.key_value_heads = bytes.wild(sizes.heads);
  attention.query_heads = bytes.wild(sizes.heads * bytes.integer(1, 3));
  attention.head_dim = bytes.wild(sizes.dim);
  attention.value_dim = bytes.wild(bytes.integer(0, 20));
  attention.query_gradient = static_cast<headlight_type>(bytes.wild(bytes.once_in(3) ? HEADLIGHT_BFLOAT16 : 0));
  attention.struct_size = struct_size(bytes, attention.struct_size);
  ask_and_reserve(attention, headlight_attention_workspace_bytes, headlight_attention_reserve);
  ask_and_reserve(attention, headlight_attention_backward_workspace_bytes, headlight_attention_backward_reserve);
  headlight_gemm_shape gemm = HEADLIGHT_OPTIONS(headlight_gemm_shape);
  gemm.batch = bytes.wild(sizes.batch);
  gemm.m = bytes.wild(sizes.length);
  gemm.n = bytes.wild(sizes.dim);
  gemm.k = bytes.wild(bytes.integer(0, 2000));
  gemm.packed = bytes.once_in(2) ? 1 : 0;
  gemm.type = static_cast<headlight_type>(bytes.wild(bytes.integer(0, 6)));
  gemm.struct_size = struct_size(bytes, gemm.struct_size);
  ask_and_reserve(gemm, headlight_gemm_workspace_bytes, headlight_gemm_reserve);
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const std::int64_t what = bytes.integer(0, 2);
  Sizes sizes(bytes);
  if (what == 0) {
    Quantized(bytes, sizes).check();
  } else if (what == 1) {
    Merged(bytes, sizes).check();
  } else {
    ask_for_memory(bytes, sizes);
  }
}

}  // namespace headlight::fuzz::caches_fuzz
