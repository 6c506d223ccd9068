#include "harness/cached_attention.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "harness/inputs.h"
#include "harness/spans.h"
#include "headlight/attention.h"

namespace headlight::bench {
namespace {

View<float, 4> rows_of(Tensor<float, 4>& floats, bool by_head) {
  const auto& [batch, length, heads, dim] = floats.shape();
  return {floats.data(),
          floats.shape(),
          {length * heads * dim, by_head ? dim : heads * dim, by_head ? length * dim : dim, 1}};
}

// Keys or values, and as floats what they hold.
struct Cache {
  Cache(Engine& engine, const TypedAttention& shape, std::uint32_t seed)
      : by_head(shape.by_head),
        floats(filled<4>({1, shape.key_length, shape.key_value_heads, shape.head_dim}, seed)),
        memory({(floats.size() + 3) / 4}),
        scale_memory({shape.key_length * shape.key_value_heads}) {
    const View<float, 4> rows = rows_of(floats, by_head);
    quantize_rows(engine, rows, numbers(), scales());
    const auto& [batch, length, heads, dim] = floats.shape();
    for (std::int64_t j = 0; j < length; ++j) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t d = 0; d < dim; ++d) {
          rows(0, j, h, d) = scales()(0, j, h) * static_cast<float>(numbers()(0, j, h, d));
        }
      }
    }
  }
  [[nodiscard]] View<std::int8_t, 4> numbers() {
    return {reinterpret_cast<std::int8_t*>(memory.data()), floats.shape(), rows_of(floats, by_head).strides};
  }
  [[nodiscard]] View<float, 3> scales() {
    const auto& [batch, length, heads, dim] = floats.shape();
    return {scale_memory.data(),
            {1, length, heads},
            {length * heads, by_head ? 1 : heads, by_head ? length : std::int64_t{1}}};
  }

  bool by_head;
  Tensor<float, 4> floats;
  Tensor<float, 1> memory;  // whole floats, as the yardstick reads
  Tensor<float, 1> scale_memory;
};

struct Operands {
  Operands(Engine& engine, const TypedAttention& shape)
      : query(filled<4>({1, shape.query_length, shape.heads, shape.head_dim}, 1)),
        out(query.shape()),
        key(engine, shape, 2),
        value(engine, shape, 3) {}
  void run(Engine& engine) {
    attention(engine, rows_of(query, key.by_head), key.numbers(), value.numbers(), rows_of(out, key.by_head),
              {.key_scales = key.scales(), .value_scales = value.scales()});
  }
  void run_in_float32(Engine& engine) {
    const bool by_head = key.by_head;
    attention(engine, rows_of(query, by_head), rows_of(key.floats, by_head), rows_of(value.floats, by_head),
              rows_of(out, by_head));
  }

  Tensor<float, 4> query, out;
  Cache key, value;
};

}  // namespace

Work cached_attention_work(const TypedAttention& shape, const CaseContext& context) {
  Engine* engine = &context.engine;
  const auto operands = std::make_shared<Operands>(*engine, shape);
  Work work;
  operands->run_in_float32(*engine);
  work.run = [operands, engine] { operands->run(*engine); };
  work.is_right = [operands, expected = std::vector<float>(operands->out.begin(), operands->out.end())] {
    return std::equal(expected.begin(), expected.end(), operands->out.begin());
  };
  const double rows = static_cast<double>(shape.heads * shape.query_length);
  work.operations = 4 * rows * static_cast<double>(shape.key_length * shape.head_dim);
  work.reads = reads_of(operands->query, operands->key.memory, operands->key.scale_memory, operands->value.memory,
                        operands->value.scale_memory);
  work.writes = writes_of(operands->out);
  work.bound_by_reading = shape.bound_by_reading;
  if (context.options.peers) {
    work.peers.push_back({"headlight in float32", "", [operands, engine] { operands->run_in_float32(*engine); }});
  }
  return work;
}

}  // namespace headlight::bench
