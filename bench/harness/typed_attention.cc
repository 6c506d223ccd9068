#include "harness/typed_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "harness/inputs.h"
#include "harness/spans.h"
#include "headlight/typed_attention.h"

namespace headlight::bench {
namespace {

// Some rows of heads, stored and as floats that hold the same.
template <class Stored>
struct Rows {
  Rows(std::int64_t length, std::int64_t heads, const TypedAttention& of, std::uint32_t seed)
      : by_head(of.by_head),
        floats(filled<4>({1, length, heads, of.head_dim}, seed)),
        // Whole floats of memory: what reads it as a yardstick knows no other numbers.
        memory({(floats.size() + 1) / 2}) {
    for (std::int64_t n = 0; n < floats.size(); ++n) {
      const Stored stored(floats.data()[n]);
      numbers()[n] = stored;
      floats.data()[n] = static_cast<float>(stored);
    }
  }
  [[nodiscard]] Stored* numbers() { return reinterpret_cast<Stored*>(memory.data()); }
  [[nodiscard]] MutableTypedView<4> stored() { return View<Stored, 4>(numbers(), floats.shape(), strides()); }
  [[nodiscard]] View<float, 4> wide() { return {floats.data(), floats.shape(), strides()}; }
  [[nodiscard]] View<float, 4>::Shape strides() const {
    const auto& [batch, length, heads, dim] = floats.shape();
    return {length * heads * dim, by_head ? dim : heads * dim, by_head ? length * dim : dim, 1};
  }

  bool by_head;
  Tensor<float, 4> floats;
  Tensor<float, 1> memory;
};

template <class Stored>
struct Operands {
  explicit Operands(const TypedAttention& shape)
      : query(shape.query_length, shape.heads, shape, 1),
        key(shape.key_length, shape.key_value_heads, shape, 2),
        value(shape.key_length, shape.key_value_heads, shape, 3),
        out(shape.query_length, shape.heads, shape, 4) {}

  void run(Engine& engine) {
    attention(engine, AttentionOperands{query.stored(), key.stored(), value.stored(), out.stored()});
  }
  void run_in_float32(Engine& engine) { attention(engine, query.wide(), key.wide(), value.wide(), out.wide()); }

  Rows<Stored> query, key, value, out;
};

template <class Stored>
Work work_of(const TypedAttention& shape, const CaseContext& context) {
  const auto operands = std::make_shared<Operands<Stored>>(shape);
  Engine* engine = &context.engine;
  Work work;
  work.run = [operands, engine] { operands->run(*engine); };
  // The bits of float32 over the same numbers, as they are or rounded: what ran last wrote one of the two. Where pairs
  // of bfloat16 are multiplied, weights were rounded, too: an error of 2⁻⁸ of the largest value at most.
  operands->run_in_float32(*engine);
  const auto expected = std::make_shared<std::vector<float>>(operands->out.floats.begin(), operands->out.floats.end());
  work.is_right = [operands, expected] {
    const std::vector<float>& wide = *expected;
    if (std::equal(wide.begin(), wide.end(), operands->out.floats.begin())) return true;
    float largest = 0;
    for (const float number : operands->value.floats) largest = std::max(largest, std::abs(number));
    return std::equal(wide.begin(), wide.end(), operands->out.numbers(), [largest](float number, Stored stored) {
      return Stored(number).bits == stored.bits ||
             (std::is_same_v<Stored, BFloat16> && std::abs(number - static_cast<float>(stored)) <= 0x1p-7f * largest);
    });
  };
  const double rows = static_cast<double>(shape.heads * shape.query_length);
  work.operations = 4 * rows * static_cast<double>(shape.key_length * shape.head_dim);
  work.reads = reads_of(operands->query.memory, operands->key.memory, operands->value.memory);
  work.writes = writes_of(operands->out.memory, operands->out.floats);
  work.bound_by_reading = shape.bound_by_reading;
  if (context.options.peers) {
    work.peers.push_back({"headlight in float32", "", [operands, engine] { operands->run_in_float32(*engine); }});
  }
  return work;
}

}  // namespace

Work typed_attention_work(const TypedAttention& shape, NumberType type, const CaseContext& context) {
  return type == NumberType::bfloat16 ? work_of<BFloat16>(shape, context) : work_of<Float16>(shape, context);
}

}  // namespace headlight::bench
