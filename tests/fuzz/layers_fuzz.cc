// Layers through the C interface: made with any options, their parameters read, written, drawn and loaded by tensors of
// any kind, scratch memory asked for and reserved, forward passes on engines with workers, without, and with a pool of
// the caller's. Whatever is done is done or refused, and the bits of an output do not depend on the engine.
#include "fuzz/c_layer.h"

namespace headlight::fuzz::layers_fuzz {
namespace {

using Floats = CTensor<float>;

struct Scalar {
  CEngine one{HEADLIGHT_ISA_SCALAR, 1};
  CEngine three{HEADLIGHT_ISA_SCALAR, 3};
};
const Scalar& engines() {
  static const Scalar all;
  return all;
}

// A parameter's name, or none; and a tensor that may have its shape.
struct NamedTensor {
  NamedTensor(Bytes& bytes, const std::vector<CLayer::Named>& parameters, Floats::Kind kind) : random(bytes.byte()) {
    const std::size_t n = bytes.byte();
    std::vector<std::int64_t> shape{1};
    if (n < parameters.size()) {
      name = parameters[n].name;
      shape = parameters[n].shape;
    } else if (!parameters.empty()) {
      name = parameters[n % parameters.size()].name + (bytes.once_in(2) ? "" : "x");
      shape = parameters[n % parameters.size()].shape;
    }
    values.draw(bytes, shape, kind, random, Numbers::tame);
  }
  test::Random random;
  std::string name;
  Floats values;
};

void get_and_set(Bytes& bytes, CLayer& layer, const std::vector<CLayer::Named>& parameters) {
  headlight_error error{};
  NamedTensor given(bytes, parameters, Floats::Kind::input);
  if (!accepted(headlight_layer_set_parameter(layer.get(), given.name.c_str(), given.values.get(), &error), error))
    return;
  const std::vector<float> before = given.values.copy();
  given.values.put_back(std::vector<float>(before.size(), 7.0f));
  must(accepted(headlight_layer_get_parameter(layer.get(), given.name.c_str(), given.values.get(), &error), error),
       "what can be written can be read");
  must(given.values.holds(before), "a parameter is read as it was written");
}

void load(Bytes& bytes, CLayer& layer, const std::vector<CLayer::Named>& parameters) {
  std::vector<std::unique_ptr<NamedTensor>> tensors;
  std::vector<headlight_weight> weights;
  const std::string prefix = bytes.once_in(3) ? "p." : "";
  for (std::size_t n = 0; n < parameters.size() && n < 40; ++n) {
    if (bytes.byte() == 255) continue;
    tensors.push_back(std::make_unique<NamedTensor>(bytes, parameters, Floats::Kind::input));
    tensors.back()->name = prefix + (bytes.byte() == 255 ? tensors.back()->name : parameters[n].name);
    tensors.back()->values.draw(bytes, parameters[n].shape, Floats::Kind::input, tensors.back()->random, Numbers::tame);
  }
  for (const auto& each : tensors) weights.push_back({each->name.c_str(), *each->values.get()});
  if (bytes.byte() == 255 && !weights.empty()) weights.back().name = nullptr;
  headlight_load_options options = HEADLIGHT_OPTIONS(headlight_load_options);
  options.prefix = bytes.once_in(6) ? nullptr : prefix.c_str();
  options.ignore_extra = bytes.once_in(3) ? 1 : 0;
  options.struct_size = struct_size(bytes, options.struct_size);
  headlight_error error{};
  static_cast<void>(
      accepted(headlight_layer_load(layer.get(), weights.data(), weights.size(), &options, &error), error));
}

headlight_status workspace(const CLayer& layer, const std::int64_t (&sizes)[4], headlight_engine* engine,
                           std::size_t* bytes, bool reserves, headlight_error& error) {
  headlight_multi_head_attention_shape shape = HEADLIGHT_OPTIONS(headlight_multi_head_attention_shape);
  shape.batch = sizes[0];
  shape.query_length = sizes[1];
  shape.key_length = sizes[2];
  shape.inputs = static_cast<headlight_shared_inputs>(sizes[3] % 4);
  switch (layer.kind()) {
    case LayerKind::linear:
      return reserves ? headlight_linear_reserve(layer.get(), engine, sizes[0], &error)
                      : headlight_linear_workspace_bytes(layer.get(), engine, sizes[0], bytes, &error);
    case LayerKind::feed_forward:
      return reserves ? headlight_feed_forward_reserve(layer.get(), engine, sizes[0], sizes[1], &error)
                      : headlight_feed_forward_workspace_bytes(layer.get(), engine, sizes[0], sizes[1], bytes, &error);
    case LayerKind::attention:
      return reserves ? headlight_multi_head_attention_reserve(layer.get(), engine, &shape, &error)
                      : headlight_multi_head_attention_workspace_bytes(layer.get(), engine, &shape, bytes, &error);
    case LayerKind::encoder_layer:
      return reserves ? headlight_transformer_encoder_layer_reserve(layer.get(), engine, sizes[0], sizes[1], &error)
                      : headlight_transformer_encoder_layer_workspace_bytes(layer.get(), engine, sizes[0], sizes[1],
                                                                            bytes, &error);
    case LayerKind::decoder_layer:
      return reserves ? headlight_transformer_decoder_layer_reserve(layer.get(), engine, sizes[0], sizes[1], sizes[2],
                                                                    &error)
                      : headlight_transformer_decoder_layer_workspace_bytes(layer.get(), engine, sizes[0], sizes[1],
                                                                            sizes[2], bytes, &error);
    default:  // and layer_norm, which has none: refused
      return reserves ? headlight_encoder_network_reserve(layer.get(), engine, sizes[0], &error)
                      : headlight_encoder_network_workspace_bytes(layer.get(), engine, sizes[0], bytes, &error);
  }
}

void ask_and_reserve(Bytes& bytes, const CLayer& layer) {
  constexpr std::size_t kMost = std::size_t{1} << 22;
  std::int64_t sizes[4];
  for (std::int64_t& size : sizes) size = bytes.wild(bytes.integer(0, 12));
  headlight_error error{};
  std::size_t needed = 0;
  headlight_engine* const engine = engines().three.get();
  if (!accepted(workspace(layer, sizes, engine, &needed, false, error), error) || needed > kMost) return;
  must(accepted(workspace(layer, sizes, engine, nullptr, true, error), error), "what can be told can be reserved");
  must(headlight_engine_scratch_bytes(engine) >= needed, "what is reserved is held");
  headlight_engine_release_scratch(engine);
}

void forward(Bytes& bytes, const CLayer& layer) {
  LayerInputs inputs(bytes, layer);
  const std::vector<float> before = inputs.y.copy();
  headlight_error error{};
  if (!accepted(inputs.forward(layer, engines().one.get(), error), error)) {
    must(inputs.y.holds(before), "a refused call writes nothing");
    return;
  }
  const std::vector<float> by_one = inputs.y.copy();
  inputs.y.put_back(before);
  must(accepted(inputs.forward(layer, engines().three.get(), error), error), "any engine takes the same calls");
  must(inputs.y.holds(by_one), "an engine changes no bit");
}

// At the end, of those that have products.
void multiply_in_another_type(Bytes& bytes, const CLayer& layer) {
  const auto type = static_cast<headlight_type>(bytes.wild(bytes.integer(0, 6)));
  headlight_error error{};
  const headlight_type before = headlight_layer_precision(layer.get());
  const bool is_set = accepted(headlight_layer_set_precision(layer.get(), type, &error), error);
  must(headlight_layer_precision(layer.get()) == (is_set ? type : before), "the type that was set, or the one before");
  if (is_set) forward(bytes, layer);
}

void run(Bytes& bytes) {
  CLayer layer(bytes);
  if (layer.get() == nullptr) return;
  const std::vector<CLayer::Named> parameters = layer.parameters();
  headlight_error error{};
  must(accepted(headlight_layer_initialize(layer.get(), bytes.byte(), &error), error), "a layer is initialised");
  for (int step = 0; step < 6; ++step) {
    switch (bytes.integer(0, 4)) {
      case 0:
        forward(bytes, layer);
        break;
      case 1:
        get_and_set(bytes, layer, parameters);
        break;
      case 2:
        load(bytes, layer, parameters);
        break;
      case 3:
        ask_and_reserve(bytes, layer);
        break;
      default: {
        NamedTensor wanted(bytes, parameters, Floats::Kind::output);
        static_cast<void>(accepted(
            headlight_layer_get_parameter(layer.get(), wanted.name.c_str(), wanted.values.get(), &error), error));
      }
    }
  }
  multiply_in_another_type(bytes, layer);
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  run(bytes);
}

}  // namespace headlight::fuzz::layers_fuzz
