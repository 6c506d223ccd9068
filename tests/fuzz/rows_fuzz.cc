// What is done to rows, through the C interface: softmax, layer norm, activations, dropout, embedding, pooling, cross
// entropy, their gradients, on any shapes, strides and lists, of float32 and 16 bits. A call refuses and writes
// nothing, or gives the same bits with one worker and with three on every instruction set, and of 16 bits those of
// float32, rounded.
#include "fuzz/c_tensor.h"

namespace headlight::fuzz::rows_fuzz {
namespace {

using Floats = CTensor<float>;
constexpr auto kInput = Floats::Kind::input;
constexpr auto kOutput = Floats::Kind::output;

// Tensors of one call, and the call.
struct Operation {
  explicit Operation(Bytes& bytes) : random(bytes.byte()), what(bytes.integer(0, 12)) {
    numbers = bytes.once_in(4) ? Numbers::any : Numbers::tame;
    rows = bytes.integer(0, bytes.once_in(6) ? 200 : 9);
    columns = bytes.integer(0, bytes.once_in(6) ? 200 : 20);
    x.draw(bytes, {rows, columns}, kInput, random, numbers);
    other.draw(bytes, {rows, columns}, kInput, random, numbers);
    y.draw(bytes, {rows, columns}, kOutput, random, numbers);
    vector.draw(bytes, {columns}, kInput, random, numbers);
    vector_out.draw(bytes, {columns}, kOutput, random, numbers);
    groups = bytes.integer(1, 4);
    table.draw(bytes, {groups, columns}, kInput, random, numbers);
    pooled.draw(bytes, {groups, columns}, kOutput, random, numbers);
    for (std::int64_t n = bytes.byte() == 255 ? 1 : 0; n < rows; ++n) ids.push_back(bytes.wild(bytes.byte() % groups));
    offsets.assign(static_cast<std::size_t>(groups) + 1, 0);
    for (std::int64_t& each : offsets) each = bytes.wild(bytes.integer(0, rows));
    std::sort(offsets.begin(), offsets.end());
    offsets.front() = bytes.wild(0);
    offsets.back() = bytes.wild(rows);
    probability = static_cast<float>(bytes.integer(0, 9)) / 8;
    flag = bytes.once_in(2);
    aliases = bytes.once_in(8);
    for_each_matrix([&](Floats& each) { each.narrow(bytes); });
    adds = bytes.once_in(4);
    if (aliases) y.tensor() = flag ? x.tensor() : other.tensor();
  }

  headlight_status run(headlight_engine* engine, headlight_error* error) {
    const headlight_indices all_ids{ids.data(), static_cast<std::int64_t>(ids.size())};
    const headlight_indices all_offsets{offsets.data(), static_cast<std::int64_t>(offsets.size())};
    const auto activation = static_cast<headlight_activation>(groups);
    const headlight_tensor* const maybe = flag ? other.get() : nullptr;
    switch (what) {
      case 0:
        return headlight_softmax(engine, x.get(), y.get(), error);
      case 1:
        return headlight_softmax_backward(engine, x.get(), other.get(), y.get(), error);
      case 2:
        return headlight_activate(engine, activation, x.get(), y.get(), error);
      case 3:
        return headlight_activate_backward(engine, activation, x.get(), other.get(), y.get(), error);
      case 4:
        return normalize(engine, maybe, error);
      case 5:
        return normalize_backward(engine, error);
      case 6: {
        const headlight_dropout dropout{probability, 1, 2};
        return headlight_apply_dropout(engine, x.get(), y.get(), &dropout, maybe, error);
      }
      case 7:
        return look_up(engine, all_ids, error);
      case 8:
        return headlight_embed_backward(engine, x.get(), pooled.get(), &all_ids, 1, error);
      case 9:
        return headlight_mean_pool(engine, x.get(), &all_offsets, pooled.get(), flag ? 1 : 0, error);
      case 10:
        return headlight_mean_pool_backward(engine, x.get(), &all_offsets, table.get(), y.get(), flag ? 1 : 0, error);
      case 11:
        return headlight_bias_backward(engine, x.get(), vector_out.get(), error);
      default:
        return cross_entropy(engine, all_ids, error);
    }
  }

  template <class Function>
  void for_each_output(Function f) {
    for (Floats* each : {&y, &vector_out, &pooled}) f(*each);
  }
  // What may have 16 bits a number.
  template <class Function>
  void for_each_matrix(Function f) {
    for (Floats* each : {&x, &other, &y, &table}) f(*each);
  }

