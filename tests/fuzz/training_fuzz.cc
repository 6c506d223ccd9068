// Training through the C interface: layers of any kind enter and leave it, forward and backward passes and optimisers
// in any order, optimisers that outlive their layers, state read and written by tensors of any kind. Whatever is done
// is done or refused, and gradients have the same bits with one worker and with three.
#include "fuzz/c_layer.h"

namespace headlight::fuzz::training_fuzz {
namespace {

using Floats = CTensor<float>;

struct Engines {
  CEngine one{HEADLIGHT_ISA_SCALAR, 1};
  CEngine three{HEADLIGHT_ISA_SCALAR, 3};
};
const Engines& engines() {
  static const Engines all;
  return all;
}

class Training {
 public:
  explicit Training(Bytes& bytes) : bytes_(bytes), layer_(bytes) {
    if (layer_.get() == nullptr) return;
    parameters_ = layer_.parameters();
    headlight_error error{};
    must(accepted(headlight_layer_initialize(layer_.get(), 1, &error), error), "a layer is initialised");
    headlight_saved_state_options options = HEADLIGHT_OPTIONS(headlight_saved_state_options);
    options.checkpoint = static_cast<headlight_checkpoint>(bytes.wild(bytes.integer(0, 2)));
    options.k = bytes.wild(bytes.integer(0, 3));
    options.activations =
        static_cast<headlight_type>(bytes.wild(bytes.once_in(2) ? HEADLIGHT_BFLOAT16 : HEADLIGHT_FLOAT32));
    options.struct_size = struct_size(bytes, options.struct_size);
    static_cast<void>(accepted(headlight_saved_state_create(&options, &saved_, &error), error));
    step_.layer = static_cast<std::uint32_t>(bytes.integer(0, 2));
    step_.layers = static_cast<std::uint32_t>(bytes.integer(0, 4));
  }
  ~Training() {
    headlight_optimizer_destroy(optimizer_);
    headlight_saved_state_destroy(saved_);
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  void run() {
    for (int step = 0; layer_.get() != nullptr && step < 8; ++step) {
      headlight_error error{};
      switch (bytes_.integer(0, 6)) {
        case 0:
          static_cast<void>(
              accepted(headlight_layer_set_training(layer_.get(), bytes_.once_in(4) ? 0 : 1, &error), error));
          break;
        case 1:
        case 2:
          differentiate();
          break;
        case 3:
          make_optimizer();
          break;
        case 4:
          learn();
          break;
        case 5:
          exchange_state();
          break;
        default:
          if (bytes_.once_in(8)) layer_.destroy();
      }
    }
    // What is left of an optimiser whose layers may be gone.
    learn();
  }

 private:
  headlight_status forward(const LayerInputs& inputs, headlight_engine* engine, headlight_error& error) const {
    switch (layer_.kind()) {
      case LayerKind::feed_forward:
        return headlight_feed_forward_training_forward(layer_.get(), engine, inputs.x.get(), inputs.y.get(), saved_,
                                                       &step_, inputs.residual.get(), &error);
      case LayerKind::attention:
        return headlight_multi_head_attention_training_forward(layer_.get(), engine, inputs.x.get(), inputs.keys(),
                                                               inputs.keys(), inputs.y.get(), saved_, &step_,
                                                               &inputs.options, inputs.residual.get(), &error);
      case LayerKind::encoder_layer:
        return headlight_transformer_encoder_layer_training_forward(
            layer_.get(), engine, inputs.x.get(), inputs.y.get(), saved_, &step_, &inputs.options, &error);
      case LayerKind::decoder_layer:
        return headlight_transformer_decoder_layer_training_forward(layer_.get(), engine, inputs.x.get(),
                                                                    inputs.memory.get(), inputs.y.get(), saved_, &step_,
                                                                    &inputs.options, nullptr, &error);
      case LayerKind::network: {
        const headlight_encoder_network_input input = inputs.tokens();
        return headlight_encoder_network_training_forward(layer_.get(), engine, &input, inputs.y.get(), saved_, &step_,
                                                          &error);
      }
      default:
        return inputs.forward(layer_, engine, error);
    }
  }

  headlight_status backward(const LayerInputs& inputs, const Floats& x_gradient, const Floats& memory_gradient,
                            headlight_engine* engine, headlight_error& error) const {
    const headlight_tensor* const x = inputs.x.get();
    const headlight_tensor* const y_gradient = inputs.y.get();
    switch (layer_.kind()) {
      case LayerKind::linear:
        return headlight_linear_backward(layer_.get(), engine, x, y_gradient, x_gradient.get(), nullptr, &error);
      case LayerKind::layer_norm:
        return headlight_layer_norm_layer_backward(layer_.get(), engine, x, y_gradient, x_gradient.get(), nullptr,
                                                   &error);
      case LayerKind::feed_forward:
        return headlight_feed_forward_backward(layer_.get(), engine, x, saved_, y_gradient, x_gradient.get(), nullptr,
                                               &error);
      case LayerKind::attention: {
        headlight_multi_head_attention_gradients gradients =
            HEADLIGHT_OPTIONS(headlight_multi_head_attention_gradients);
        gradients.query = x_gradient.get();
        if (!inputs.shares) gradients.key = memory_gradient.get();
        return headlight_multi_head_attention_backward(layer_.get(), engine, x, inputs.keys(), inputs.keys(), saved_,
                                                       y_gradient, &gradients, &error);
      }
      case LayerKind::encoder_layer:
        return headlight_transformer_encoder_layer_backward(layer_.get(), engine, x, saved_, y_gradient,
                                                            x_gradient.get(), &error);
      case LayerKind::decoder_layer:
        return headlight_transformer_decoder_layer_backward(layer_.get(), engine, x, inputs.memory.get(), saved_,
                                                            y_gradient, x_gradient.get(), memory_gradient.get(),
                                                            &error);
      default: {
        const headlight_encoder_network_input input = inputs.tokens();
        return headlight_encoder_network_backward(layer_.get(), engine, &input, saved_, y_gradient, &error);
      }
    }
  }

  // All gradients of parameters, of which those that are not there are empty.
  [[nodiscard]] std::vector<std::vector<float>> gradients() const {
    std::vector<std::vector<float>> all;
    for (const CLayer::Named& parameter : parameters_) {
      std::int64_t count = 1;
      for (const std::int64_t extent : parameter.shape) count *= extent;
      std::vector<float> gradient(static_cast<std::size_t>(count));
      const headlight_tensor tensor{gradient.data(), HEADLIGHT_FLOAT32,
                                    static_cast<std::int32_t>(parameter.shape.size()), parameter.shape.data(), nullptr};
      headlight_error error{};
      if (!accepted(headlight_layer_get_gradient(layer_.get(), parameter.name.c_str(), &tensor, &error), error)) {
        gradient.clear();
      }
      all.push_back(std::move(gradient));
    }
    return all;
  }

  // Forward and backward, with one worker and with three.
  void differentiate() {
    LayerInputs inputs(bytes_, layer_);
    Floats x_gradient;
    Floats memory_gradient;
    if (inputs.x.get() != nullptr && !bytes_.once_in(4)) {
      const headlight_tensor& x = *inputs.x.get();
      if (x.shape == nullptr || x.rank < 2 || x.rank > 3) return;
      x_gradient.draw(bytes_, {x.shape, x.shape + x.rank}, Floats::Kind::output, inputs.random, Numbers::tame);
      memory_gradient.draw(bytes_, {inputs.batch, inputs.memory_length, layer_.width()}, Floats::Kind::output,
                           inputs.random, Numbers::tame);
    }
    const std::vector<float> y = inputs.y.copy();
    const std::vector<float> before = x_gradient.copy();
    std::vector<float> by_one;
    std::vector<std::vector<float>> of_parameters;
    for (headlight_engine* const engine : {engines().one.get(), engines().three.get()}) {
      const bool is_first = engine == engines().one.get();
      headlight_layer_zero_gradients(layer_.get());
      inputs.y.put_back(y);
      x_gradient.put_back(before);
      headlight_error error{};
      if (!accepted(forward(inputs, engine, error), error)) return;
      // The output serves as its own gradient.
      if (!accepted(backward(inputs, x_gradient, memory_gradient, engine, error), error)) return;
      if (is_first) {
        by_one = x_gradient.copy();
        of_parameters = gradients();
      } else {
        must(x_gradient.holds(by_one), "workers change no bit of an input's gradient");
        must(same_bits(of_parameters, gradients()), "workers change no bit of a parameter's gradient");
      }
    }
  }

  static bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    });
  }

