// Attention over keys that come piece by piece, through the C interface. Whatever is done in whatever order is done or
// refused; and the result has the bits of one call over all keys at once.
#include "fuzz/c_tensor.h"

namespace headlight::fuzz::attention_stream_fuzz {
namespace {

using Floats = CTensor<float>;

// Keys and values of a whole sequence, and how it is cut.
struct Sequence {
  explicit Sequence(Bytes& bytes) : random(bytes.byte()) {
    const std::uint8_t choice = bytes.byte();
    batch = bytes.integer(0, 2);
    query_length = bytes.integer(0, choice % 8 == 7 ? 70 : 9);
    key_value_heads = bytes.integer(0, 2);
    query_heads = key_value_heads * bytes.integer(1, 2);
    head_dim = bytes.integer(0, 18);
    value_dim = bytes.integer(0, 18);
    query.draw(bytes, {batch, query_length, query_heads, head_dim}, Floats::Kind::input, random, Numbers::tame);
    for (std::int64_t pieces = bytes.integer(0, 6); pieces > 0; --pieces) {
      cuts.push_back(bytes.integer(0, choice % 8 == 6 ? 700 : 40));
      keys += cuts.back();
    }
    key = numbers(keys * key_value_heads * head_dim);
    value = numbers(keys * key_value_heads * value_dim);
    draw_options(bytes);
  }

  [[nodiscard]] std::vector<float> numbers(std::int64_t of_sample) {
    std::vector<float> made(static_cast<std::size_t>(batch * of_sample));
    for (float& each : made) each = draw_number(random, Numbers::tame);
    return made;
  }

  void draw_options(Bytes& bytes) {
    options.causal = static_cast<headlight_causal>(bytes.once_in(12) ? 2 : bytes.integer(0, 1));
    options.align = static_cast<headlight_align>(bytes.once_in(12) ? 2 : bytes.integer(0, 1));
    if (bytes.once_in(3)) {
      window = {bytes.integer(-1, 50), bytes.wild(bytes.integer(-1, 50))};
      options.window = &window;
    }
    if (bytes.once_in(3)) options.chunk = bytes.wild(bytes.integer(1, 60));
    if (bytes.once_in(3)) {
      start = bytes.wild(bytes.integer(0, 300));
      options.query_start = {&start, 1};
    }
    if (bytes.once_in(4)) {
      softcap = 1 + static_cast<float>(bytes.byte());
      options.softcap = &softcap;
    }
    if (bytes.once_in(4)) {
      slopes.draw(bytes, {query_heads}, Floats::Kind::input, random, Numbers::tame);
      options.alibi = slopes.get();
    }
    if (bytes.once_in(4)) {
      sinks.draw(bytes, {query_heads}, Floats::Kind::input, random, Numbers::tame);
      options.sinks = sinks.get();
    }
    if (bytes.once_in(4)) {
      dropout = {0.25f, 1, bytes.byte()};
      options.dropout = &dropout;
    }
  }

