// The same through the C interface: every failure is a status and a message.
#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "digests/digest.h"
#include "faults/model_files.h"
#include "faults/scene.h"
#include "headlight/headlight.h"
#include "headlight/models/headlight_models.h"
#include "support/random.h"

namespace headlight::faults::c_scenes {
namespace {

using test::Digest;

void must(headlight_status status, const headlight_error& error) {
  if (status == HEADLIGHT_OK) return;
  throw CFailure(status == error.status ? status : HEADLIGHT_INTERNAL_ERROR, error.message);
}

template <class Object, void (*destroy)(Object*)>
struct Destroy {
  void operator()(Object* object) const noexcept { destroy(object); }
};
template <class Object, void (*destroy)(Object*)>
using Handle = std::unique_ptr<Object, Destroy<Object, destroy>>;
using EngineHandle = Handle<headlight_engine, headlight_engine_destroy>;
using LayerHandle = Handle<headlight_layer, headlight_layer_destroy>;

EngineHandle made_engine(const headlight_executor* executor = nullptr) {
  headlight_error error;
  headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
  options.threads = executor == nullptr ? 3 : 0;
  options.executor = executor;
  headlight_engine* engine = nullptr;
  must(headlight_engine_create(&options, &engine, &error), error);
  return EngineHandle(engine);
}

// Numbers with a shape, as the caller of C holds them.
template <std::size_t kRank>
struct Numbers {
  Numbers(std::array<std::int64_t, kRank> shape_, std::uint64_t seed) : shape(shape_) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    test::Random random(seed);
    for (std::int64_t n = 0; n < count; ++n) values.push_back(random.normal());
  }
  headlight_tensor tensor() { return {values.data(), HEADLIGHT_FLOAT32, kRank, shape.data(), nullptr}; }

  std::array<std::int64_t, kRank> shape;
  std::vector<float> values;
};

class EngineScene : public Scene {
 public:
  void call() override { engine_ = made_engine(); }
  std::uint64_t result() const override { return static_cast<std::uint64_t>(headlight_engine_threads(engine_.get())); }

 private:
  EngineHandle engine_;
};

class OperationsScene : public Scene {
 public:
  void call() override {
    headlight_error error;
    const headlight_tensor q = query_.tensor(), k = key_.tensor(), out = out_.tensor();
    must(headlight_attention(engine_.get(), &q, &k, &k, &out, nullptr, &error), error);
    const headlight_tensor a = a_.tensor(), b = b_.tensor(), c = c_.tensor();
    headlight_packed_matrix* packed = nullptr;
    must(headlight_packed_matrix_create(engine_.get(), &b, HEADLIGHT_INT8, &packed, &error), error);
    const Handle<headlight_packed_matrix, headlight_packed_matrix_destroy> owner(packed);
    must(headlight_gemm_packed(engine_.get(), &a, packed, &c, nullptr, &error), error);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(std::span<const float>(out_.values));
    digest.add(std::span<const float>(c_.values));
    return digest.value();
  }

 private:
  Numbers<4> query_{{1, 20, 2, 16}, 1}, key_{{1, 300, 2, 16}, 2}, out_{{1, 20, 2, 16}, 3};
  Numbers<2> a_{{50, 40}, 4}, b_{{40, 30}, 5}, c_{{50, 30}, 6};
  EngineHandle engine_ = made_engine();
};

// A network made, trained for one step, and read.
class TrainingScene : public Scene {
 public:
  void call() override {
    headlight_error error;
    headlight_encoder_network_options options = HEADLIGHT_OPTIONS(headlight_encoder_network_options);
    options.vocabulary = 16, options.max_positions = 8, options.width = 16, options.heads = 2, options.layers = 1;
    headlight_layer* network = nullptr;
    must(headlight_encoder_network_create(&options, &network, &error), error);
    const LayerHandle owner(network);
    must(headlight_layer_initialize(network, 1, &error), error);
    must(headlight_layer_set_training(network, 1, &error), error);
    headlight_optimizer* optimizer = nullptr;
    must(headlight_adamw_create(&network, 1, nullptr, &optimizer, &error), error);
    const Handle<headlight_optimizer, headlight_optimizer_destroy> owner_of_optimizer(optimizer);
    headlight_encoder_network_input input = HEADLIGHT_OPTIONS(headlight_encoder_network_input);
    input.ids = {kIds, 4}, input.positions = {kPlaces, 4}, input.offsets = {kEnds, 2};
    const headlight_tensor hidden = hidden_.tensor();
    must(headlight_encoder_network_forward(network, engine_.get(), &input, &hidden, nullptr, 0, &error), error);
    must(headlight_optimizer_step(optimizer, engine_.get(), nullptr, nullptr, &error), error);
    const headlight_tensor weights = weights_.tensor();
    must(headlight_layer_get_parameter(network, "layers.0.linear1.weight", &weights, &error), error);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(std::span<const float>(hidden_.values));
    digest.add(std::span<const float>(weights_.values));
    return digest.value();
  }