  void make_optimizer() {
    headlight_optimizer_destroy(optimizer_);
    optimizer_ = nullptr;
    headlight_error error{};
    headlight_layer* layers[2] = {layer_.get(), bytes_.byte() == 255 ? layer_.get() : nullptr};
    const double rate = static_cast<double>(bytes_.integer(0, 4)) / 4;
    const std::size_t count = bytes_.byte() == 255 ? 2 : 1;
    if (bytes_.once_in(2)) {
      headlight_sgd_options options = HEADLIGHT_OPTIONS(headlight_sgd_options);
      options.momentum = &rate;
      static_cast<void>(accepted(headlight_sgd_create(layers, count, &options, &optimizer_, &error), error));
    } else {
      headlight_adamw_options options = HEADLIGHT_OPTIONS(headlight_adamw_options);
      options.beta1 = &rate;
      static_cast<void>(accepted(headlight_adamw_create(layers, count, &options, &optimizer_, &error), error));
    }
  }

  void learn() {
    headlight_error error{};
    headlight_step_report report = HEADLIGHT_OPTIONS(headlight_step_report);
    report.struct_size = struct_size(bytes_, report.struct_size);
    static_cast<void>(
        accepted(headlight_optimizer_step(optimizer_, engines().three.get(), nullptr, &report, &error), error));
    headlight_optimizer_zero_gradients(optimizer_);
    static_cast<void>(accepted(
        headlight_optimizer_set_steps(optimizer_, bytes_.wild(headlight_optimizer_steps(optimizer_)), &error), error));
  }

  void exchange_state() {
    headlight_error error{};
    const char* name = nullptr;
    std::int32_t rank = 0;
    const std::int64_t* shape = nullptr;
    if (!accepted(headlight_optimizer_state(optimizer_, bytes_.wild(bytes_.byte()), &name, &rank, &shape, &error),
                  error)) {
      return;
    }
    test::Random random(1);
    Floats values;
    values.draw(bytes_, {shape, shape + rank}, Floats::Kind::input, random, Numbers::tame);
    if (!accepted(headlight_optimizer_set_state(optimizer_, name, values.get(), &error), error)) return;
    const std::vector<float> before = values.copy();
    must(accepted(headlight_optimizer_get_state(optimizer_, name, values.get(), &error), error), "state is read");
    must(values.holds(before), "state is read as it was written");
  }

  Bytes& bytes_;
  CLayer layer_;
  std::vector<CLayer::Named> parameters_;
  headlight_saved_state* saved_ = nullptr;
  headlight_training_step step_ = HEADLIGHT_OPTIONS(headlight_training_step);
  headlight_optimizer* optimizer_ = nullptr;
};

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Training(bytes).run();
}

}  // namespace headlight::fuzz::training_fuzz
