// AttentionStream: the bits of attention() in one piece, whatever the pieces.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention_stream.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/process_status.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/sanitizer.h"

namespace headlight::test::attention_stream_test {

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

// Keys and values in a mapped file, mostly holes: as a file that the system brings in where it is read.
class MappedKeys {
 public:
  static constexpr std::int64_t kKeys = 131072, kDim = 64;
  static constexpr std::size_t kBytes = 2 * kKeys * kDim * sizeof(float);  // 64 MiB

  MappedKeys() {
    std::string path = testing::TempDir() + "/headlight-stream-XXXXXX";
    const int file = ::mkstemp(path.data());
    ::unlink(path.c_str());
    bool written = file >= 0 && ::ftruncate(file, kBytes) == 0;
    Random random(3);
    // Some keys here and there, and their values.
    for (std::int64_t key = 1; key < kKeys && written; key += 9973) {
      const auto rows = random.normal_tensor<2>({16, kDim});
      const std::size_t count =
          sizeof(float) * kDim * static_cast<std::size_t>(std::min<std::int64_t>(16, kKeys - key));
      for (const std::int64_t row : {key, kKeys + key}) {
        written = written && ::pwrite(file, rows.data(), count, row * kDim * std::int64_t{sizeof(float)}) ==
                                 static_cast<ssize_t>(count);
      }
    }
    if (written) memory_ = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
  }
  ~MappedKeys() {
    if (is_there()) ::munmap(memory_, kBytes);
  }
  MappedKeys(const MappedKeys&) = delete;
  MappedKeys& operator=(const MappedKeys&) = delete;

  [[nodiscard]] bool is_there() const { return memory_ != MAP_FAILED; }
  [[nodiscard]] View<const float, 4> keys(std::int64_t first, std::int64_t count) const {
    return {static_cast<const float*>(memory_) + first * kDim, {1, count, 1, kDim}};
  }
  [[nodiscard]] View<const float, 4> values(std::int64_t first, std::int64_t count) const {
    return keys(kKeys + first, count);
  }
  // Gives back what was read.
  void drop() const { ::madvise(memory_, kBytes, MADV_DONTNEED); }

