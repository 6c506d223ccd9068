// Engines, attention and products.
#include <optional>

#include "baseline/attention_unfused.h"
#include "digests/digest.h"
#include "faults/scene.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/attention_stream.h"
#include "headlight/gemm.h"
#include "support/random.h"

namespace headlight::faults::operation_scenes {
namespace {

using test::Digest;
using test::Random;

constexpr std::int64_t kRows = 33, kKeys = 600, kHeads = 4, kHeadDim = 16;

class EngineScene : public Scene {
 public:
  void call() override { engine_.emplace(EngineOptions{.threads = 4}); }
  std::uint64_t result() const override { return static_cast<std::uint64_t>(engine_->threads()); }

 private:
  std::optional<Engine> engine_;
};

// What scenes of attention share: operands, outputs that hold something before, a cold engine.
class WithAttention : public Scene {
 public:
  std::uint64_t result() const override {
    Digest digest;
    digest.add(out_);
    digest.add(log_sum_exp_);
    for (const auto& gradient : gradients_) digest.add(gradient);
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 protected:
  static constexpr View<float, 4>::Shape kQueryShape = {2, kRows, kHeads, kHeadDim};
  static constexpr View<float, 4>::Shape kKeyShape = {2, kKeys, kHeads, kHeadDim};

  Random random_{1};
  Tensor<float, 4> query_ = random_.normal_tensor<4>(kQueryShape);
  Tensor<float, 4> key_ = random_.normal_tensor<4>(kKeyShape);
  Tensor<float, 4> value_ = random_.normal_tensor<4>(kKeyShape);
  Tensor<float, 4> bias_ = random_.normal_tensor<4>({1, 1, kRows, kKeys});
  Tensor<float, 4> out_ = random_.normal_tensor<4>(kQueryShape);
  Tensor<float, 3> log_sum_exp_ = random_.normal_tensor<3>({2, kHeads, kRows});
  std::vector<Tensor<float, 4>> gradients_{};
  Engine engine_{EngineOptions{.threads = 3}};
};

class AttentionScene : public WithAttention {
 public:
  void call() override {
    AttentionOptions options;
    options.causal = Causal::bottom_right;
    options.bias = bias_;
    options.log_sum_exp = log_sum_exp_;
    attention(engine_, query_, key_, value_, out_, options);
  }
};

class WrittenOutScene : public WithAttention {
 public:
  void call() override { baseline::attention_unfused(engine_, query_, key_, value_, out_); }
};

class BackwardScene : public WithAttention {
 public:
  BackwardScene() {
    attention(engine_, query_, key_, value_, out_, {.log_sum_exp = log_sum_exp_});
    engine_.release_scratch();
    for (const auto& shape : {kQueryShape, kKeyShape, kKeyShape}) gradients_.push_back(random_.normal_tensor<4>(shape));
  }
  void call() override {
    attention_backward(engine_, query_, key_, value_, out_, log_sum_exp_, out_gradient_,
                       {gradients_[0], gradients_[1], gradients_[2]});
  }

 private:
  Tensor<float, 4> out_gradient_ = random_.normal_tensor<4>(kQueryShape);
};

class TypedScene : public WithAttention {
 public:
  void call() override {
    for (std::int64_t n = 0; n < key_.size(); ++n) cache_.data()[n] = BFloat16(key_.data()[n]);
    attention(engine_, query_, cache_, cache_, out_);
  }

 private:
  Tensor<BFloat16, 4> cache_{kKeyShape};
};

// Keys in three pieces. An append that was refused is made again, and so is the end.
class StreamScene : public WithAttention {
 public:
  void call() override {
    if (!stream_) stream_.emplace(engine_, query_, kHeads, kHeadDim);
    while (stream_->keys() < kKeys) {
      const std::int64_t from = stream_->keys(), count = kKeys / 3;
      const auto piece = [from](const Tensor<float, 4>& all) {
        return View<const float, 4>(all.data() + from * kHeads * kHeadDim, {2, count, kHeads, kHeadDim},
                                    all.view().strides);
      };
      stream_->append(piece(key_), piece(value_));
    }
    stream_->finish(out_, log_sum_exp_);
    stream_.reset();
  }

 private:
  std::optional<AttentionStream> stream_;
};

// Many rows times a matrix that is packed in the call, or has been packed as `type`.
template <bool kPacked, NumberType kType>
class ProductScene : public Scene {
 public:
  void call() override {
    if (!kPacked) return gemm(engine_, a_, b_, c_, {.beta = 1.0f});
    const PackedMatrix packed(engine_, b_, Transpose::no, kType);
    gemm(engine_, a_, packed, c_, {.beta = 1.0f});
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(c_);
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  Random random_{2};
  Tensor<float, 2> a_ = random_.normal_tensor<2>({400, 96});
  Tensor<float, 2> b_ = random_.normal_tensor<2>({96, 80});
  Tensor<float, 2> c_ = random_.normal_tensor<2>({400, 80});
  Engine engine_{EngineOptions{.threads = 3}};
};

}  // namespace

std::span<const NamedScene> list() {
  static constexpr NamedScene kScenes[] = {
      {"an engine of four threads", make_scene<EngineScene>},
      {"attention", make_scene<AttentionScene>},
      {"attention_unfused", make_scene<WrittenOutScene>},
      {"attention_backward", make_scene<BackwardScene>},
      {"attention over bfloat16", make_scene<TypedScene>},
      {"AttentionStream", make_scene<StreamScene>},
      {"gemm", make_scene<ProductScene<false, NumberType::float32>>},
      {"PackedMatrix, float32", make_scene<ProductScene<true, NumberType::float32>>},
      {"PackedMatrix, bfloat16", make_scene<ProductScene<true, NumberType::bfloat16>>},
      {"PackedMatrix, int8", make_scene<ProductScene<true, NumberType::int8>>},
  };
  return kScenes;
}

}  // namespace headlight::faults::operation_scenes
