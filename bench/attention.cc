// Attention forward: full, causal, very short, and keys that come piece by piece, in [B, L, H, D] memory.
#include <algorithm>
#include <memory>

#include "harness/attention_case.h"
#include "harness/case_name.h"
#include "harness/inputs.h"
#include "harness/spans.h"
#include "harness/suite.h"
#include "harness/typed_attention.h"
#include "headlight/attention_stream.h"

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

// Keys and values in pieces of 512 positions; beside it, all in one.
Work stream_work(std::int64_t heads, std::int64_t length, std::int64_t head_dim, const CaseContext& context) {
  struct Operands {
    explicit Operands(const View<float, 4>::Shape& shape)
        : query(filled<4>(shape, 1)), key(filled<4>(shape, 2)), value(filled<4>(shape, 3)), out(shape), whole(shape) {}
    Tensor<float, 4> query, key, value, out, whole;
  };
  const auto operands = std::make_shared<Operands>(View<float, 4>::Shape{1, length, heads, head_dim});
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine, heads, length, head_dim] {
    AttentionStream stream(*engine, operands->query, heads, head_dim);
    constexpr std::int64_t kPiece = 512;
    for (std::int64_t begin = 0; begin < length; begin += kPiece) {
      const auto piece = [&](const Tensor<float, 4>& all) {
        View<const float, 4> view = all;
        view.data += begin * view.stride(1);
        view.shape[1] = std::min(kPiece, length - begin);
        return view;
      };
      stream.append(piece(operands->key), piece(operands->value));
    }
    stream.finish(operands->out);
  };
  const auto attend = [operands, engine] {
    attention(*engine, operands->query, operands->key, operands->value, operands->whole);
  };
  work.is_right = [operands, attend] {
    attend();
    return std::equal(operands->out.begin(), operands->out.end(), operands->whole.begin());
  };
  work.operations = 4 * static_cast<double>(length * length) * static_cast<double>(heads * head_dim);
  work.reads = reads_of(operands->query, operands->key, operands->value);
  work.other_bytes = sizeof(float) * static_cast<double>(operands->out.size());
  if (context.options.peers) work.peers.push_back({"headlight in one piece", "", attend});
  return work;
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
  for (const std::int64_t length : {128, 512, 1024, 4096}) add({12, length, 64}, length < 4096);
  add({12, 128, 32}, true);
  add({8, 2048, 128}, true);
  for (const std::int64_t length : {128, 512, 1024, 4096})
    add({12, length, 64, Causal::bottom_right}, length > 128 && length < 4096);
  add({2, 5, 4}, true);
  add({12, 16, 64}, true);
  add({12, 12, 128}, false);
  add({12, 32, 32}, false);
  add({12, 160, 32}, false);
  add({12, 1024, 32}, false);
  add({12, 128, 128}, false);
  add({12, 1024, 128}, false);
  add({12, 1024, 128, Causal::bottom_right}, false);
  add({12, 1000, 80}, false);
  add({1, 2048, 64}, false);
  add({8, 100, 64, Causal::none, 32}, false);
  add({32, 1024, 64, Causal::none, 1, 8}, false);
  const auto add_typed = [&](NumberType type, const Self& shape) {
    const TypedAttention typed{.query_length = shape.length,
                               .key_length = shape.length,
                               .heads = shape.heads,
                               .key_value_heads = shape.heads,
                               .head_dim = shape.head_dim,
                               .causal = shape.causal};
    all.push_back({case_name(name(type), shape.causal == Causal::none ? "" : "_causal", "/H", shape.heads, "/L",
                             shape.length, "/D", shape.head_dim),
                   [typed, type](const CaseContext& context) { return typed_attention_work(typed, type, context); },
                   false});
  };
  for (const std::int64_t length : {16, 128, 512, 1024, 4096}) add_typed(NumberType::bfloat16, {12, length, 64});
  add_typed(NumberType::bfloat16, {8, 2048, 128});
  for (const std::int64_t length : {1024, 4096}) {
    add_typed(NumberType::bfloat16, {12, length, 64, Causal::bottom_right});
  }
  for (const std::int64_t length : {16, 128, 1024}) add_typed(NumberType::float16, {12, length, 64});
  all.push_back(
      {"stream/H12/L4096/D64", [](const CaseContext& context) { return stream_work(12, 4096, 64, context); }, false});
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) {
  return headlight::bench::run_suite("attention", headlight::bench::cases(), argc, argv);
}