 private:
  void* memory_ = MAP_FAILED;
};

// What the child writes its results into, and what it says of itself.
struct Answer {
  float out[4][MappedKeys::kDim];
  float log_sum_exp[4];
  bool file_would_not_fit;
  std::int64_t more_at_most;  // resident bytes, beside those at the beginning
};

// In a child that may have 8 MiB more of its own and no more.
void answer_from_little_memory(Isa isa, const View<const float, 4>& query, const MappedKeys& mapped, Answer& answer) {
  const rlim_t most = static_cast<rlim_t>(status_bytes("VmData")) + (8 << 20);
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_DATA, &limit);
  void* const copy = ::mmap(nullptr, MappedKeys::kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  answer.file_would_not_fit = copy == MAP_FAILED;
  const std::int64_t before = status_bytes("VmRSS");
  Engine engine({.threads = 1, .isa = isa});
  AttentionStream stream(engine, query, 1, MappedKeys::kDim);
  while (stream.keys() < MappedKeys::kKeys) {
    const std::int64_t count = std::min<std::int64_t>(3001, MappedKeys::kKeys - stream.keys());
    stream.append(mapped.keys(stream.keys(), count), mapped.values(stream.keys(), count));
    mapped.drop();
  }
  stream.finish({&answer.out[0][0], {1, 4, 1, MappedKeys::kDim}}, {&answer.log_sum_exp[0], {1, 1, 4}});
  answer.more_at_most = status_bytes("VmHWM") - before;
}

TEST_P(AttentionStreamTest, ReadsAMappedFileLargerThanItsMemory) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's allocator";
  const MappedKeys mapped;
  ASSERT_TRUE(mapped.is_there());
  Random random(1);
  const auto query = random.normal_tensor<4>({1, 4, 1, MappedKeys::kDim});
  void* const shared = ::mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& answer = *new (shared) Answer{};
  const pid_t child = ::fork();
  if (child == 0) {
    answer_from_little_memory(GetParam(), query, mapped, answer);
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(answer.file_would_not_fit);
  EXPECT_LT(answer.more_at_most, static_cast<std::int64_t>(MappedKeys::kBytes / 4));

  Engine engine(options());
  Tensor<float, 4> out(query.shape());
  Tensor<float, 3> log_sum_exp({1, 1, 4});
  attention(engine, query, mapped.keys(0, MappedKeys::kKeys), mapped.values(0, MappedKeys::kKeys), out,
            {.log_sum_exp = log_sum_exp});
  EXPECT_TRUE(same_bits(View<const float, 4>(&answer.out[0][0], query.shape()), View<const float, 4>(out)));
  EXPECT_TRUE(same_bits(View<const float, 3>(answer.log_sum_exp, {1, 1, 4}), View<const float, 3>(log_sum_exp)));
  ::munmap(shared, sizeof(Answer));
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

// A stream without rows counts whatever it is told of, at once; and no more than attention() could have.
TEST_P(AttentionStreamTest, NothingIsCountedAtOnce) {
  Engine engine(options());
  const Tensor<float, 4> query({0, 3, 1, 8});
  AttentionStream stream(engine, query, 1, 8);
  constexpr std::int64_t kMany = std::int64_t{1} << 39;
  stream.append({nullptr, {0, kMany, 1, 8}}, {nullptr, {0, kMany, 1, 8}});
  EXPECT_EQ(stream.keys(), kMany);
  for (const std::int64_t more : {std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_NE(refusal([&] { stream.append({nullptr, {0, more, 1, 8}}, {nullptr, {0, more, 1, 8}}); }), "");
    EXPECT_EQ(stream.keys(), kMany);
  }
}

// Behind the end of what any row sees nothing is read: the views there are of memory that is not.
TEST_P(AttentionStreamTest, KeysThatNoRowSeesAreNotRead) {
  Engine engine(options());
  const Sizes sizes{.queries = 600, .keys = 1500};
  const Inputs in(sizes);
  auto* const nowhere = reinterpret_cast<const float*>(std::uintptr_t{4096});
  const std::vector<AttentionOptions> all_options = {
      {.causal = Causal::top_left}, {.window = {90, 0}}, {.causal = Causal::top_left, .chunk = 400}};
  for (const AttentionOptions& given : all_options) {
    const Results whole = in_one_piece(engine, in, given);
    Results results(sizes);
    AttentionStream stream(engine, in.query, 1, sizes.value_dim, given);
    for (const std::int64_t end : {100, 599, 600}) {  // the first of them before the last row sees anything
      const std::int64_t count = end - stream.keys();
      stream.append(piece_of(in.key, stream.keys(), count), piece_of(in.value, stream.keys(), count));
    }
    for (const std::int64_t count : {1, 899}) stream.append({nowhere, {1, count, 1, 8}}, {nowhere, {1, count, 1, 8}});
    EXPECT_EQ(stream.keys(), 1500);
    stream.finish(results.out, results.log_sum_exp);
    EXPECT_TRUE(same_bits(results.out, whole.out) && same_bits(results.log_sum_exp, whole.log_sum_exp));
  }
}

TEST_P(AttentionStreamTest, IsEmptyOnceMovedFrom) {
  Engine engine(options());
  const Inputs in({.queries = 4, .keys = 6});
  AttentionStream stream(engine, in.query, 1, 8);
  AttentionStream other = std::move(stream);
  other.append(in.key, in.value);
  EXPECT_EQ(other.keys(), 6);
  // What is left is part of the contract.
  EXPECT_EQ(stream.keys(), 0);   // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(stream.bytes(), 0);  // NOLINT(bugprone-use-after-move)
  Results results(in.sizes);
  EXPECT_EQ(refusal([&] { stream.append(in.key, in.value); }),
            "AttentionStream: append() after the stream was moved from");
  EXPECT_EQ(refusal([&] { stream.finish(results.out); }), "AttentionStream: finish() after the stream was moved from");
  other.finish(results.out);
}

TEST_P(AttentionStreamTest, RefusesWhatNeedsTheWholeLength) {
  Engine engine(options());
  const Inputs in({.queries = 4, .keys = 6});
  const auto words = [&](const AttentionOptions& options) {
    return refusal([&] { AttentionStream(engine, in.query, 1, 8, options); });
  };
  EXPECT_EQ(
      words({.causal = Causal::bottom_right}),
      "AttentionStream: options.causal = bottom_right without query_start is given, expected none: keys have no end "
      "yet");
  EXPECT_NE(words({.window = {-2, 0}}), "");
  // Of no list of numbers does it read anything, so that finish() may write anywhere but over the query.
  const std::array<std::int64_t, 2> numbers = {0, 4};
  const std::string_view given = " is given, expected none: keys have no end yet";
  for (const auto& [options, name] : {std::pair{AttentionOptions{.query_lengths = numbers}, "query_lengths"},
                                      {AttentionOptions{.key_lengths = numbers}, "key_lengths"},
                                      {AttentionOptions{.query_offsets = numbers}, "query_offsets"},
                                      {AttentionOptions{.probabilities = {.rows = numbers}}, "probabilities.rows"}}) {
    EXPECT_EQ(words(options), "AttentionStream: options." + std::string(name) + std::string(given));
  }
  for (const float bad : {-0.1f, 1.0f, std::nanf("")}) {
    EXPECT_NE(words({.dropout = {.probability = bad}}).find("AttentionStream: dropout.probability is"),
              std::string::npos);
  }
  EXPECT_EQ(refusal([&] { AttentionStream(engine, in.query, -1, 8); }),
            "AttentionStream: key_value_heads is -1, expected at least 0");
  AttentionStream stream(engine, in.query, 1, 8);
  EXPECT_EQ(refusal([&] { stream.append(in.key, piece_of(in.value, 0, 5)); }),
            "AttentionStream: value has shape [1, 5, 1, 8], expected [1, 6, 1, 8] ([B, n, Hkv, Dv])");
  Results results(in.sizes);
  stream.append(in.key, in.value);
  Tensor<float, 4> narrow({1, 4, 1, 7});
  EXPECT_NE(refusal([&] { stream.finish(narrow); }), "");
  const View<float, 3> over_query(const_cast<float*>(in.query.data()), {1, 1, 4});
  EXPECT_EQ(refusal([&] { stream.finish(results.out, over_query); }),
            "AttentionStream: log_sum_exp overlaps query in memory");
  stream.finish(results.out);
  EXPECT_EQ(refusal([&] { stream.append(in.key, in.value); }), "AttentionStream: append() after finish()");
  EXPECT_EQ(refusal([&] { stream.finish(results.out); }), "AttentionStream: finish() after finish()");
}

HEADLIGHT_ON_EVERY_ISA(AttentionStreamTest);

}  // namespace headlight::test::attention_stream_test
