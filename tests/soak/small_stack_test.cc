// Every operation does with 24 KiB of the stack, on the thread that calls it and on every worker: looked up on threads
// of painted stack.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "headlight/gemm.h"
#include "headlight/headlight.h"
#include "headlight/layers.h"
#include "soak/call.h"
#include "soak/harsh_calls.h"
#include "support/isas.h"
#include "support/painted_thread.h"
#include "support/random.h"
#include "support/sanitizer.h"

namespace headlight::soak::small_stack_test {

using test::PaintedThread;
using test::stack_of;

constexpr std::size_t kMost = std::size_t{24} << 10;

// A caller's own pool, in which every task has a thread of painted stack.
class PaintedPool {
 public:
  static constexpr int kWorkers = 3;

  Executor executor() {
    Executor executor;
    executor.context = this;
    executor.worker_count = [](void*) { return kWorkers; };
    executor.inside_worker = [](void*) { return inside_; };
    executor.run = [](void*, int count, void (*task)(void*, int), void* argument) -> void* {
      auto threads = std::make_unique<Threads>();
      for (int index = 0; index < count; ++index) {
        threads->emplace_back([=] {
          inside_ = true;
          task(argument, index);
        });
      }
      return threads.release();
    };
    executor.wait = [](void* context, void* ticket) {
      const std::unique_ptr<Threads> threads(static_cast<Threads*>(ticket));
      auto& most = static_cast<PaintedPool*>(context)->most_;
      for (PaintedThread& thread : *threads) most = std::max(most, thread.join());
    };
    return executor;
  }
  // Of the tasks since it was asked last.
  std::size_t most_of_tasks() { return std::exchange(most_, 0); }

 private:
  using Threads = std::deque<PaintedThread>;
  inline static thread_local bool inside_ = false;
  std::size_t most_ = 0;
};

TEST(PaintedThread, SeesWhatACallTakes) {
  const auto take = [] {
    char memory[5000];
    memory[0] = 1;
    asm volatile("" : : "r"(memory) : "memory");
  };
  EXPECT_GE(stack_of(take), 5000u);
  EXPECT_LE(stack_of(take), 6000u);
}

class SmallStack : public test::EachIsaAndFeature {
 protected:
  void SetUp() override {
    if (test::under_sanitizer()) GTEST_SKIP() << "sanitizers lay out stacks of their own";
  }

  // `call` on a thread of painted stack, by an engine of one thread and by one whose workers have such stacks.
  template <class Call>
  void expect_small(const std::string& name, const Call& call) {
    EXPECT_LE(stack_of([&] { call(engine_); }), kMost) << name;
    EXPECT_LE(stack_of([&] { call(shared_); }), kMost) << name << ", with workers";
    EXPECT_LE(pool_.most_of_tasks(), kMost) << name << ", of a worker";
  }

 private:
  static EngineOptions borrowing(const Executor& executor) {
    EngineOptions made = options(0);
    made.executor = &executor;
    return made;
  }

