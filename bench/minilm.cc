// The whole of all-MiniLM-L6-v2: sequences x tokens; and what its heads do over so many sentences.
#include "harness/case_name.h"
#if defined(HEADLIGHT_BENCH_HEADS)
#include "harness/heads_case.h"
#endif
#include "harness/minilm_case.h"
#include "harness/suite.h"

namespace headlight::bench {
namespace {

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const TokenBatch batch : {TokenBatch{1, 8}, {1, 16}, {1, 32}, {1, 128}, {1, 512}, {8, 512}, {32, 128}}) {
    const bool quick = batch.tokens != 32 && batch.sequences != 8;
    all.push_back({case_name(batch.sequences, "x", batch.tokens),
                   [batch](const CaseContext& context) { return minilm_work(batch, context); }, quick,
                   batch.tokens == 8});
  }
  for (const TokenBatch batch : {TokenBatch{1, 8}, {1, 16}, {1, 128}, {1, 512}, {32, 128}}) {
    all.push_back({case_name("bfloat16/", batch.sequences, "x", batch.tokens),
                   [batch](const CaseContext& context) { return minilm_work(batch, context, NumberType::bfloat16); }});
  }
#if defined(HEADLIGHT_BENCH_HEADS)
  for (const std::size_t sentences : {100u, 1000u}) {
    all.push_back({case_name("heads/", sentences),
                   [sentences](const CaseContext& context) { return heads_work(sentences, context); },
                   sentences == 100});
  }
#endif
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("minilm", headlight::bench::cases(), argc, argv); }
