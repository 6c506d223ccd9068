// AttentionStream: the bits of attention() in one piece, whatever the pieces.
#include "headlight/attention_stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test {
namespace {

class AttentionStreamTest : public EachIsa {};

struct Sizes {
  std::int64_t batch = 1, queries = 1, keys = 1, query_heads = 1, key_value_heads = 1, head_dim = 8, value_dim = 8;
};

struct Inputs {
  explicit Inputs(const Sizes& sizes_, std::uint64_t seed = 1)
      : sizes(sizes_),
        random(seed),
        query(random.normal_tensor<4>({sizes.batch, sizes.queries, sizes.query_heads, sizes.head_dim})),
        key(random.normal_tensor<4>({sizes.batch, sizes.keys, sizes.key_value_heads, sizes.head_dim})),
        value(random.normal_tensor<4>({sizes.batch, sizes.keys, sizes.key_value_heads, sizes.value_dim})) {}

  Sizes sizes;
  Random random;
  Tensor<float, 4> query, key, value;
};

struct Results {
  explicit Results(const Sizes& sizes)
      : out({sizes.batch, sizes.queries, sizes.query_heads, sizes.value_dim}),
        log_sum_exp({sizes.batch, sizes.query_heads, sizes.queries}) {}
  Tensor<float, 4> out;
  Tensor<float, 3> log_sum_exp;
};

Results in_one_piece(Engine& engine, const Inputs& in, AttentionOptions options) {
  Results results(in.sizes);
  options.log_sum_exp = results.log_sum_exp;
  attention(engine, in.query, in.key, in.value, results.out, options);
  return results;
}

View<const float, 4> piece_of(const Tensor<float, 4>& whole, std::int64_t first, std::int64_t count) {
  const View<const float, 4> all = whole;
  return {all.data + first * all.stride(1), {all.extent(0), count, all.extent(2), all.extent(3)}, all.strides};
}

// `next` says how many keys the next piece holds.
template <class Next>
Results in_pieces(Engine& engine, const Inputs& in, const AttentionOptions& options, Next next) {
  Results results(in.sizes);
  AttentionStream stream(engine, in.query, in.sizes.key_value_heads, in.sizes.value_dim, options);
  while (stream.keys() < in.sizes.keys) {
    const std::int64_t count = std::min<std::int64_t>(next(), in.sizes.keys - stream.keys());
    stream.append(piece_of(in.key, stream.keys(), count), piece_of(in.value, stream.keys(), count));
  }
  stream.finish(results.out, results.log_sum_exp);
  return results;
}

TEST_P(AttentionStreamTest, HasTheBitsOfOnePiece) {
  const std::vector<AttentionOptions> all_options = {
      {},
      {.causal = Causal::top_left},
      {.window = {300, 5}, .scale = -0.3f},
      {.chunk = 700, .dropout = {.probability = 0.25f, .seed = 7, .stream = 3}},
  };
  for (const Sizes& sizes :
       {Sizes{.queries = 1, .keys = 1700, .query_heads = 6, .key_value_heads = 3},
        Sizes{.batch = 2, .queries = 70, .keys = 1100, .query_heads = 2, .head_dim = 20},
        Sizes{.queries = 1300, .keys = 1300, .head_dim = 64, .value_dim = 72}, Sizes{.queries = 3, .keys = 512},
        Sizes{.batch = 2, .queries = 9, .keys = 20, .query_heads = 2, .key_value_heads = 2},
        Sizes{.queries = 40, .keys = 0}}) {
    const Inputs in(sizes);
    for (const AttentionOptions& options : all_options) {
      for (const int threads : {1, 3}) {
        Engine engine({.threads = threads, .isa = GetParam()});
        const Results truth = in_one_piece(engine, in, options);
        Random random(5);
        const auto any = [&] { return random.integer(0, 900); };
        for (const Results& results :
             {in_pieces(engine, in, options, [] { return std::int64_t{100000}; }),
              in_pieces(engine, in, options, [] { return std::int64_t{37}; }), in_pieces(engine, in, options, any)}) {
          EXPECT_TRUE(same_bits(results.out, truth.out));
          EXPECT_TRUE(same_bits(results.log_sum_exp, truth.log_sum_exp));
        }
      }
    }
  }
}

// From a mapped file, of which the system brings in what is read and may drop it again.
TEST_P(AttentionStreamTest, ReadsAMappedFile) {
  Engine engine(options());
  const Inputs in({.queries = 5, .keys = 3000, .query_heads = 2, .key_value_heads = 2});
  std::string path = testing::TempDir() + "/headlight-stream-XXXXXX";
  const int file = ::mkstemp(path.data());
  ASSERT_GE(file, 0);
  ::unlink(path.c_str());
  const auto bytes = static_cast<std::size_t>(in.key.size()) * sizeof(float);
  ASSERT_EQ(::write(file, in.key.data(), bytes), static_cast<ssize_t>(bytes));
  ASSERT_EQ(::write(file, in.value.data(), bytes), static_cast<ssize_t>(bytes));
  void* const mapped = ::mmap(nullptr, 2 * bytes, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto* keys = static_cast<const float*>(mapped);
  const View<const float, 4> key(keys, in.key.shape()), value(keys + in.key.size(), in.value.shape());

  Results results(in.sizes);
  AttentionStream stream(engine, in.query, 2, 8);
  stream.append(key, value);
  stream.finish(results.out, results.log_sum_exp);
  ::munmap(mapped, 2 * bytes);
  const Results truth = in_one_piece(engine, in, {});
  EXPECT_TRUE(same_bits(results.out, truth.out));
  EXPECT_TRUE(same_bits(results.log_sum_exp, truth.log_sum_exp));
}

TEST_P(AttentionStreamTest, HoldsNoMoreHoweverManyKeysCome) {
  Engine engine(options());
  const Inputs in({.queries = 16, .keys = 2048, .head_dim = 64, .value_dim = 64});
  AttentionStream stream(engine, in.query, 1, 64);
  stream.append(in.key, in.value);
  const std::size_t held = stream.bytes() + engine.scratch_bytes();
  for (int n = 0; n < 10; ++n) stream.append(in.key, in.value);
  EXPECT_EQ(stream.keys(), 11 * 2048);
  EXPECT_EQ(stream.bytes() + engine.scratch_bytes(), held);
  EXPECT_LT(held, 2 << 20);
}

TEST_P(AttentionStreamTest, NothingIsNoTrouble) {
  Engine engine(options());
  for (const Sizes& sizes : {Sizes{.queries = 0, .keys = 600}, Sizes{.keys = 600, .query_heads = 0},
                             Sizes{.keys = 600, .query_heads = 0, .key_value_heads = 0}, Sizes{.batch = 0, .keys = 600},
                             Sizes{.keys = 600, .value_dim = 0}, Sizes{.keys = 0}}) {
    const Inputs in(sizes);
    AttentionStream stream(engine, in.query, sizes.key_value_heads, sizes.value_dim);
    stream.append(in.key, in.value);
    Results results(sizes);
    stream.finish(results.out);
    for (const float element : results.out) EXPECT_EQ(element, 0.0f);
  }
}

TEST_P(AttentionStreamTest, RefusesWhatNeedsTheWholeLength) {
  Engine engine(options());
  const Inputs in({.queries = 4, .keys = 6});
  const auto words = [&](const AttentionOptions& options) {
    return refusal([&] { AttentionStream(engine, in.query, 1, 8, options); });
  };
  EXPECT_EQ(words({.causal = Causal::bottom_right}),
            "AttentionStream: options.causal = bottom_right is given, expected none: keys have no end yet");
  EXPECT_NE(words({.window = {-2, 0}}), "");
  EXPECT_EQ(refusal([&] { AttentionStream(engine, in.query, -1, 8); }),
            "AttentionStream: key_value_heads is -1, expected at least 0");
  AttentionStream stream(engine, in.query, 1, 8);
  EXPECT_EQ(refusal([&] { stream.append(in.key, piece_of(in.value, 0, 5)); }),
            "AttentionStream: value has shape [1, 5, 1, 8], expected [1, 6, 1, 8] ([B, n, Hkv, Dv])");
  Results results(in.sizes);
  stream.append(in.key, in.value);
  Tensor<float, 4> narrow({1, 4, 1, 7});
  EXPECT_NE(refusal([&] { stream.finish(narrow); }), "");
  stream.finish(results.out);
  EXPECT_EQ(refusal([&] { stream.append(in.key, in.value); }), "AttentionStream: append() after finish()");
  EXPECT_EQ(refusal([&] { stream.finish(results.out); }), "AttentionStream: finish() after finish()");
}

HEADLIGHT_ON_EVERY_ISA(AttentionStreamTest);

}  // namespace
}  // namespace headlight::test
