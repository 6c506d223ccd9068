// Attention under masks: GFLOP/s over the pairs that are visible, so that work on hidden ones shows as a loss.
#include <string>

#include "harness/attention_case.h"
#include "harness/suite.h"

namespace headlight::bench {
namespace {

AttentionCase self(std::int64_t length, std::int64_t batch = 1) {
  AttentionCase shape;
  shape.batch = batch;
  shape.query_length = shape.key_length = length;
  shape.query_heads = shape.key_value_heads = 12;
  shape.head_dim = 64;
  return shape;
}

// As many sequences, of lengths evenly from `shortest` to `longest`, one after another.
AttentionCase packed(std::int64_t sequences, std::int64_t shortest, std::int64_t longest) {
  std::vector<std::int64_t> offsets = {0};
  for (std::int64_t s = 0; s < sequences; ++s)
    offsets.push_back(offsets.back() + shortest + s * (longest - shortest) / (sequences - 1));
  AttentionCase shape = self(offsets.back());
  shape.offsets = offsets;
  return shape;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const std::string& name, const AttentionCase& shape, bool quick, bool smoke = false) {
    all.push_back({name, [shape](const CaseContext& context) { return attention_work(shape, context); }, quick, smoke});
  };
  // What is computed beside the keys that a row sees shows where few are seen.
  for (const std::int64_t keys : {64, 256, 1024}) {
    AttentionCase window = self(4096);
    window.window = {keys, keys};
    add("window" + std::to_string(keys) + "/H12/L4096/D64", window, keys == 256);
  }
  add("packed_sequences64/H12/D64", packed(64, 20, 500), true);
  AttentionCase lengths = self(1024, 4);
  lengths.key_lengths.assign(4, 512);
  add("key_lengths_half/B4/H12/L1024/D64", lengths, true);
  AttentionCase causal_window = self(4096);
  causal_window.causal = Causal::bottom_right;
  causal_window.window.left = 511;
  add("causal_window512/H12/L4096/D64", causal_window, false);
  AttentionCase boolean = self(512);
  boolean.boolean_mask = true;
  add("boolean/H12/L512/D64", boolean, false);
  AttentionCase bias = self(512);
  bias.bias = true;
  add("bias/H12/L512/D64", bias, false);
  for (const std::int64_t length : {512, 2048}) {
    AttentionCase slopes = self(length);
    slopes.slopes = true;
    add("slopes/H12/L" + std::to_string(length) + "/D64", slopes, length == 512);
  }
  add("packed_sequences4/H12/D64", packed(4, 5, 40), false, true);
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("masks", headlight::bench::cases(), argc, argv); }