 private:
  static constexpr std::int64_t kIds[] = {3, 1, 4, 1}, kPlaces[] = {0, 1, 2, 3}, kEnds[] = {0, 4};
  Numbers<2> hidden_{{4, 16}, 7}, weights_{{64, 16}, 8};
  EngineHandle engine_ = made_engine();
};

// Weights of one layer for another, whose weights are all replaced or none.
class LoadScene : public Scene {
 public:
  LoadScene() {
    headlight_error error;
    for (std::int64_t index = 0; index < headlight_layer_parameter_count(other_.get()); ++index) {
      const char* name = nullptr;
      int32_t rank = 0;
      const std::int64_t* shape = nullptr;
      must(headlight_layer_parameter(other_.get(), index, &name, &rank, &shape, &error), error);
      std::size_t count = 1;
      for (int32_t axis = 0; axis < rank; ++axis) count *= static_cast<std::size_t>(shape[axis]);
      values_.emplace_back(count);
      weights_.push_back({name, {values_.back().data(), HEADLIGHT_FLOAT32, rank, shape, nullptr}});
      must(headlight_layer_get_parameter(other_.get(), name, &weights_.back().values, &error), error);
    }
  }
  void call() override {
    headlight_error error;
    must(headlight_layer_load(layer_.get(), weights_.data(), weights_.size(), nullptr, &error), error);
  }
  std::uint64_t result() const override {
    Digest digest;
    headlight_error error;
    for (const headlight_weight& weight : weights_) {
      std::vector<float> held(values_[static_cast<std::size_t>(&weight - weights_.data())].size());
      headlight_tensor tensor = weight.values;
      tensor.data = held.data();
      must(headlight_layer_get_parameter(layer_.get(), weight.name, &tensor, &error), error);
      digest.add(std::span<const float>(held));
    }
    return digest.value();
  }
  std::uint64_t state() const override { return result(); }

 private:
  static LayerHandle made(std::uint64_t seed) {
    headlight_error error;
    headlight_transformer_layer_options options = HEADLIGHT_OPTIONS(headlight_transformer_layer_options);
    options.width = 24, options.heads = 3, options.feed_forward_width = 40;
    headlight_layer* layer = nullptr;
    must(headlight_transformer_encoder_layer_create(&options, &layer, &error), error);
    LayerHandle owner(layer);
    must(headlight_layer_initialize(layer, seed, &error), error);
    return owner;
  }

  LayerHandle other_ = made(1), layer_ = made(2);
  std::vector<std::vector<float>> values_;
  std::vector<headlight_weight> weights_;
};

// Threads of the caller's, which begin before any fault and ask the system for nothing; one call at a time.
class CallersPool {
 public:
  CallersPool() {
    for (std::thread& worker : workers_) worker = std::thread([this] { serve(); });
  }
  ~CallersPool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    arrived_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  CallersPool(const CallersPool&) = delete;
  CallersPool& operator=(const CallersPool&) = delete;

  headlight_executor executor() {
    headlight_executor executor = HEADLIGHT_OPTIONS(headlight_executor);
    executor.context = this;
    executor.worker_count = [](void*) { return kWorkers + 1; };
    executor.inside_worker = [](void*) { return inside_; };
    executor.run = [](void* context, int count, void (*task)(void*, int), void* argument) -> void* {
      static_cast<CallersPool*>(context)->start(count, task, argument);
      return context;
    };
    executor.wait = [](void* context, void*) { static_cast<CallersPool*>(context)->finish(); };
    return executor;
  }

 private:
  static constexpr int kWorkers = 2;

