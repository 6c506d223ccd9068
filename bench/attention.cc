// Attention forward: full, causal and very short, in [B, L, H, D] memory.
#include "harness/attention_case.h"
#include "harness/case_name.h"
#include "harness/suite.h"

namespace headlight::bench {
namespace {

struct Self {
  std::int64_t heads, length, head_dim;
  Causal causal = Causal::none;
  std::int64_t batch = 1;
  std::int64_t key_value_heads = 0;  // 0: as many as heads
};

std::string name_of(const Self& shape) {
  return case_name(shape.causal == Causal::none ? "full" : "causal",
                   shape.batch > 1 ? case_name("/B", shape.batch) : "", "/H", shape.heads,
                   shape.key_value_heads > 0 ? case_name("_", shape.key_value_heads) : "", "/L", shape.length, "/D",
                   shape.head_dim);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const Self& shape, bool quick) {
    AttentionCase attention;
    attention.batch = shape.batch;
    attention.query_length = attention.key_length = shape.length;
    attention.query_heads = shape.heads;
    attention.key_value_heads = shape.key_value_heads > 0 ? shape.key_value_heads : shape.heads;
    attention.head_dim = shape.head_dim;
    attention.causal = shape.causal;
    all.push_back({name_of(shape),
                   [attention](const CaseContext& context) { return attention_work(attention, context); }, quick,
                   shape.length == 16});
  };
  for (const std::int64_t length : {128, 512, 1024, 4096}) add({12, length, 64}, true);
  add({12, 128, 32}, true);
  add({8, 2048, 128}, true);
  for (const std::int64_t length : {128, 512, 1024, 4096}) add({12, length, 64, Causal::bottom_right}, length > 128);
  add({2, 5, 4}, true);
  add({12, 16, 64}, true);
  add({12, 32, 32}, false);
  add({12, 1024, 32}, false);
  add({12, 128, 128}, false);
  add({12, 1024, 128}, false);
  add({12, 1024, 128, Causal::bottom_right}, false);
  add({12, 1000, 80}, false);
  add({1, 2048, 64}, false);
  add({8, 100, 64, Causal::none, 32}, false);
  add({32, 1024, 64, Causal::none, 1, 8}, false);
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("attention", headlight::bench::cases(), argc, argv);
}
