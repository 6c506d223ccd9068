// Operations over memory of 16 bits a number, whose rows lie widened in scratch memory of the engine.
#include <span>
#include <vector>

#include "digests/digest.h"
#include "faults/scene.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/head_rows.h"
#include "headlight/normalization.h"
#include "support/random.h"

namespace headlight::faults::typed_scenes {
namespace {

using test::Digest;
using test::Random;

template <StoredNumber T, int kRank>
Tensor<T, kRank> drawn(Random& random, const typename View<float, kRank>::Shape& shape) {
  Tensor<T, kRank> tensor(shape);
  for (T& element : tensor) element = T(random.normal());
  return tensor;
}

template <StoredNumber T, int kRank>
void add(Digest& digest, const Tensor<T, kRank>& tensor) {
  for (const T element : tensor) digest.add(static_cast<float>(element));
}

// Rows that several threads share, y of another type than x.
class WithRows : public Scene {
 protected:
  static constexpr std::int64_t kRows = 300, kColumns = 768;

  Random random_{4};
  Tensor<Float16, 2> x_ = drawn<Float16, 2>(random_, {kRows, kColumns});
  Tensor<BFloat16, 2> y_ = drawn<BFloat16, 2>(random_, {kRows, kColumns});
  Engine engine_{EngineOptions{.threads = 3}};
};

class RowsScene : public WithRows {
 public:
  void call() override { softmax(engine_, x_, y_); }
  std::uint64_t result() const override {
    Digest digest;
    add(digest, y_);
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }
};

// Sums over rows are float32's, and are added to what is there.
class RowGradientsScene : public WithRows {
 public:
  void call() override {
    layer_norm_backward(engine_, x_, y_, {.x = x_gradient_, .weight = weight_gradient_, .bias = bias_gradient_});
  }
  std::uint64_t result() const override {
    Digest digest;
    add(digest, x_gradient_);
    digest.add(std::span<const float>(weight_gradient_));
    digest.add(std::span<const float>(bias_gradient_));
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  Tensor<Float16, 2> x_gradient_ = drawn<Float16, 2>(random_, {kRows, kColumns});
  std::vector<float> weight_gradient_ = std::vector<float>(kColumns, 1.0f);
  std::vector<float> bias_gradient_ = std::vector<float>(kColumns, 2.0f);
};

// Beside buffers it takes memory for a weight of its own and for the gradient that is turned back.
class HeadRowsScene : public WithRows {
 public:
  void call() override {
    const auto heads = [](auto& rows) {
      return View<std::remove_pointer_t<decltype(rows.data())>, 3>(rows.data(), {kRows, 12, 64});
    };
    head_rows_backward(engine_, heads(x_), heads(y_), {.x = heads(x_gradient_), .weight = weight_gradient_},
                       {.norm = NormKind::rms, .weight = weight_, .one_plus_weight = true, .rotation = {angles_}});
  }
  std::uint64_t result() const override {
    Digest digest;
    add(digest, x_gradient_);
    digest.add(std::span<const float>(weight_gradient_));
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  Tensor<Float16, 2> x_gradient_ = drawn<Float16, 2>(random_, {kRows, kColumns});
  Tensor<float, 2> angles_ = drawn<float, 2>(random_, {kRows, 64});
  std::vector<float> weight_ = std::vector<float>(64, 0.5f), weight_gradient_ = std::vector<float>(64, 1.0f);
};

// The gradient of query is of 16 bits, so that its sums are scratch memory, too; `Operand` is what decides which
// kernels compute.
template <StoredNumber Operand>
class BackwardScene : public Scene {
 public:
  BackwardScene() {
    attention(engine_, query_, key_, value_, out_, {.log_sum_exp = log_sum_exp_});
    engine_.release_scratch();
  }
  void call() override {
    attention_backward(engine_, query_, key_, value_, out_, log_sum_exp_, out_gradient_,
                       {.query = query_gradient_, .key = key_gradient_, .value = value_gradient_, .accumulate = true});
  }
  std::uint64_t result() const override {
    Digest digest;
    add(digest, query_gradient_);
    add(digest, key_gradient_);
    add(digest, value_gradient_);
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  static constexpr View<float, 4>::Shape kQueryShape = {2, 33, 4, 16}, kKeyShape = {2, 600, 4, 16};

  Random random_{5};
  Tensor<Operand, 4> query_ = drawn<Operand, 4>(random_, kQueryShape), key_ = drawn<Operand, 4>(random_, kKeyShape);
  Tensor<Operand, 4> value_ = drawn<Operand, 4>(random_, kKeyShape), out_{kQueryShape};
  Tensor<Operand, 4> out_gradient_ = drawn<Operand, 4>(random_, kQueryShape);
  Tensor<float, 3> log_sum_exp_{{2, 4, 33}};
  Tensor<BFloat16, 4> query_gradient_ = drawn<BFloat16, 4>(random_, kQueryShape);
  Tensor<Float16, 4> key_gradient_ = drawn<Float16, 4>(random_, kKeyShape);
  Tensor<float, 4> value_gradient_ = drawn<float, 4>(random_, kKeyShape);
  Engine engine_{EngineOptions{.threads = 3}};
};

}  // namespace

std::span<const NamedScene> list() {
  static constexpr NamedScene kScenes[] = {
      {"softmax, float16 to bfloat16", make_scene<RowsScene>},
      {"layer_norm_backward over 16 bits", make_scene<RowGradientsScene>},
      {"head_rows_backward over 16 bits", make_scene<HeadRowsScene>},
      {"attention_backward over float16", make_scene<BackwardScene<Float16>>},
      {"attention_backward over bfloat16", make_scene<BackwardScene<BFloat16>>},
  };
  return kScenes;
}

}  // namespace headlight::faults::typed_scenes