  PaintedPool pool_;
  Executor executor_ = pool_.executor();
  Engine engine_{options()}, shared_{borrowing(executor_)};
};

TEST_P(SmallStack, IsEnoughForEveryOperation) {
  for (const HarshCalls& calls : kHarshCalls) {
    SCOPED_TRACE(calls.name);
    calls.visit([this](const auto& name, const auto& call) { expect_small(name, call); });
  }
}

// Longer ones, which are cut and packed in other ways; and models.
TEST_P(SmallStack, IsEnoughForCallsOfSize) {
  Calls calls;
  add_engine_calls(calls);
#ifdef HEADLIGHT_SOAK_MODELS
  add_model_calls(calls);
#endif
  for (std::size_t n = 0; n < calls.size(); ++n) {
    const Call& call = *calls[n];
    expect_small("call " + std::to_string(n) + " (" + typeid(call).name() + ")",
                 [&](Engine& engine) { static_cast<void>(call.run(engine)); });
  }
}

TEST_P(SmallStack, IsEnoughForEveryProduct) {
  test::Random random(1);
  for (const NumberType type : kNumberTypes) {
    for (const std::int64_t rows : {1, 31, 600}) {
      for (const std::int64_t columns : {31, 33, 200}) {
        for (const std::int64_t depth : {32, 65, 900}) {
          const auto a = random.normal_tensor<2>({rows, depth}), a_turned = random.normal_tensor<2>({depth, rows});
          const auto b = random.normal_tensor<2>({depth, columns}),
                     b_turned = random.normal_tensor<2>({columns, depth});
          Tensor<float, 2> c({rows, columns});
          const auto name = [&](const char* kind) {
            return std::string(headlight::name(type)) + kind + std::to_string(rows) + " x " + std::to_string(columns) +
                   " x " + std::to_string(depth);
          };
          for (const bool turns : {false, true}) {
            const View<const float, 2> left = turns ? a_turned : a;
            const Transpose transpose = turns ? Transpose::yes : Transpose::no;
            const GemmOptions options{.transpose_a = transpose, .beta = 1.0f, .activation = Activation::gelu};
            expect_small(name(", packed, "), [&](Engine& engine) {
              gemm(engine, left, PackedMatrix(engine, b, Transpose::no, type), c, options);
            });
            if (type != NumberType::float32) continue;
            GemmOptions of_turned = options;
            of_turned.transpose_b = Transpose::yes;
            expect_small(name(" "), [&](Engine& engine) { gemm(engine, left, b, c, options); });
            expect_small(name(", B turned over, "),
                         [&](Engine& engine) { gemm(engine, left, b_turned, c, of_turned); });
          }
        }
      }
    }
  }
}

// The deepest layers: their backward pass may make the forward pass again.
TEST_P(SmallStack, IsEnoughForTraining) {
  test::Random random(1);
  for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input}) {
    for (const std::int64_t rows : {13, 70}) {
      TransformerDecoderLayer decoder({.width = 48, .heads = 3, .feed_forward_width = 96, .dropout = 0.1f});
      decoder.initialize(1);
      decoder.set_training(true);
      const auto x = random.normal_tensor<3>({2, rows, 48});
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), memory_gradient(x.shape());
      SavedState saved(checkpoint);
      const std::string name = " of " + std::to_string(rows) + " rows";
      expect_small("forward" + name,
                   [&](Engine& engine) { decoder.forward(engine, x, x, y, saved, {.seed = 1, .step = 1}); });
      expect_small("backward" + name,
                   [&](Engine& engine) { decoder.backward(engine, x, x, saved, y, x_gradient, memory_gradient); });

      Encoder encoder({.vocabulary = 9, .max_positions = rows, .width = 48, .heads = 3, .layers = 2});
      encoder.initialize(1);
      encoder.set_training(true);
      const std::vector<std::int64_t> ids(static_cast<std::size_t>(rows), 3), offsets{0, rows};
      const EncoderInput input{.ids = ids, .positions = ids, .offsets = offsets};
      Tensor<float, 2> hidden({rows, 48});
      expect_small("an encoder's forward" + name,
                   [&](Engine& engine) { encoder.forward(engine, input, hidden, saved, {.seed = 1, .step = 1}); });
      expect_small("an encoder's backward" + name,
                   [&](Engine& engine) { encoder.backward(engine, input, saved, hidden); });
    }
  }
}

template <int Rank>
headlight_tensor in_c(const Tensor<float, Rank>& tensor) {
  return {const_cast<float*>(tensor.data()), HEADLIGHT_FLOAT32, Rank, tensor.shape().data(), nullptr};
}

class SmallStackInC : public SmallStack {
 protected:
  void SetUp() override {
    SmallStack::SetUp();
    if (IsSkipped()) return;
    headlight_engine_options made = HEADLIGHT_OPTIONS(headlight_engine_options);
    made.isa = headlight_isa_from_name(std::string(headlight::name(GetParam().isa)).c_str());
    ASSERT_EQ(headlight_engine_create(&made, &c_engine_, &error_), HEADLIGHT_OK) << error_.message;
  }
  void TearDown() override { headlight_engine_destroy(c_engine_); }

