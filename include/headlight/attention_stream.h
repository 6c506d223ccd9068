// Attention over keys and values that come piece by piece: all of them seen, few of them held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "headlight/attention.h"

namespace headlight {

// attention() of a set of queries over a sequence of keys and values that is longer than memory, or not there yet:
//   AttentionStream stream(engine, query, key_value_heads, value_dim, options);
//   while (…) stream.append(key, value);   // the next keys, from memory, a mapped file, another machine
//   stream.finish(out, log_sum_exp);
// The bits are those of attention() over all keys at once, however they are cut into pieces: keys are worked through in
// the same blocks, counted from the first, and merged in the same order. What does not fill a block yet is copied and
// waits; nothing else of a piece is held once append() has returned. Memory: (Dv + some 20) floats for each query row
// and head, and 512 keys and values at most.
class HEADLIGHT_API AttentionStream {
 public:
  // query [B, Lq, Hq, Dqk] and the options' lists (alibi, sinks, starts) must stay as they are until finish(). Refused
  // are options that need the whole length or have an axis of keys: lengths, packed sequences, mask, bias,
  // probabilities, scores, and bottom-right unless query_start says where rows stand; log_sum_exp is finish()'s. Throws
  // std::invalid_argument, OutOfMemory.
  AttentionStream(Engine& engine, View<const float, 4> query, std::int64_t key_value_heads, std::int64_t value_dim,
                  const AttentionOptions& options = {});
  ~AttentionStream();
  AttentionStream(AttentionStream&& other) noexcept;
  AttentionStream& operator=(AttentionStream&& other) noexcept;

  // The next n ≥ 0 keys: key [B, n, Hkv, Dqk], value [B, n, Hkv, Dv]. Throws std::invalid_argument, and OutOfMemory
  // before anything is taken. Keys that no row sees (behind a causal end, before a window) cost nothing.
  void append(View<const float, 4> key, View<const float, 4> value);

  // Keys so far.
  [[nodiscard]] std::int64_t keys() const noexcept;
  // Of memory held between calls.
  [[nodiscard]] std::size_t bytes() const noexcept;

  // out [B, Lq, Hq, Dv] and, where given, log_sum_exp [B, Hq, Lq]. The stream has then ended: append() and finish()
  // throw std::invalid_argument.
  void finish(View<float, 4> out, View<float, 3> log_sum_exp = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headlight