  test::Random random;
  std::int64_t batch = 0, query_length = 0, query_heads = 0, key_value_heads = 0, head_dim = 0, value_dim = 0, keys = 0;
  Floats query, slopes, sinks;
  std::vector<std::int64_t> cuts;
  std::vector<float> key, value;
  headlight_window window{};
  headlight_dropout dropout{};
  std::int64_t start = 0;
  float softcap = 0;
  headlight_attention_options options = HEADLIGHT_OPTIONS(headlight_attention_options);
};

// Keys [first, first + count) of all samples, or values, in the memory of all of them.
struct Piece {
  Piece(std::vector<float>& all, const Sequence& sequence, std::int64_t columns, std::int64_t first, std::int64_t count)
      : shape{sequence.batch, count, sequence.key_value_heads, columns},
        strides{sequence.keys * sequence.key_value_heads * columns, sequence.key_value_heads * columns, columns, 1},
        tensor{all.empty() ? nullptr : all.data() + first * strides[1], HEADLIGHT_FLOAT32, 4, shape, strides} {}
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  std::int64_t shape[4];
  std::int64_t strides[4];
  headlight_tensor tensor;
};

struct Results {
  explicit Results(const Sequence& sequence)
      : out(static_cast<std::size_t>(sequence.batch * sequence.query_length * sequence.query_heads *
                                     sequence.value_dim),
            7.0f),
        log_sum_exp(static_cast<std::size_t>(sequence.batch * sequence.query_heads * sequence.query_length), 7.0f),
        out_shape{sequence.batch, sequence.query_length, sequence.query_heads, sequence.value_dim},
        rows_shape{sequence.batch, sequence.query_heads, sequence.query_length},
        out_tensor{out.data(), HEADLIGHT_FLOAT32, 4, out_shape, nullptr},
        rows_tensor{log_sum_exp.data(), HEADLIGHT_FLOAT32, 3, rows_shape, nullptr} {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  std::vector<float> out, log_sum_exp;
  std::int64_t out_shape[4], rows_shape[3];
  headlight_tensor out_tensor, rows_tensor;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// All pieces, and between them what is refused. Returns whether all were taken.
void run(headlight_attention_stream* stream, Sequence& sequence, Bytes& bytes, Results& results) {
  headlight_error error{};
  std::int64_t done = 0;
  for (const std::int64_t count : sequence.cuts) {
    const Piece key(sequence.key, sequence, sequence.head_dim, done, count);
    const Piece value(sequence.value, sequence, sequence.value_dim, done, count);
    if (bytes.once_in(16)) {
      const Piece short_value(sequence.value, sequence, sequence.value_dim, done, count / 2);
      const bool fits = short_value.shape[1] == count;
      if (!fits) {
        must(!accepted(headlight_attention_stream_append(stream, &key.tensor, &short_value.tensor, &error), error),
             "as many values as keys");
      }
    }
    must(accepted(headlight_attention_stream_append(stream, &key.tensor, &value.tensor, &error), error),
         "a piece that fits is taken");
    done += count;
    must(headlight_attention_stream_keys(stream) == done, "keys are counted");
  }
  must(accepted(headlight_attention_stream_finish(stream, &results.out_tensor, &results.rows_tensor, &error), error),
       "a result that fits is given");
  must(!accepted(headlight_attention_stream_finish(stream, &results.out_tensor, nullptr, &error), error),
       "a stream ends once");
}

// A stream keeps a state for every row, and a block of keys: so many that they fill the machine are no finding.
bool is_too_large(const Sequence& sequence) {
  if (sequence.query.get() == nullptr) return false;
  const headlight_tensor& query = *sequence.query.get();
  if (query.rank != 4 || query.shape == nullptr) return false;
  constexpr double kLongestBlock = 4096, kStateOfRow = 64, kMostNumbers = 0x1p26;
  double numbers = 0;
  const auto extent = [&](int axis) { return static_cast<double>(query.shape[axis]); };
  const auto heads = static_cast<double>(sequence.key_value_heads);
  numbers += extent(0) * extent(1) * extent(2) * kStateOfRow;
  numbers += extent(0) * kLongestBlock * heads * (extent(3) + static_cast<double>(sequence.value_dim));
  return numbers > kMostNumbers && numbers < 0x1p62;
}

void check(Sequence& sequence, Bytes& bytes) {
  static const Engines engines;
  if (is_too_large(sequence)) return;
  for (const auto& pair : engines.pairs) {
    for (headlight_engine* const engine : {pair->one.get(), pair->three.get()}) {
      headlight_error error{};
      headlight_attention_stream* stream = nullptr;
      if (!accepted(headlight_attention_stream_create(engine, sequence.query.get(), sequence.key_value_heads,
                                                      sequence.value_dim, &sequence.options, &stream, &error),
                    error)) {
        must(stream == nullptr, "nothing is made by a refused call");
        return;
      }
      // A query of another shape than was drawn is taken where it stands alone.
      const headlight_tensor& query = *sequence.query.get();
      const bool as_drawn = query.shape[0] == sequence.batch && query.shape[1] == sequence.query_length &&
                            query.shape[2] == sequence.query_heads && query.shape[3] == sequence.head_dim;
      Results streamed(sequence);
      if (as_drawn) run(stream, sequence, bytes, streamed);
      headlight_attention_stream_destroy(stream);
      if (!as_drawn) return;
      Results at_once(sequence);
      headlight_attention_options options = sequence.options;
      options.log_sum_exp = &at_once.rows_tensor;
      const Piece key(sequence.key, sequence, sequence.head_dim, 0, sequence.keys);
      const Piece value(sequence.value, sequence, sequence.value_dim, 0, sequence.keys);
      must(accepted(
               headlight_attention(engine, &query, &key.tensor, &value.tensor, &at_once.out_tensor, &options, &error),
               error),
           "what a stream takes, one call takes");
      must(same_bits(streamed.out, at_once.out) && same_bits(streamed.log_sum_exp, at_once.log_sum_exp),
           "a stream has the bits of one call");
    }
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Sequence sequence(bytes);
  check(sequence, bytes);
}

}  // namespace headlight::fuzz::attention_stream_fuzz