 private:
  // The same table and the same ids up to eight times; more are refused.
  headlight_status look_up(headlight_engine* engine, const headlight_indices& all_ids, headlight_error* error) const {
    headlight_tensor tables[8];
    headlight_indices lists[8];
    std::fill(std::begin(tables), std::end(tables), *table.get());
    std::fill(std::begin(lists), std::end(lists), all_ids);
    return headlight_embed(engine, tables, lists, flag ? 1 : static_cast<std::size_t>(columns), y.get(), error);
  }
  headlight_status normalize(headlight_engine* engine, const headlight_tensor* residual, headlight_error* error) {
    headlight_layer_norm_options options = HEADLIGHT_OPTIONS(headlight_layer_norm_options);
    options.weight = vector.get();
    if (adds) options.bias = vector.get();
    options.residual = residual;
    return headlight_layer_norm(engine, x.get(), y.get(), &options, error);
  }
  headlight_status normalize_backward(headlight_engine* engine, headlight_error* error) {
    headlight_layer_norm_options options = HEADLIGHT_OPTIONS(headlight_layer_norm_options);
    if (flag) options.weight = vector.get();
    headlight_layer_norm_gradients gradients = HEADLIGHT_OPTIONS(headlight_layer_norm_gradients);
    gradients.x = y.get();
    gradients.weight = vector_out.get();
    if (adds) gradients.residual = other.get();
    return headlight_layer_norm_backward(engine, x.get(), other.get(), &gradients, &options, error);
  }
  headlight_status cross_entropy(headlight_engine* engine, const headlight_indices& labels, headlight_error* error) {
    headlight_cross_entropy_options options = HEADLIGHT_OPTIONS(headlight_cross_entropy_options);
    if (flag) options.logits_gradient = y.get();
    double loss = 0;
    std::int64_t counted = 0;
    const headlight_status status = headlight_cross_entropy(engine, x.get(), &labels, &loss, &counted, &options, error);
    must(counted >= 0 && counted <= rows, "rows that count are rows");
    return status;
  }

 public:
  test::Random random;
  std::int64_t what, rows = 0, columns = 0, groups = 1;
  Numbers numbers = Numbers::tame;
  Floats x, other, y, vector, vector_out, table, pooled;
  std::vector<std::int64_t> ids, offsets;
  float probability = 0;
  bool flag = false;
  bool aliases = false;
  bool adds = false;  // a bias to what is normalised, or a gradient to its gradient
};

using Memory = std::vector<std::vector<float>>;

Memory outputs_of(Operation& operation) {
  Memory memory;
  operation.for_each_output([&](const auto& tensor) { memory.push_back(tensor.copy()); });
  return memory;
}

// Into memory that is as it was at first.
bool run(Operation& operation, headlight_engine* engine, const Memory& before) {
  std::size_t n = 0;
  operation.for_each_output([&](auto& tensor) { tensor.put_back(before[n++]); });
  headlight_error error{};
  return accepted(operation.run(engine, &error), error);
}

// What the call writes on each instruction set.
std::vector<Memory> results_of(Operation& operation, const Engines& engines, const Memory& before) {
  std::vector<Memory> results;
  for (const auto& pair : engines.pairs) {
    must(run(operation, pair->one.get(), before), "all instruction sets take the same calls");
    results.push_back(outputs_of(operation));
    must(run(operation, pair->three.get(), before), "any number of workers takes the same calls");
    std::size_t n = 0;
    operation.for_each_output(
        [&](const auto& tensor) { must(tensor.holds(results.back()[n++]), "workers change no bit"); });
  }
  return results;
}

void check(Operation& operation) {
  static const Engines engines;
  const Memory before = outputs_of(operation);
  if (!run(operation, engines.pairs.front()->one.get(), before)) {
    std::size_t n = 0;
    operation.for_each_output(
        [&](const auto& tensor) { must(tensor.holds(before[n++]), "a refused call writes nothing"); });
    return;
  }
  if (operation.aliases) return;  // an output that was an input is not what it was
  const std::vector<Memory> results = results_of(operation, engines, before);
  std::vector<NumberType> types;
  operation.for_each_output([&](const auto& tensor) { types.push_back(tensor.stored_as()); });
  bool is_narrow = false;
  operation.for_each_matrix([&](auto& tensor) {
    is_narrow = is_narrow || tensor.is_narrow();
    tensor.widen();
  });
  if (!is_narrow) return;
  const std::vector<Memory> of_floats = results_of(operation, engines, before);
  for (std::size_t isa = 0; isa < results.size(); ++isa) {
    for (std::size_t n = 0; n < types.size(); ++n) {
      must(are_rounded(results[isa][n], of_floats[isa][n], types[n]), "16 bits have the bits of float32, rounded");
    }
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Operation operation(bytes);
  check(operation);
}

}  // namespace headlight::fuzz::rows_fuzz