  void start(int count, void (*task)(void*, int), void* argument) {
    {
      const std::lock_guard lock(mutex_);
      task_ = task, argument_ = argument, next_ = 0, count_ = left_ = count;
    }
    arrived_.notify_all();
  }
  void finish() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return left_ == 0; });
  }
  void serve() {
    inside_ = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_.wait(lock, [this] { return stopping_ || next_ < count_; });
      if (stopping_) return;
      const int index = next_++;
      lock.unlock();
      task_(argument_, index);
      lock.lock();
      if (--left_ == 0) ended_.notify_all();
    }
  }

  inline static thread_local bool inside_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_, ended_;
  void (*task_)(void*, int) = nullptr;
  void* argument_ = nullptr;
  int next_ = 0, count_ = 0, left_ = 0;
  bool stopping_ = false;
  std::array<std::thread, kWorkers> workers_;
};

// An engine over these threads that is told of its calls ahead, and then makes one.
class ReservedScene : public Scene {
 public:
  void call() override {
    headlight_error error;
    const headlight_executor executor = pool_.executor();
    engine_ = made_engine(&executor);
    headlight_attention_shape attention = HEADLIGHT_OPTIONS(headlight_attention_shape);
    attention.query_length = 20, attention.key_length = 300, attention.query_heads = attention.key_value_heads = 2;
    attention.head_dim = attention.value_dim = 16;
    must(headlight_attention_workspace_bytes(engine_.get(), &attention, &bytes_, &error), error);
    must(headlight_attention_reserve(engine_.get(), &attention, &error), error);
    must(headlight_attention_backward_reserve(engine_.get(), &attention, &error), error);
    headlight_gemm_shape product = HEADLIGHT_OPTIONS(headlight_gemm_shape);
    product.m = 50, product.n = 30, product.k = 40;
    must(headlight_gemm_reserve(engine_.get(), &product, &error), error);
    const headlight_tensor q = query_.tensor(), k = key_.tensor(), out = out_.tensor();
    must(headlight_attention(engine_.get(), &q, &k, &k, &out, nullptr, &error), error);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(std::span<const float>(out_.values));
    digest.add(static_cast<std::uint64_t>(bytes_));
    digest.add(static_cast<std::uint64_t>(headlight_engine_scratch_bytes(engine_.get())));
    return digest.value();
  }

 private:
  CallersPool pool_;
  Numbers<4> query_{{1, 20, 2, 16}, 1}, key_{{1, 300, 2, 16}, 2}, out_{{1, 20, 2, 16}, 3};
  std::size_t bytes_ = 0;
  EngineHandle engine_;
};

class ModelScene : public Scene {
 public:
  explicit ModelScene(const std::string& folder) : target_(folder + "/model") {}
  void call() override {
    headlight_error error;
    headlight_encoder* encoder = nullptr;
    must(headlight_encoder_load(tiny_model().c_str(), &encoder, &error), error);
    const Handle<headlight_encoder, headlight_encoder_destroy> owner(encoder);
    const char* const texts[] = {"a b c", "d"};
    const headlight_tensor vectors = vectors_.tensor();
    must(headlight_encoder_embed_texts(encoder, engine_.get(), texts, nullptr, 2, &vectors, &error), error);
    headlight_hidden_states* states = nullptr;
    must(headlight_encoder_encode_texts(encoder, engine_.get(), texts, nullptr, 2, &states, &error), error);
    headlight_hidden_states_destroy(states);
    must(headlight_encoder_save(encoder, target_.c_str(), &error), error);
  }
  std::uint64_t result() const override {
    Digest digest;
    digest.add(std::span<const float>(vectors_.values));
    digest.add(digest_of_folder(target_));
    return digest.value();
  }

 private:
  std::string target_;
  Numbers<2> vectors_{{2, 24}, 9};
  EngineHandle engine_ = made_engine();
};

}  // namespace

std::span<const NamedScene> list() {
  static constexpr NamedScene kScenes[] = {
      {"C: an engine", make_scene<EngineScene>},
      {"C: attention and products", make_scene<OperationsScene>},
      {"C: a step of training", make_scene<TrainingScene>},
      {"C: a layer loaded", make_scene<LoadScene>},
      {"C: calls told ahead, over the caller's threads", make_scene<ReservedScene>},
      {"C: a model loaded, used and saved", make_scene<ModelScene>},
  };
  return kScenes;
}

}  // namespace headlight::faults::c_scenes
