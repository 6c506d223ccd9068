// Attention's backward pass through the C interface, for any call of the forward pass that is taken, over operands and
// gradients of float32 and 16 bits. It refuses and writes nothing, or gives the same bits with one worker and with
// three; the gradient of the values is right on every instruction set; and of 16 bits all have the bits of float32,
// rounded.
#include "baseline/attention_unfused.h"
#include "c/attention_options.h"
#include "fuzz/attention_call.h"
#include "reference/attention.h"
#include "reference/attention_backward.h"

namespace headlight::fuzz::attention_backward_fuzz {
namespace {

using Floats = CTensor<float>;

struct Gradients {
  Gradients(Bytes& bytes, AttentionCall& call) {
    const auto draw = [&](Floats& tensor, const Floats& like, const headlight_tensor*& asked) {
      if (like.get() == nullptr || bytes.once_in(5)) return;
      const headlight_tensor& given = *like.get();
      if (given.shape == nullptr || given.rank < 1 || given.rank > 4) return;
      tensor.draw(bytes, {given.shape, given.shape + given.rank}, Floats::Kind::output, call.random, call.numbers);
      asked = tensor.get();
    };
    draw(query, call.query, list.query);
    draw(key, call.key, list.key);
    draw(value, call.value, list.value);
    draw(bias, call.bias, list.bias);
    draw(sinks, call.sinks, list.sinks);
    list.accumulate = bytes.once_in(6) ? 1 : 0;
    list.struct_size = struct_size(bytes, list.struct_size);
    out.draw(bytes, {call.batch, call.query_length, call.query_heads, call.value_dim}, Floats::Kind::input, call.random,
             call.numbers);
    if (!bytes.once_in(3)) return;
    log_sum_exp.draw(bytes, {call.batch, call.query_heads, call.query_length}, Floats::Kind::input, call.random,
                     call.numbers);
  }

  template <class Function>
  void for_each(Function f) {
    for (Floats* each : {&query, &key, &value, &bias, &sinks}) f(*each);
  }
  // What may have 16 bits a number.
  template <class Function>
  void for_each_of_any_type(Function f) {
    for (Floats* each : {&query, &key, &value, &out}) f(*each);
  }

  Floats out, log_sum_exp;  // of the sum by the outputs
  Floats query, key, value, bias, sinks;
  headlight_attention_gradients list = HEADLIGHT_OPTIONS(headlight_attention_gradients);
};

using Memory = std::vector<std::vector<float>>;

headlight_status differentiate(headlight_engine* engine, AttentionCall& call, headlight_attention_options options,
                               Gradients& gradients, const Memory& before, headlight_error& error) {
  std::size_t n = 0;
  gradients.for_each([&](auto& tensor) { tensor.put_back(before[n++]); });
  options.log_sum_exp_gradient = gradients.log_sum_exp.get();
  return headlight_attention_backward(engine, call.query.get(), call.key.get(), call.value.get(), call.out.get(),
                                      call.log_sum_exp.get(), gradients.out.get(), &gradients.list, &options, &error);
}

// dV = (P∘Z)ᵀ dO, whose sum of sizes is that of |dO|.
class Truth {
 public:
  Truth(const AttentionCall& call, const headlight_attention_options& options, const Gradients& gradients)
      : value_({call.batch, call.key_length, call.key_value_heads, call.value_dim}), size_(value_.shape()) {
    const Tensor<double, 4> query = doubles(call.query);
    const Tensor<double, 4> key = doubles(call.key);
    const Tensor<double, 4> value = doubles(call.value);
    Tensor<double, 4> out = doubles(gradients.out);
    const AttentionOptions given = c::attention_options("fuzz", &options);
    // As in attention_fuzz.cc. Numbers are below 2, so a score and its bias are together below 4 D |scale| + 2.
    const double score =
        4 * static_cast<double>(call.head_dim) * std::abs(reference::attention_scale<double>(given, call.head_dim)) + 2;
    error_ = 3 * 0x1p-24 *
             (2 * static_cast<double>(call.head_dim + 16) * score +
              static_cast<double>(call.key_length + call.query_length + 64));
    reference::attention_backward<double>(query, key, value, out, {.value = value_.view()}, given);
    for (double& each : out) each = std::abs(each);
    reference::attention_backward<double>(query, key, value, out, {.value = size_.view()}, given);
  }

  void check(const Gradients& gradients) const {
    const auto actual = c::view<const float, 4>("fuzz", "gradient", gradients.value.get());
    for (std::int64_t b = 0; b < value_.shape()[0]; ++b) {
      for (std::int64_t j = 0; j < value_.shape()[1]; ++j) {
        for (std::int64_t h = 0; h < value_.shape()[2]; ++h) {
          for (std::int64_t d = 0; d < value_.shape()[3]; ++d) {
            must_be_near(static_cast<double>(actual(b, j, h, d)), value_(b, j, h, d),
                         error_ * size_(b, j, h, d) + 1e-30, "the gradient of the values is right");
          }
        }
      }
    }
  }