  template <class Call>
  void expect_small(const std::string& name, const Call& call) {
    headlight_status status = HEADLIGHT_INTERNAL_ERROR;
    EXPECT_LE(stack_of([&] { status = call(); }), kMost) << name;
    EXPECT_EQ(status, HEADLIGHT_OK) << name << ": " << error_.message;
  }

  headlight_engine* c_engine_ = nullptr;
  headlight_error error_;
};

TEST_P(SmallStackInC, IsEnoughForOperations) {
  test::Random random(1);
  for (const std::int64_t rows : {4, 31, 200}) {
    const auto matrix = random.normal_tensor<2>({rows, rows});
    const auto query = random.normal_tensor<4>({1, rows, 2, 24});
    Tensor<float, 2> product(matrix.shape());
    Tensor<float, 4> out(query.shape());
    const headlight_tensor a = in_c(matrix), c = in_c(product), q = in_c(query), o = in_c(out);
    const std::string of_rows = " of " + std::to_string(rows) + " rows";
    expect_small("gemm" + of_rows, [&] { return headlight_gemm(c_engine_, &a, &a, &c, nullptr, &error_); });
    expect_small("softmax" + of_rows, [&] { return headlight_softmax(c_engine_, &a, &c, &error_); });
    expect_small("attention" + of_rows,
                 [&] { return headlight_attention(c_engine_, &q, &q, &q, &o, nullptr, &error_); });
    expect_small("a refusal's message" + of_rows, [&] {
      return headlight_attention(c_engine_, &q, &a, &q, &o, nullptr, &error_) == HEADLIGHT_INVALID_ARGUMENT
                 ? HEADLIGHT_OK
                 : HEADLIGHT_INTERNAL_ERROR;
    });
  }
}

// The deepest calls: through the wall that no exception passes, a layer and its training, down to a product.
TEST_P(SmallStackInC, IsEnoughForTraining) {
  constexpr std::int64_t kWidth = 48, kRows = 70;
  headlight_transformer_layer_options options = HEADLIGHT_OPTIONS(headlight_transformer_layer_options);
  options.width = kWidth;
  options.heads = 3;
  headlight_layer* decoder = nullptr;
  ASSERT_EQ(headlight_transformer_decoder_layer_create(&options, &decoder, &error_), HEADLIGHT_OK) << error_.message;
  ASSERT_EQ(headlight_layer_initialize(decoder, 1, &error_), HEADLIGHT_OK);
  ASSERT_EQ(headlight_layer_set_training(decoder, 1, &error_), HEADLIGHT_OK);
  headlight_saved_state_options again = HEADLIGHT_OPTIONS(headlight_saved_state_options);
  again.checkpoint = HEADLIGHT_CHECKPOINT_LAYER_INPUT;
  headlight_saved_state* saved = nullptr;
  ASSERT_EQ(headlight_saved_state_create(&again, &saved, &error_), HEADLIGHT_OK) << error_.message;
  test::Random random(1);
  const auto rows = random.normal_tensor<3>({2, kRows, kWidth});
  Tensor<float, 3> out(rows.shape()), gradient(rows.shape()), gradient_of_memory(rows.shape());
  const headlight_tensor x = in_c(rows), y = in_c(out), to_x = in_c(gradient), to_memory = in_c(gradient_of_memory);
  headlight_training_step step = HEADLIGHT_OPTIONS(headlight_training_step);
  step.seed = step.step = 1;
  expect_small("a decoder's forward", [&] {
    return headlight_transformer_decoder_layer_training_forward(decoder, c_engine_, &x, &x, &y, saved, &step, nullptr,
                                                                nullptr, &error_);
  });
  expect_small("a decoder's backward", [&] {
    return headlight_transformer_decoder_layer_backward(decoder, c_engine_, &x, &x, saved, &y, &to_x, &to_memory,
                                                        &error_);
  });
  headlight_saved_state_destroy(saved);
  headlight_layer_destroy(decoder);
}

HEADLIGHT_ON_EVERY_FEATURE(SmallStack);
HEADLIGHT_ON_EVERY_FEATURE(SmallStackInC);

}  // namespace headlight::soak::small_stack_test
