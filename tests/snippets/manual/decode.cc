// Decoding token by token over caches of float32, bfloat16, float16 and int8: the bits of one call over all tokens.
#include <headlight/attention.h>

#include <algorithm>
#include <cmath>

namespace {

constexpr std::int64_t kLength = 40, kCapacity = 64, kHeads = 2, kHeadDim = 16;

// A cache of keys or values as a program may keep it: for each head, kCapacity rows side by side.
template <class T>
struct Cache {
  headlight::Tensor<T, 3> memory;

  Cache() : memory({kHeads, kCapacity, kHeadDim}) {}

  // Rows first … first + count − 1 as the view that attention() takes: [batch, length, heads, head_dim].
  headlight::View<T, 4> rows(std::int64_t first, std::int64_t count) {
    return {memory.data() + first * kHeadDim, {1, count, kHeads, kHeadDim}, {0, kHeadDim, kCapacity * kHeadDim, 1}};
  }
};

headlight::View<float, 4> token(headlight::Tensor<float, 4>& tensor, std::int64_t number) {
  return {&tensor(0, number, 0, 0), {1, 1, kHeads, kHeadDim}};
}

// Appends one token as numbers of type T.
template <class T>
void append(Cache<T>& cache, std::int64_t at, const headlight::View<float, 4>& from) {
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (std::int64_t d = 0; d < kHeadDim; ++d) cache.rows(at, 1)(0, 0, head, d) = T(from(0, 0, head, d));
  }
}

bool same(const headlight::Tensor<float, 4>& a, const headlight::Tensor<float, 4>& b) {
  return std::equal(a.begin(), a.end(), b.begin());
}

template <class T>
bool decodes_as_it_prefills(headlight::Engine& engine, headlight::Tensor<float, 4>& query,
                            headlight::Tensor<float, 4>& key, headlight::Tensor<float, 4>& value) {
  headlight::Tensor<float, 4> at_once({1, kLength, kHeads, kHeadDim}), one_by_one({1, kLength, kHeads, kHeadDim});
  Cache<T> keys, values;
  for (std::int64_t n = 0; n < kLength; ++n) {
    append(keys, n, token(key, n));
    append(values, n, token(value, n));
    headlight::attention(engine, token(query, n), keys.rows(0, n + 1), values.rows(0, n + 1), token(one_by_one, n));
  }
  headlight::attention(engine, query, keys.rows(0, kLength), values.rows(0, kLength), at_once,
                       {.causal = headlight::Causal::bottom_right});
  return same(at_once, one_by_one);
}

bool decodes_int8(headlight::Engine& engine, headlight::Tensor<float, 4>& query, headlight::Tensor<float, 4>& key,
                  headlight::Tensor<float, 4>& value) {
  headlight::Tensor<float, 4> at_once({1, kLength, kHeads, kHeadDim}), one_by_one({1, kLength, kHeads, kHeadDim});
  Cache<std::int8_t> keys, values;
  headlight::Tensor<float, 3> key_scales({1, kCapacity, kHeads}), value_scales({1, kCapacity, kHeads});
  const auto some = [](headlight::Tensor<float, 3>& scales, std::int64_t first, std::int64_t count) {
    return headlight::View<float, 3>(&scales(0, first, 0), {1, count, kHeads});
  };
  const auto attend = [&](headlight::View<float, 4> rows, std::int64_t length, headlight::View<float, 4> out) {
    headlight::attention(engine, rows, keys.rows(0, length), values.rows(0, length), out,
                         {.causal = headlight::Causal::bottom_right,
                          .key_scales = some(key_scales, 0, length),
                          .value_scales = some(value_scales, 0, length)});
  };
  for (std::int64_t n = 0; n < kLength; ++n) {
    headlight::quantize_rows(engine, token(key, n), keys.rows(n, 1), some(key_scales, n, 1));
    headlight::quantize_rows(engine, token(value, n), values.rows(n, 1), some(value_scales, n, 1));
    attend(token(query, n), n + 1, token(one_by_one, n));
  }
  attend(query, kLength, at_once);
  return same(at_once, one_by_one);
}

}  // namespace

int main() {
  headlight::Engine engine;
  headlight::Tensor<float, 4> query({1, kLength, kHeads, kHeadDim}), key({1, kLength, kHeads, kHeadDim}),
      value({1, kLength, kHeads, kHeadDim});
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
