// The same through the C interface: every failure is a status and a message.
#include <array>
#include <memory>

#include "digests/digest.h"
#include "faults/model_files.h"
#include "faults/scene.h"
#include "headlight/headlight.h"
#include "headlight/models/headlight_models.h"
#include "support/random.h"

namespace headlight::faults {
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

EngineHandle made_engine() {
  headlight_error error;
  headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
  options.threads = 3;
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

std::span<const NamedScene> c_scenes() {
  static constexpr NamedScene kScenes[] = {
      {"C: an engine", make_scene<EngineScene>},
      {"C: attention and products", make_scene<OperationsScene>},
      {"C: a step of training", make_scene<TrainingScene>},
      {"C: a model loaded, used and saved", make_scene<ModelScene>},
  };
  return kScenes;
}

}  // namespace headlight::faults
