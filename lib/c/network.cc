// The encoder network, from token ids to hidden states.
#include "headlight/c/network.h"

#include <new>
#include <type_traits>

#include "c/attention_options.h"
#include "c/handles.h"
#include "c/training.h"
#include "headlight/layers/encoder.h"
#include "runtime/parallel.h"

namespace headlight::c {
namespace {

constexpr const char* kNetwork = "encoder_network";

// Layers that one call may ask.
constexpr std::size_t kMostLayers = 64;

EncoderOptions encoder_options(const headlight_encoder_network_options* given) {
  const Fields fields(kNetwork, "options", given);
  EncoderOptions options;
  options.vocabulary = fields->vocabulary;
  options.max_positions = fields->max_positions;
  options.token_types = fields->token_types;
  options.width = fields->width;
  options.heads = fields->heads;
  options.feed_forward_width = fields->feed_forward_width;
  options.layers = fields->layers;
  options.norm = enumerated<Norm>(kNetwork, "norm", fields->norm, HEADLIGHT_NORM_POST, HEADLIGHT_NORM_PRE);
  options.activation = activation_of(kNetwork, fields->activation, options.activation);
  if (fields->layer_norm_epsilon != nullptr) options.layer_norm_epsilon = *fields->layer_norm_epsilon;
  options.merge = merge_of(kNetwork, fields->merge);
  if (fields->dropout != nullptr) options.dropout = *fields->dropout;
  options.orthogonal = fields->orthogonal != 0;
  return options;
}

EncoderInput encoder_input(const headlight_encoder_network_input* given) {
  const Fields fields(kNetwork, "input", &required(kNetwork, "input", given));
  return {.ids = indices(kNetwork, "ids", fields->ids),
          .positions = indices(kNetwork, "positions", fields->positions),
          .token_types = indices(kNetwork, "token_types", fields->token_types),
          .offsets = indices(kNetwork, "offsets", fields->offsets)};
}

// [1, N, E] as [N, E].
View<float, 2> rows_of(const View<float, 3>& outputs) {
  if (outputs && outputs.extent(0) != 1) {
    refuse(kNetwork, "heads.outputs has ", outputs.extent(0), " samples, expected 1");
  }
  return {outputs.data, {outputs.extent(1), outputs.extent(2)}, {outputs.stride(1), outputs.stride(2)}};
}

// What `count` layers are asked, in scratch memory of the engine: of 64 layers it would be 17 KiB of the stack.
class Access {
 public:
  Access(Engine& engine, const headlight_layer_access* given, std::size_t count)
      : count_(checked(count)), memory_(engine, layout().bytes(), kNetwork) {
    if (count == 0) return;
    const std::size_t stride = required(kNetwork, "access", given).struct_size;
    for (std::size_t number = 0; number < count; ++number) {
      const Fields fields(kNetwork, "access", element(given, number));
      if (fields->struct_size != stride) {
        refuse(kNetwork, "access[", number, "].struct_size is ", fields->struct_size, ", expected that of access[0], ",
               stride);
      }
      const HeadAccess of_heads = head_access(kNetwork, fields->heads);
      new (probabilities_.in(memory_.data()) + number)
          LayerProbabilities{fields->layer, c::probabilities(kNetwork, fields->probabilities)};
      new (heads_.in(memory_.data()) + number)
          LayerHeads{fields->layer, rows_of(of_heads.outputs), of_heads.silenced, rows_of(of_heads.scaled_outputs)};
    }
  }

  [[nodiscard]] std::span<const LayerProbabilities> probabilities() const noexcept {
    return {probabilities_.in(memory_.data()), count_};
  }
  [[nodiscard]] std::span<const LayerHeads> heads() const noexcept { return {heads_.in(memory_.data()), count_}; }

 private:
  static std::size_t checked(std::size_t count) {
    if (count > kMostLayers) {
      refuse(kNetwork, "access to ", count, " layers is asked for, expected at most ", kMostLayers);
    }
    return count;
  }
  runtime::ScratchLayout layout() noexcept {
    runtime::ScratchLayout layout;
    probabilities_ = layout.add<LayerProbabilities>(count_);
    heads_ = layout.add<LayerHeads>(count_);
    return layout;
  }
  // Nothing in them is to be destroyed.
  static_assert(std::is_trivially_destructible_v<LayerProbabilities> && std::is_trivially_destructible_v<LayerHeads>);

  std::size_t count_;
  runtime::ScratchPart<LayerProbabilities> probabilities_;
  runtime::ScratchPart<LayerHeads> heads_;
  runtime::Scratch memory_;
};

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_encoder_network_create(const headlight_encoder_network_options* options,
                                                  headlight_layer** network, headlight_error* error) {
  return create(kNetwork, network, error, [&] { return make_layer<Encoder>(encoder_options(options)); });
}

headlight_status headlight_encoder_network_forward(const headlight_layer* network, headlight_engine* engine,
                                                   const headlight_encoder_network_input* input,
                                                   const headlight_tensor* hidden, const headlight_layer_access* access,
                                                   size_t count, headlight_error* error) {
  return call(kNetwork, engine, error, [&](Engine& on) {
    const Access asked(on, access, count);
    as<Encoder>(kNetwork, network)
        .forward(on, encoder_input(input), view<float, 2>(kNetwork, "hidden", hidden), asked.probabilities(),
                 asked.heads());
  });
}

headlight_status headlight_encoder_network_workspace_bytes(const headlight_layer* network,
                                                           const headlight_engine* engine, int64_t tokens,
                                                           size_t* bytes, headlight_error* error) {
  return call(kNetwork, engine, error, [&](const Engine& on) {
    required(kNetwork, "bytes", bytes) = as<Encoder>(kNetwork, network).workspace_bytes(on, tokens);
  });
}

headlight_status headlight_encoder_network_reserve(const headlight_layer* network, headlight_engine* engine,
                                                   int64_t tokens, headlight_error* error) {
  return call(kNetwork, engine, error, [&](Engine& on) { as<Encoder>(kNetwork, network).reserve(on, tokens); });
}

headlight_status headlight_encoder_network_training_forward(const headlight_layer* network, headlight_engine* engine,
                                                            const headlight_encoder_network_input* input,
                                                            const headlight_tensor* hidden,
                                                            headlight_saved_state* saved,
                                                            const headlight_training_step* step,
                                                            headlight_error* error) {
  return call(kNetwork, engine, error, [&](Engine& on) {
    as<Encoder>(kNetwork, network)
        .forward(on, encoder_input(input), view<float, 2>(kNetwork, "hidden", hidden), saved_of(kNetwork, saved),
                 training_step(kNetwork, step));
  });
}

headlight_status headlight_encoder_network_backward(headlight_layer* network, headlight_engine* engine,
                                                    const headlight_encoder_network_input* input,
                                                    const headlight_saved_state* saved,
                                                    const headlight_tensor* hidden_gradient, headlight_error* error) {
  return call(kNetwork, engine, error, [&](Engine& on) {
    to_change<Encoder>(kNetwork, network)
        .backward(on, encoder_input(input), saved_of(kNetwork, saved),
                  view<const float, 2>(kNetwork, "hidden_gradient", hidden_gradient));
  });
}
