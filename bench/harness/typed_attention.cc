#include "harness/typed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "harness/inputs.h"
#include "harness/spans.h"
#include "headlight/attention_backward.h"

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
      : options{.causal = shape.causal},
        query(shape.query_length, shape.heads, shape, 1),
        key(shape.key_length, shape.key_value_heads, shape, 2),
        value(shape.key_length, shape.key_value_heads, shape, 3),
        out(shape.query_length, shape.heads, shape, 4) {}

  void run(Engine& engine) { attention(engine, query.stored(), key.stored(), value.stored(), out.stored(), options); }
  void run_in_float32(Engine& engine) {
    attention(engine, query.wide(), key.wide(), value.wide(), out.wide(), options);
  }

  AttentionOptions options;
  Rows<Stored> query, key, value, out;
};

// Pairs of a query and a key that it sees, of all heads; causal rows end with the last key.
double visible_pairs(const TypedAttention& shape) {
  const auto rows = static_cast<double>(shape.query_length);
  const double pairs = rows * static_cast<double>(shape.key_length);
  const double hidden = shape.causal == Causal::none ? 0 : rows * (rows - 1) / 2;
  return static_cast<double>(shape.heads) * (pairs - hidden);
}

// float16 is widened.
template <class Stored>
constexpr NumberType kMultiplied = std::is_same_v<Stored, BFloat16> ? NumberType::bfloat16 : NumberType::float32;

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
  std::ranges::fill(operands->out.floats, std::numeric_limits<float>::quiet_NaN());
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
  work.operations = 4 * visible_pairs(shape) * static_cast<double>(shape.head_dim);
  work.type = kMultiplied<Stored>;
  work.reads = reads_of(operands->query.memory, operands->key.memory, operands->value.memory);
  work.writes = writes_of(operands->out.memory, operands->out.floats);
  work.bound_by_reading = shape.bound_by_reading;
  if (context.options.peers) {
    work.peers.push_back({"headlight in float32", "", [operands, engine] { operands->run_in_float32(*engine); }});
  }
  return work;
}

// The operands of a way back, and its gradients. `out` of either kind is what the forward pass of that kind gives.
template <class Stored>
struct BackwardOperands : Operands<Stored> {
  BackwardOperands(const TypedAttention& shape, bool with_forward_)
      : Operands<Stored>(shape),
        with_forward(with_forward_),
        out_gradient(shape.query_length, shape.heads, shape, 5),
        query_gradient(shape.query_length, shape.heads, shape, 6),
        key_gradient(shape.key_length, shape.key_value_heads, shape, 7),
        value_gradient(shape.key_length, shape.key_value_heads, shape, 8),
        log_sum_exp({1, shape.heads, shape.query_length}) {}

  [[nodiscard]] AttentionOptions with_log_sum_exp() {
    AttentionOptions with = this->options;
    with.log_sum_exp = log_sum_exp;
    return with;
  }
  void forward(Engine& engine) {
    attention(engine, this->query.stored(), this->key.stored(), this->value.stored(), this->out.stored(),
              with_log_sum_exp());
  }
  void run_back(Engine& engine) {
    if (with_forward) forward(engine);
    attention_backward(engine, this->query.stored(), this->key.stored(), this->value.stored(), this->out.stored(),
                       log_sum_exp, out_gradient.stored(),
                       {query_gradient.stored(), key_gradient.stored(), value_gradient.stored()}, this->options);
  }
  void forward_in_float32(Engine& engine) {
    attention(engine, this->query.wide(), this->key.wide(), this->value.wide(), this->out.wide(), with_log_sum_exp());
  }
  void run_back_in_float32(Engine& engine) {
    if (with_forward) forward_in_float32(engine);
    attention_backward(engine, this->query.wide(), this->key.wide(), this->value.wide(), this->out.wide(), log_sum_exp,
                       out_gradient.wide(), {query_gradient.wide(), key_gradient.wide(), value_gradient.wide()},
                       this->options);
  }

  bool with_forward;
  Rows<Stored> out_gradient, query_gradient, key_gradient, value_gradient;
  Tensor<float, 3> log_sum_exp;
};

// Whether a gradient is float32's: as it is, or stored, as near as the roundings of `out`, of weights and of the result
// leave it. What ran last wrote one of the two.
template <class Stored>
bool is_expected(const std::vector<float>& expected, Rows<Stored>& gradient) {
  if (std::equal(expected.begin(), expected.end(), gradient.floats.begin())) return true;
  constexpr float kError = std::is_same_v<Stored, BFloat16> ? 0x1p-6f : 0x1p-9f;
  float largest = 0;
  for (const float number : expected) largest = std::max(largest, std::abs(number));
  return std::equal(expected.begin(), expected.end(), gradient.numbers(),
                    [largest](float a, Stored b) { return std::abs(a - static_cast<float>(b)) <= kError * largest; });
}

template <class Stored>
Work backward_work_of(const TypedAttention& shape, bool with_forward, const CaseContext& context) {
  const auto operands = std::make_shared<BackwardOperands<Stored>>(shape, with_forward);
  Engine* engine = &context.engine;
  operands->forward_in_float32(*engine);
  operands->run_back_in_float32(*engine);
  operands->forward(*engine);
  const auto numbers_of = [](const Rows<Stored>& rows) {
    return std::vector<float>(rows.floats.begin(), rows.floats.end());
  };
  Work work;
  work.run = [operands, engine] { operands->run_back(*engine); };
  work.is_right = [operands, query = numbers_of(operands->query_gradient), key = numbers_of(operands->key_gradient),
                   value = numbers_of(operands->value_gradient)] {
    return is_expected(query, operands->query_gradient) && is_expected(key, operands->key_gradient) &&
           is_expected(value, operands->value_gradient);
  };
  for (Rows<Stored>* rows : {&operands->query_gradient, &operands->key_gradient, &operands->value_gradient}) {
    std::ranges::fill(rows->floats, std::numeric_limits<float>::quiet_NaN());
  }
  work.operations = (with_forward ? 14 : 10) * visible_pairs(shape) * static_cast<double>(shape.head_dim);
  work.type = kMultiplied<Stored>;
  work.reads = reads_of(operands->query.memory, operands->key.memory, operands->value.memory,
                        operands->out_gradient.memory, operands->out.memory, operands->log_sum_exp);
  work.writes =
      writes_of(operands->query_gradient.memory, operands->key_gradient.memory, operands->value_gradient.memory,
                operands->query_gradient.floats, operands->key_gradient.floats, operands->value_gradient.floats);
  if (context.options.peers) {
    work.peers.push_back({"headlight in float32", "", [operands, engine] { operands->run_back_in_float32(*engine); }});
  }
  return work;
}

}  // namespace

Work typed_attention_work(const TypedAttention& shape, NumberType type, const CaseContext& context) {
  return type == NumberType::bfloat16 ? work_of<BFloat16>(shape, context) : work_of<Float16>(shape, context);
}

Work typed_backward_work(const TypedAttention& shape, NumberType type, bool with_forward, const CaseContext& context) {
  return type == NumberType::bfloat16 ? backward_work_of<BFloat16>(shape, with_forward, context)
                                      : backward_work_of<Float16>(shape, with_forward, context);
}

}  // namespace headlight::bench
