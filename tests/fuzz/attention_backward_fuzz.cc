// Attention's backward pass through the C interface, for any call of the forward pass that is taken. It refuses and
// writes nothing, or gives the same bits with one worker and with three; and the gradient of the values is right on
// every instruction set.
#include "c/attention_options.h"
#include "fuzz/attention_call.h"
#include "reference/attention.h"
#include "reference/attention_backward.h"

namespace headlight::fuzz {
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
    if (bytes.byte() == 255) list.struct_size = static_cast<std::size_t>(bytes.wild(12));
    out.draw(bytes, {call.batch, call.query_length, call.query_heads, call.value_dim}, Floats::Kind::input, call.random,
             call.numbers);
  }

  template <class Function>
  void for_each(Function f) {
    for (Floats* each : {&query, &key, &value, &bias, &sinks}) f(*each);
  }

  Floats out;  // of the sum by the outputs
  Floats query, key, value, bias, sinks;
  headlight_attention_gradients list = HEADLIGHT_OPTIONS(headlight_attention_gradients);
};

using Memory = std::vector<std::vector<float>>;

headlight_status differentiate(headlight_engine* engine, AttentionCall& call,
                               const headlight_attention_options& options, Gradients& gradients, const Memory& before,
                               headlight_error& error) {
  std::size_t n = 0;
  gradients.for_each([&](auto& tensor) { tensor.put_back(before[n++]); });
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
  static Tensor<double, 4> doubles(const Floats& tensor) {
    const auto given = c::view<const float, 4>("fuzz", "tensor", tensor.get());
    Tensor<double, 4> made(given.shape);
    for (std::int64_t b = 0; b < given.extent(0); ++b) {
      for (std::int64_t i = 0; i < given.extent(1); ++i) {
        for (std::int64_t h = 0; h < given.extent(2); ++h) {
          for (std::int64_t d = 0; d < given.extent(3); ++d) made(b, i, h, d) = static_cast<double>(given(b, i, h, d));
        }
      }
    }
    return made;
  }

  Tensor<double, 4> value_;
  Tensor<double, 4> size_;  // Σ_i p_ij z_ij |dO_i|
  double error_ = 0;
};

// Whether nothing is added to scores that may be large.
bool has_small_scores(const AttentionCall& call) {
  return call.numbers == Numbers::tame && call.options.slopes == nullptr && call.options.soft_cap == nullptr &&
         call.options.sinks == nullptr;
}

void check(AttentionCall& call, Gradients& gradients) {
  static const Engines engines;
  headlight_error error{};
  if (!call.log_sum_exp.is_given()) return;
  if (!accepted(headlight_attention(engines.pairs.front()->one.get(), call.query.get(), call.key.get(),
                                    call.value.get(), call.out.get(), &call.options, &error),
                error)) {
    return;
  }
  headlight_attention_options options = call.options;
  options.log_sum_exp = nullptr;
  options.probabilities = nullptr;
  options.scores = nullptr;
  Memory before;
  gradients.for_each([&](const auto& tensor) { before.push_back(tensor.copy()); });
  if (!accepted(differentiate(engines.pairs.front()->one.get(), call, options, gradients, before, error), error)) {
    std::size_t n = 0;
    gradients.for_each([&](const auto& tensor) { must(tensor.holds(before[n++]), "a refused call writes nothing"); });
    return;
  }
  const bool is_twinned = has_small_scores(call) && gradients.value.is_given() && gradients.list.accumulate == 0;
  const std::unique_ptr<Truth> truth = is_twinned ? std::make_unique<Truth>(call, options, gradients) : nullptr;
  for (const auto& pair : engines.pairs) {
    must(accepted(differentiate(pair->one.get(), call, options, gradients, before, error), error),
         "all instruction sets take the same calls");
    if (truth != nullptr) truth->check(gradients);
    Memory by_one;
    gradients.for_each([&](const auto& tensor) { by_one.push_back(tensor.copy()); });
    must(accepted(differentiate(pair->three.get(), call, options, gradients, before, error), error),
         "any number of workers takes the same calls");
    std::size_t n = 0;
    gradients.for_each([&](const auto& tensor) { must(tensor.holds(by_one[n++]), "workers change no bit"); });
  }
}

}  // namespace
}  // namespace headlight::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  headlight::fuzz::Bytes bytes(data, size);
  headlight::fuzz::AttentionCall call(bytes);
  headlight::fuzz::Gradients gradients(bytes, call);
  headlight::fuzz::check(call, gradients);
  return 0;
}
