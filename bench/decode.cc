// One query, or a few, on many keys: bytes of keys and values a second, beside what reading the same memory reaches.
#include "harness/attention_case.h"
#include "harness/cached_attention.h"
#include "harness/case_name.h"
#include "harness/suite.h"
#include "harness/typed_attention.h"

namespace headlight::bench {
namespace {

using Memory = AttentionCase::Memory;

struct Step {
  std::int64_t queries, keys, heads, key_value_heads, head_dim;
  Memory memory = Memory::by_head;
};

std::string name_of(const Step& step) {
  return case_name(step.memory == Memory::by_head ? "by_head/" : "strided/", step.queries, "x", step.keys, "/H",
                   step.heads, step.key_value_heads != step.heads ? case_name("_", step.key_value_heads) : "", "/D",
                   step.head_dim);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const Step& step, bool quick, bool smoke = false) {
    AttentionCase shape;
    shape.query_length = step.queries;
    shape.key_length = step.keys;
    shape.query_heads = step.heads;
    shape.key_value_heads = step.key_value_heads;
    shape.head_dim = step.head_dim;
    shape.memory = step.memory;
    shape.bound_by_reading = true;
    all.push_back(
        {name_of(step), [shape](const CaseContext& context) { return attention_work(shape, context); }, quick, smoke});
  };
  add({1, 8192, 32, 32, 128}, true);
  add({1, 8192, 32, 32, 128, Memory::by_position}, true);
  add({1, 8192, 32, 8, 128}, true);
  add({1, 8192, 32, 8, 128, Memory::by_position}, false);
  add({4, 8192, 32, 32, 128}, false);
  add({1, 1024, 12, 12, 64}, false);
  add({1, 1024, 12, 12, 64, Memory::by_position}, false);
  add({1, 128, 4, 2, 32}, false, true);
  for (const NumberType type : {NumberType::bfloat16, NumberType::float16}) {
    for (const bool by_head : {true, false}) {
      const TypedAttention shape{1, 8192, 32, 32, 128, by_head, true};
      const Step step{1, 8192, 32, 32, 128, by_head ? Memory::by_head : Memory::by_position};
      all.push_back({case_name(name_of(step), "/", name(type)),
                     [shape, type](const CaseContext& context) { return typed_attention_work(shape, type, context); },
                     by_head});
    }
    const TypedAttention grouped{1, 8192, 32, 8, 128, true, true};
    const Step step{1, 8192, 32, 8, 128, Memory::by_head};
    all.push_back({case_name(name_of(step), "/", name(type)),
                   [grouped, type](const CaseContext& context) { return typed_attention_work(grouped, type, context); },
                   false});
  }
  for (const bool by_head : {true, false}) {
    const TypedAttention shape{1, 8192, 32, 32, 128, by_head, true};
    const Step step{1, 8192, 32, 32, 128, by_head ? Memory::by_head : Memory::by_position};
    all.push_back({name_of(step) + "/int8_cache",
                   [shape](const CaseContext& context) { return cached_attention_work(shape, context); }, by_head});
  }
  return all;
}

}  // namespace
}  // namespace headlight::bench

int main(int argc, char** argv) { return headlight::bench::run_suite("decode", headlight::bench::cases(), argc, argv); }
