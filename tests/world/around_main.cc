// An object that is constructed before all others of the program and its libraries, and destroyed after them: it
// computes in both.
#include "world/around_main.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "headlight/analysis/presets.h"
#include "headlight/attention.h"
#include "headlight/layers/multi_head_attention.h"
#ifdef HEADLIGHT_WORLD_MODELS
#include "headlight/models/tokenizer.h"
#endif

namespace headlight::world {

std::vector<float> results() {
  Engine engine({.threads = 2});
  constexpr std::int64_t kLength = 70, kWidth = 24;
  Tensor<float, 4> x({1, kLength, 2, kWidth / 2}), out({1, kLength, 2, kWidth / 2});
  float next = 0.5f;
  for (float& value : x) value = next = 3.7f * next * (1.0f - next);
  attention(engine, x, x, x, out, {.causal = Causal::top_left});
  std::vector<float> found(out.begin(), out.end());

  MultiHeadAttention layer({.width = kWidth, .heads = 2});
  layer.initialize(7);
  Tensor<float, 3> rows({1, kLength, kWidth}), y({1, kLength, kWidth});
  std::copy(x.begin(), x.end(), rows.begin());
  layer.forward(engine, rows, rows, rows, y);
  found.insert(found.end(), y.begin(), y.end());

  found.push_back(static_cast<float>(analysis::presets().size()));
#ifdef HEADLIGHT_WORLD_MODELS
  const models::Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "light", "##house"});
  for (const std::int64_t id : tokenizer.encode("lighthouse Licht", 16)) found.push_back(static_cast<float>(id));
#endif
  return found;
}

namespace {

class AroundMain {
 public:
  AroundMain() : before_(results()) {}
  ~AroundMain() {
    if (results() == before_) return;
    std::fprintf(stderr, "after main() a program computes something else than before\n");
    std::_Exit(EXIT_FAILURE);
  }
  AroundMain(const AroundMain&) = delete;
  AroundMain& operator=(const AroundMain&) = delete;

  [[nodiscard]] const std::vector<float>& before() const noexcept { return before_; }

 private:
  std::vector<float> before_;
};

// 101 is the first that is not the implementation's own.
__attribute__((init_priority(101))) const AroundMain around_main;

}  // namespace

const std::vector<float>& results_before_main() { return around_main.before(); }

}  // namespace headlight::world
