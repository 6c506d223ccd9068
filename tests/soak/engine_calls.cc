#include "digests/digest.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/attention_stream.h"
#include "headlight/gemm.h"
#include "headlight/layers.h"
#include "soak/call.h"
#include "support/attention_case.h"
#include "support/random.h"

namespace headlight::soak {
namespace {

using test::Digest;
using test::Random;

class AttentionCall : public Call {
 public:
  explicit AttentionCall(std::uint64_t seed) : case_(test::random_attention_case(seed, 300)), inputs_(case_) {}
  std::uint64_t run(Engine& engine) const override {
    Tensor<float, 4> out({case_.batch, case_.query_length, case_.query_heads, case_.value_dim});
    attention(engine, inputs_.query, inputs_.key, inputs_.value, out, inputs_.options);
    Digest digest;
    digest.add(out);
    return digest.value();
  }

 private:
  test::AttentionCase case_;
  test::AttentionInputs inputs_;
};

// What the following share: operands of one shape.
class Operands : public Call {
 protected:
  static constexpr std::int64_t kHeads = 3, kHeadDim = 32;
  using Shape = View<float, 4>::Shape;

  Operands(std::uint64_t seed, std::int64_t rows, std::int64_t keys)
      : random_(seed),
        query_(random_.normal_tensor<4>({2, rows, kHeads, kHeadDim})),
        key_(random_.normal_tensor<4>({2, keys, kHeads, kHeadDim})),
        value_(random_.normal_tensor<4>({2, keys, kHeads, kHeadDim})) {}

  Random random_;
  Tensor<float, 4> query_, key_, value_;
};

class BackwardCall : public Operands {
 public:
  BackwardCall() : Operands(1, 130, 200), out_gradient_(random_.normal_tensor<4>(query_.shape())) {}
  std::uint64_t run(Engine& engine) const override {
    Tensor<float, 4> out(query_.shape()), dq(query_.shape()), dk(key_.shape()), dv(value_.shape());
    Tensor<float, 3> log_sum_exp({2, kHeads, 130});
    AttentionOptions options;
    options.causal = Causal::bottom_right;
    options.log_sum_exp = log_sum_exp;
    attention(engine, query_, key_, value_, out, options);
    attention_backward(engine, query_, key_, value_, out, log_sum_exp, out_gradient_, {dq, dk, dv},
                       {.causal = Causal::bottom_right});
    Digest digest;
    for (const auto* gradient : {&dq, &dk, &dv}) digest.add(*gradient);
    return digest.value();
  }

 private:
  Tensor<float, 4> out_gradient_;
};

class StreamCall : public Operands {
 public:
  explicit StreamCall(std::int64_t piece) : Operands(2, 20, 1200), piece_(piece) {}
  std::uint64_t run(Engine& engine) const override {
    AttentionStream stream(engine, query_, kHeads, kHeadDim);
    for (std::int64_t from = 0; from < 1200; from += piece_) {
      const auto part = [&](const Tensor<float, 4>& all) {
        return View<const float, 4>(all.data() + from * kHeads * kHeadDim, {2, piece_, kHeads, kHeadDim},
                                    all.view().strides);
      };
      stream.append(part(key_), part(value_));
    }
    Tensor<float, 4> out(query_.shape());
    stream.finish(out);
    Digest digest;
    digest.add(out);
    return digest.value();
  }

 private:
  std::int64_t piece_;
};

template <class Number>
class TypedCall : public Operands {
 public:
  TypedCall() : Operands(3, 5, 900), cache_(key_.shape()) {
    for (std::int64_t n = 0; n < key_.size(); ++n) cache_.data()[n] = Number(key_.data()[n]);
  }
  std::uint64_t run(Engine& engine) const override {
    Tensor<float, 4> out(query_.shape());
    attention(engine, query_, cache_, cache_, out);
    Digest digest;
    digest.add(out);
    return digest.value();
  }

 private:
  Tensor<Number, 4> cache_;
};

// A packed in the call, or one B for all callers.
class ProductCall : public Call {
 public:
  ProductCall(std::int64_t rows, bool packed, NumberType type) : rows_(rows), packed_(packed), type_(type) {}
  std::uint64_t run(Engine& engine) const override {
    Tensor<float, 2> c({rows_, 160});
    const View<const float, 2> a(a_.data(), {rows_, 200});
    if (packed_) {
      gemm(engine, a, PackedMatrix(engine, b_, Transpose::no, type_), c, {.activation = Activation::gelu});
    } else {
      gemm(engine, a, b_, c);
    }
    Digest digest;
    digest.add(c);
    return digest.value();
  }

 private:
  std::int64_t rows_;
  bool packed_;
  NumberType type_;
  Random random_{4};
  Tensor<float, 2> a_ = random_.normal_tensor<2>({300, 200}), b_ = random_.normal_tensor<2>({200, 160});
};

constexpr TransformerLayerOptions kLayer = {.width = 48, .heads = 4, .feed_forward_width = 96};

// One layer for all callers, who find its weights unpacked at first.
class LayerCall : public Call {
 public:
  explicit LayerCall(NumberType precision) : layer_(kLayer) {
    layer_.initialize(5);
    layer_.set_precision(precision);
  }
  std::uint64_t run(Engine& engine) const override {
    Tensor<float, 3> y(x_.shape());
    layer_.forward(engine, x_, y, {.causal = Causal::top_left});
    Digest digest;
    digest.add(y);
    return digest.value();
  }
  bool may_follow_fork() const override { return false; }

 private:
  Random random_{5};
  Tensor<float, 3> x_ = random_.normal_tensor<3>({3, 70, 48});
  TransformerEncoderLayer layer_;
};

// Forward and back through a layer of the caller's own, dropout included.
class TrainingCall : public Call {
 public:
  std::uint64_t run(Engine& engine) const override {
    // Not on the stack, of which tests look how much the calls take.
    const auto made = std::make_unique<TransformerEncoderLayer>(kLayer);
    const auto state = std::make_unique<SavedState>();
    TransformerEncoderLayer& layer = *made;
    SavedState& saved = *state;
    layer.initialize(6);
    layer.set_training(true);
    Tensor<float, 3> y(x_.shape()), x_gradient(x_.shape());
    layer.forward(engine, x_, y, saved, {.seed = 6, .step = 7});
    layer.backward(engine, x_, saved, x_, x_gradient);
    Digest digest;
    digest.add(x_gradient);
    for (const Parameter& parameter : layer.parameters()) digest.add(std::span<const float>(parameter.gradient));
    return digest.value();
  }
  bool may_follow_fork() const override { return false; }

 private:
  Random random_{6};
  Tensor<float, 3> x_ = random_.normal_tensor<3>({2, 50, 48});
};

}  // namespace

void add_engine_calls(Calls& calls) {
  constexpr std::uint64_t kCases = 60;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) calls.push_back(std::make_unique<AttentionCall>(seed));
  calls.push_back(std::make_unique<BackwardCall>());
  for (const std::int64_t piece : {1, 100, 600}) calls.push_back(std::make_unique<StreamCall>(piece));
  calls.push_back(std::make_unique<TypedCall<BFloat16>>());
  calls.push_back(std::make_unique<TypedCall<Float16>>());
  for (const std::int64_t rows : {1, 30, 300}) {
    calls.push_back(std::make_unique<ProductCall>(rows, false, NumberType::float32));
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8})
      calls.push_back(std::make_unique<ProductCall>(rows, true, type));
  }
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8})
    calls.push_back(std::make_unique<LayerCall>(type));
  calls.push_back(std::make_unique<TrainingCall>());
}

}  // namespace headlight::soak