 private:
  Tensor<double, 4> value_;
  Tensor<double, 4> size_;  // Σ_i p_ij z_ij |dO_i|
  double error_ = 0;
};

// Whether nothing is added to scores that may be large.
bool has_small_scores(const AttentionCall& call) {
  return call.numbers == Numbers::tame && call.options.alibi == nullptr && call.options.softcap == nullptr &&
         call.options.sinks == nullptr;
}

Memory memory_of(Gradients& gradients) {
  Memory memory;
  gradients.for_each([&](const auto& tensor) { memory.push_back(tensor.copy()); });
  return memory;
}

// The gradients on each instruction set.
std::vector<Memory> results_of(AttentionCall& call, const headlight_attention_options& options, Gradients& gradients,
                               const Engines& engines, const Memory& before, const Truth* truth) {
  std::vector<Memory> results;
  headlight_error error{};
  for (const auto& pair : engines.pairs) {
    must(accepted(differentiate(pair->one.get(), call, options, gradients, before, error), error),
         "all instruction sets take the same calls");
    if (truth != nullptr) truth->check(gradients);
    results.push_back(memory_of(gradients));
    must(accepted(differentiate(pair->three.get(), call, options, gradients, before, error), error),
         "any number of workers takes the same calls");
    std::size_t n = 0;
    gradients.for_each([&](const auto& tensor) { must(tensor.holds(results.back()[n++]), "workers change no bit"); });
  }
  return results;
}

// Gradients of 16 bits or of operands of such, which are widened then: those of float32, rounded. Where pairs of
// bfloat16 may be multiplied sums are others.
void check_narrow(AttentionCall& call, const headlight_attention_options& options, Gradients& gradients,
                  const Engines& engines, const Memory& before) {
  const std::vector<Memory> results = results_of(call, options, gradients, engines, before, nullptr);
  std::vector<NumberType> types;
  gradients.for_each([&](const auto& tensor) { types.push_back(tensor.stored_as()); });
  std::vector<bool> has_pairs;
  for (const auto& pair : engines.pairs) has_pairs.push_back(call.may_multiply_pairs(pair->one.get()));
  call.widen();
  gradients.for_each_of_any_type([](Floats& tensor) { tensor.widen(); });
  const std::vector<Memory> of_floats = results_of(call, options, gradients, engines, before, nullptr);
  for (std::size_t isa = 0; isa < results.size(); ++isa) {
    for (std::size_t n = 0; !has_pairs[isa] && n < types.size(); ++n) {
      must(are_rounded(results[isa][n], of_floats[isa][n], types[n]), "16 bits have the bits of float32, rounded");
    }
  }
}

void check(AttentionCall& call, Gradients& gradients) {
  static const Engines engines;
  headlight_error error{};
  if (!call.log_sum_exp.is_given()) return;
  headlight_engine* const first = engines.pairs.front()->one.get();
  if (!accepted(headlight_attention(first, call.query.get(), call.key.get(), call.value.get(), call.out.get(),
                                    &call.options, &error),
                error)) {
    return;
  }
  headlight_attention_options options = call.options;
  options.log_sum_exp = nullptr;
  options.probabilities = nullptr;
  options.scores = nullptr;
  const Memory before = memory_of(gradients);
  if (!accepted(differentiate(first, call, options, gradients, before, error), error)) {
    std::size_t n = 0;
    gradients.for_each([&](const auto& tensor) { must(tensor.holds(before[n++]), "a refused call writes nothing"); });
    return;
  }
  bool is_narrow = call.is_narrow();
  gradients.for_each_of_any_type([&](const Floats& tensor) { is_narrow = is_narrow || tensor.is_narrow(); });
  if (is_narrow) check_narrow(call, options, gradients, engines, before);
  const bool is_twinned = call.has_sane_shapes() && has_small_scores(call) && gradients.out.is_sane() &&
                          gradients.value.is_sane() && gradients.value.is_given() && gradients.list.accumulate == 0;
  const std::unique_ptr<Truth> truth = is_twinned ? std::make_unique<Truth>(call, options, gradients) : nullptr;
  results_of(call, options, gradients, engines, before, truth.get());
  if (truth == nullptr) return;
  constexpr const char* kName = "attention_unfused_backward";
  const auto differentiate_unfused = [&](Engine& on) {
    const auto operand = [](const char* name, const headlight_tensor* tensor) {
      return c::view<const float, 4>(kName, name, tensor);  // one without elements keeps its shape
    };
    const auto floats = [](const char* name, const headlight_tensor* tensor) {
      return c::optional_view<float, 4>(kName, name, tensor);
    };
    const auto& list = gradients.list;
    AttentionOptions given = c::attention_options(kName, &options);
    given.log_sum_exp_gradient = {};  // of which the gradient of the values knows nothing
    baseline::attention_unfused_backward(on, operand("query", call.query.get()), operand("key", call.key.get()),
                                         operand("value", call.value.get()),
                                         operand("out_gradient", gradients.out.get()),
                                         {.query = floats("gradients.query", list.query),
                                          .key = floats("gradients.key", list.key),
                                          .value = floats("gradients.value", list.value),
                                          .bias = floats("gradients.bias", list.bias),
                                          .sinks = c::optional_view<float, 1>(kName, "gradients.sinks", list.sinks),
                                          .accumulate = list.accumulate != 0},
                                         given);
  };
  must(accepted(c::call(kName, engines.pairs.back()->one.get(), &error, differentiate_unfused), error),
       "what attention_backward takes, the written-out one takes");
  truth->check(gradients);
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  AttentionCall call(bytes);
  Gradients gradients(bytes, call);
  call.narrow(bytes);
  gradients.for_each_of_any_type([&](auto& tensor) { tensor.narrow(bytes); });
  check(call, gradients);
}

}  // namespace headlight::fuzz::attention_backward_fuzz
