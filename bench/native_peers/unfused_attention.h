// Attention as it is written by hand over a BLAS: scores by a product, softmax over their rows, values by a product.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/tensor.h"
#include "native_peers/sgemm_peer.h"

namespace headlight::bench {

// The keys [begin, end) that a row of queries sees.
struct Interval {
  std::int64_t begin;
  std::int64_t end;
};

// What else decides a score, broadcast against [B, H, Lq, Lk] (an axis of extent 1 stands for all); empty: nothing.
struct ScoreChanges {
  View<const std::uint8_t, 4> mask{};  // 0 hides
  View<const float, 4> bias{};         // is added
};

// Views as attention() takes them. `rows` [B · Lq] says what each row of each sample sees, whatever the head; empty:
// all keys. Scores of each head are written out; one head at a time on each thread where there are heads enough, else
// the BLAS's own threads on one head after another. The softmax is headlight's, over visible keys alone, so only the
// products and the traffic of the scores are the difference.
class UnfusedAttention {
 public:
  UnfusedAttention(Engine& engine, SgemmPeer& blas, View<const float, 4> query, View<const float, 4> key,
                   View<const float, 4> value, View<float, 4> out, std::vector<Interval> rows,
                   const ScoreChanges& changes = {});
  void operator()();

 private:
  void attend(std::int64_t sample, std::int64_t head, float* scores);
  void hide(std::int64_t sample, std::int64_t head, float* scores) const;
  void normalise(std::int64_t sample, float* scores);

  Engine& engine_;
  SgemmPeer& blas_;
  View<const float, 4> query_;
  View<const float, 4> key_;
  View<const float, 4> value_;
  View<float, 4> out_;
  std::vector<Interval> rows_;
  ScoreChanges changes_;
  Tensor<float, 3> scores_;  // [workers, Lq, Lk]
};

}  // namespace headlight::bench
