// Word by word over caches of float32, bfloat16, float16 and int8, with the bits of one call over all words.
#include <headlight/typed_attention.h>

#include <algorithm>
#include <cmath>

namespace {

constexpr std::int64_t kWords = 40, kCapacity = 64, kHeads = 2, kWidth = 16;

// A cache of keys or values as a program may keep it: for each head, kCapacity rows side by side.
template <class T>
struct Cache {
  headlight::Tensor<T, 3> memory;

  Cache() : memory({kHeads, kCapacity, kWidth}) {}

  // Rows first … first + count − 1 as headlight wants to see them: [batch, words, heads, width].
  headlight::View<T, 4> rows(std::int64_t first, std::int64_t count) {
    return {memory.data() + first * kWidth, {1, count, kHeads, kWidth}, {0, kWidth, kCapacity * kWidth, 1}};
  }
};

headlight::View<float, 4> word(headlight::Tensor<float, 4>& tensor, std::int64_t number) {
  return {&tensor(0, number, 0, 0), {1, 1, kHeads, kWidth}};
}

// The numbers of the word that is added, as T.
template <class T>
void append(Cache<T>& cache, std::int64_t at, const headlight::View<float, 4>& from) {
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t d = 0; d < kWidth; ++d) cache.rows(at, 1)(0, 0, head, d) = T(from(0, 0, head, d));
  }
}

bool same(const headlight::Tensor<float, 4>& a, const headlight::Tensor<float, 4>& b) {
  return std::equal(a.begin(), a.end(), b.begin());
}

template <class T>
bool decodes_as_it_prefills(headlight::Engine& engine, headlight::Tensor<float, 4>& query,
                            headlight::Tensor<float, 4>& key, headlight::Tensor<float, 4>& value) {
  headlight::Tensor<float, 4> at_once({1, kWords, kHeads, kWidth}), one_by_one({1, kWords, kHeads, kWidth});
  Cache<T> keys, values;
  for (std::int64_t n = 0; n < kWords; ++n) {
    append(keys, n, word(key, n));
    append(values, n, word(value, n));
    headlight::attention(engine, word(query, n), keys.rows(0, n + 1), values.rows(0, n + 1), word(one_by_one, n));
  }
  headlight::attention(engine, query, keys.rows(0, kWords), values.rows(0, kWords), at_once,
                       {.causal = headlight::Causal::bottom_right});
  return same(at_once, one_by_one);
}

bool decodes_int8(headlight::Engine& engine, headlight::Tensor<float, 4>& query, headlight::Tensor<float, 4>& key,
                  headlight::Tensor<float, 4>& value) {
  headlight::Tensor<float, 4> at_once({1, kWords, kHeads, kWidth}), one_by_one({1, kWords, kHeads, kWidth});
  Cache<std::int8_t> keys, values;
  headlight::Tensor<float, 3> key_scales({1, kCapacity, kHeads}), value_scales({1, kCapacity, kHeads});
  const auto some = [](headlight::Tensor<float, 3>& scales, std::int64_t first, std::int64_t count) {
    return headlight::View<float, 3>(&scales(0, first, 0), {1, count, kHeads});
  };
  const auto attend = [&](headlight::View<float, 4> rows, std::int64_t length, headlight::View<float, 4> out) {
    headlight::attention(engine,
                         {.query = rows,
                          .key = keys.rows(0, length),
                          .value = values.rows(0, length),
                          .out = out,
                          .key_scales = some(key_scales, 0, length),
                          .value_scales = some(value_scales, 0, length)},
                         {.causal = headlight::Causal::bottom_right});
  };
  for (std::int64_t n = 0; n < kWords; ++n) {
    headlight::quantize_rows(engine, word(key, n), keys.rows(n, 1), some(key_scales, n, 1));
    headlight::quantize_rows(engine, word(value, n), values.rows(n, 1), some(value_scales, n, 1));
    attend(word(query, n), n + 1, word(one_by_one, n));
  }
  attend(query, kWords, at_once);
  return same(at_once, one_by_one);
}

}  // namespace

int main() {
  headlight::Engine engine;
  headlight::Tensor<float, 4> query({1, kWords, kHeads, kWidth}), key({1, kWords, kHeads, kWidth}),
      value({1, kWords, kHeads, kWidth});
  for (std::int64_t i = 0; i < query.size(); ++i) {
    query.data()[i] = std::sin(static_cast<float>(i));
    key.data()[i] = std::cos(static_cast<float>(3 * i));
    value.data()[i] = std::sin(static_cast<float>(5 * i));
  }
  return decodes_as_it_prefills<float>(engine, query, key, value) &&
                 decodes_as_it_prefills<headlight::BFloat16>(engine, query, key, value) &&
                 decodes_as_it_prefills<headlight::Float16>(engine, query, key, value) &&
                 decodes_int8(engine, query, key, value)
             ? 0
             : 1;
}
