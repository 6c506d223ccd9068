#include "native_peers/unfused_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headlight/normalization.h"
#include "runtime/parallel.h"

namespace headlight::bench {
namespace {

// One worker for each head at work at once: [B · H] heads on so many threads, or all threads on one head.
std::int64_t workers_of(const Engine& engine, std::int64_t heads) {
  return heads >= engine.threads() ? engine.threads() : 1;
}

// Row `i` of a head's [Lq, Lk], whatever axes are broadcast but the last.
template <class T>
const T* row_of(const View<const T, 4>& view, std::int64_t sample, std::int64_t head, std::int64_t i) {
  const auto at = [&](int axis, std::int64_t index) { return view.extent(axis) == 1 ? 0 : index * view.stride(axis); };
  return view.data + at(0, sample) + at(1, head) + at(2, i);
}

}  // namespace

UnfusedAttention::UnfusedAttention(Engine& engine, SgemmPeer& blas, View<const float, 4> query,
                                   View<const float, 4> key, View<const float, 4> value, View<float, 4> out,
                                   std::vector<Interval> rows, const ScoreChanges& changes)
    : engine_(engine),
      blas_(blas),
      query_(query),
      key_(key),
      value_(value),
      out_(out),
      rows_(std::move(rows)),
      changes_(changes),
      scores_({workers_of(engine, query.extent(0) * query.extent(2)), query.extent(1), key.extent(1)}) {}

void UnfusedAttention::operator()() {
  const std::int64_t heads = query_.extent(2);
  const std::int64_t tasks = query_.extent(0) * heads;
  const auto workers = static_cast<int>(scores_.shape()[0]);
  const std::int64_t size = scores_.shape()[1] * scores_.shape()[2];
  if (workers == 1) {
    blas_.set_threads(engine_.threads());
    for (std::int64_t task = 0; task < tasks; ++task) attend(task / heads, task % heads, scores_.data());
    return;
  }
  blas_.set_threads(1);
  runtime::parallel_for(engine_, tasks, workers, [&](std::int64_t task, int worker) {
    if (worker > 0) blas_.set_threads(1);  // OpenMP keeps the number for each thread
    attend(task / heads, task % heads, scores_.data() + worker * size);
  });
}

void UnfusedAttention::attend(std::int64_t sample, std::int64_t head, float* scores) {
  const std::int64_t group = query_.extent(2) / key_.extent(2);
  SgemmCall product;
  product.m = query_.extent(1);
  product.n = key_.extent(1);
  product.k = query_.extent(3);
  product.alpha = static_cast<float>(1 / std::sqrt(static_cast<double>(query_.extent(3))));
  product.a = &query_(sample, 0, head, 0);
  product.lda = query_.stride(1);
  product.b = &key_(sample, 0, head / group, 0);
  product.ldb = key_.stride(1);
  product.transpose_b = true;
  product.c = scores;
  product.ldc = key_.extent(1);
  if (changes_.bias.data != nullptr) {
    // The product adds to what lies there already: one sweep less over the scores.
    for (std::int64_t i = 0; i < product.m; ++i)
      std::copy_n(row_of(changes_.bias, sample, head, i), product.n, scores + i * product.n);
    product.beta = 1;
  }
  blas_.multiply(product);
  if (changes_.mask.data != nullptr) hide(sample, head, scores);
  normalise(sample, scores);
  SgemmCall values;
  values.m = query_.extent(1);
  values.n = value_.extent(3);
  values.k = key_.extent(1);
  values.a = scores;
  values.lda = key_.extent(1);
  values.b = &value_(sample, 0, head / group, 0);
  values.ldb = value_.stride(1);
  values.c = &out_(sample, 0, head, 0);
  values.ldc = out_.stride(1);
  blas_.multiply(values);
}

void UnfusedAttention::hide(std::int64_t sample, std::int64_t head, float* scores) const {
  const std::int64_t keys = key_.extent(1);
  for (std::int64_t i = 0; i < query_.extent(1); ++i, scores += keys) {
    const std::uint8_t* const mask = row_of(changes_.mask, sample, head, i);
    for (std::int64_t j = 0; j < keys; ++j) scores[j] = mask[j] != 0 ? scores[j] : -INFINITY;
  }
}

void UnfusedAttention::normalise(std::int64_t sample, float* scores) {
  const std::int64_t rows = query_.extent(1);
  const std::int64_t keys = key_.extent(1);
  if (rows_.empty()) {
    softmax(engine_, {scores, {rows, keys}}, {scores, {rows, keys}});
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const Interval seen = rows_[static_cast<std::size_t>(sample * rows + i)];
    float* row = scores + i * keys;
    std::fill(row, row + seen.begin, 0.0f);
    std::fill(row + seen.end, row + keys, 0.0f);
    const View<float, 2> visible(row + seen.begin, {1, seen.end - seen.begin});
    if (visible.size() > 0) softmax(engine_, visible, visible);
  }
}

}  // namespace headlight::bench
