// A layer of any kind through the C interface, drawn from bytes, and what goes into it.
#pragma once

#include <string>
#include <vector>

#include "fuzz/c_tensor.h"

namespace headlight::fuzz {

enum class LayerKind { linear, layer_norm, feed_forward, attention, encoder_layer, decoder_layer, network };

class CLayer {
 public:
  using Floats = CTensor<float>;

  explicit CLayer(Bytes& bytes) : kind_(static_cast<LayerKind>(bytes.integer(0, 6))) {
    heads_ = bytes.integer(1, 3);
    width_ = heads_ * bytes.integer(1, 5);
    inner_ = bytes.integer(0, 9);
    headlight_error error{};
    if (!accepted(create(bytes, error), error)) must(layer_ == nullptr, "nothing is made by a refused call");
  }
  ~CLayer() { headlight_layer_destroy(layer_); }
  CLayer(const CLayer&) = delete;
  CLayer& operator=(const CLayer&) = delete;

  [[nodiscard]] headlight_layer* get() const noexcept { return layer_; }
  [[nodiscard]] LayerKind kind() const noexcept { return kind_; }
  [[nodiscard]] std::int64_t width() const noexcept { return width_; }
  [[nodiscard]] std::int64_t outputs() const noexcept { return kind_ == LayerKind::linear ? inner_ : width_; }
  void destroy() {
    headlight_layer_destroy(layer_);
    layer_ = nullptr;
  }

  struct Named {
    std::string name;
    std::vector<std::int64_t> shape;
  };
  [[nodiscard]] std::vector<Named> parameters() const {
    std::vector<Named> all(static_cast<std::size_t>(headlight_layer_parameter_count(layer_)));
    for (std::size_t n = 0; n < all.size(); ++n) {
      const char* name = nullptr;
      std::int32_t rank = 0;
      const std::int64_t* shape = nullptr;
      must(headlight_layer_parameter(layer_, static_cast<std::int64_t>(n), &name, &rank, &shape, nullptr) ==
               HEADLIGHT_OK,
           "parameters are told");
      all[n] = {name, {shape, shape + rank}};
    }
    return all;
  }

 private:
  // A size of a layer: weights are either small, or more than any memory.
  static std::int64_t size_of(Bytes& bytes, std::int64_t sane) {
    const std::int64_t drawn = bytes.wild(sane);
    return drawn > 64 && drawn < std::int64_t{1} << 50 ? 64 : drawn;
  }

  headlight_status create(Bytes& bytes, headlight_error& error) {
    dropout_ = static_cast<float>(bytes.integer(0, 8)) / 8;
    switch (kind_) {
      case LayerKind::linear: {
        headlight_linear_options options = HEADLIGHT_OPTIONS(headlight_linear_options);
        options.struct_size = struct_size(bytes, sizeof options);
        options.in_features = size_of(bytes, width_);
        options.out_features = size_of(bytes, inner_);
        options.without_bias = bytes.once_in(4) ? 1 : 0;
        return headlight_linear_create(&options, &layer_, &error);
      }
      case LayerKind::layer_norm: {
        headlight_layer_norm_layer_options options = HEADLIGHT_OPTIONS(headlight_layer_norm_layer_options);
        options.struct_size = struct_size(bytes, sizeof options);
        options.width = size_of(bytes, width_);
        return headlight_layer_norm_layer_create(&options, &layer_, &error);
      }
      case LayerKind::feed_forward: {
        headlight_feed_forward_options options = HEADLIGHT_OPTIONS(headlight_feed_forward_options);
        options.struct_size = struct_size(bytes, sizeof options);
        options.width = size_of(bytes, width_);
        options.hidden_width = size_of(bytes, inner_);
        options.activation = static_cast<headlight_activation>(bytes.wild(bytes.integer(0, HEADLIGHT_ACTIVATION_SILU)));
        options.dropout = &dropout_;
        return headlight_feed_forward_create(&options, &layer_, &error);
      }
      case LayerKind::attention: {
        headlight_multi_head_attention_options options = HEADLIGHT_OPTIONS(headlight_multi_head_attention_options);
        options.struct_size = struct_size(bytes, sizeof options);
        options.width = size_of(bytes, width_);
        options.heads = size_of(bytes, heads_);
        options.key_value_heads = size_of(bytes, bytes.once_in(3) ? 1 : 0);
        options.without_bias = bytes.once_in(4) ? 1 : 0;
        options.separate_projections = bytes.once_in(3) ? 1 : 0;
        options.merge = static_cast<headlight_merge>(bytes.wild(bytes.integer(0, 5)));
        options.dropout = &dropout_;
        return headlight_multi_head_attention_create(&options, &layer_, &error);
      }
      case LayerKind::encoder_layer:
      case LayerKind::decoder_layer: {
        headlight_transformer_layer_options options = HEADLIGHT_OPTIONS(headlight_transformer_layer_options);
        options.struct_size = struct_size(bytes, sizeof options);
        options.width = size_of(bytes, width_);
        options.heads = size_of(bytes, heads_);
        options.feed_forward_width = size_of(bytes, inner_);
        options.norm = static_cast<headlight_norm>(bytes.wild(bytes.integer(0, 1)));
        options.merge = static_cast<headlight_merge>(bytes.integer(0, 5));
        options.dropout = &dropout_;
        return kind_ == LayerKind::encoder_layer
                   ? headlight_transformer_encoder_layer_create(&options, &layer_, &error)
                   : headlight_transformer_decoder_layer_create(&options, &layer_, &error);
      }
      default:
        return create_network(bytes, error);
    }
  }

  headlight_status create_network(Bytes& bytes, headlight_error& error) {
    headlight_encoder_network_options options = HEADLIGHT_OPTIONS(headlight_encoder_network_options);
    options.struct_size = struct_size(bytes, sizeof options);
    options.vocabulary = size_of(bytes, 6);
    options.max_positions = size_of(bytes, 8);
    options.token_types = size_of(bytes, 2);
    options.width = size_of(bytes, width_);
    options.heads = size_of(bytes, heads_);
    options.feed_forward_width = size_of(bytes, inner_);
    options.layers = size_of(bytes, bytes.integer(0, 3));
    options.norm = static_cast<headlight_norm>(bytes.wild(bytes.integer(0, 1)));
    options.dropout = &dropout_;
    return headlight_encoder_network_create(&options, &layer_, &error);
  }

  LayerKind kind_;
  std::int64_t heads_ = 1, width_ = 1, inner_ = 0;
  float dropout_ = 0;
  headlight_layer* layer_ = nullptr;
};

// One batch for a layer: x, what else it reads, and where its result goes.
struct LayerInputs {
  using Floats = CTensor<float>;
  static constexpr auto kInput = Floats::Kind::input;
  static constexpr auto kOutput = Floats::Kind::output;

  LayerInputs(Bytes& bytes, const CLayer& layer) : kind(layer.kind()), random(bytes.byte()) {
    batch = bytes.integer(0, 2);
    length = bytes.integer(0, 7);
    memory_length = bytes.integer(0, 5);
    const bool has_rows = kind == LayerKind::linear || kind == LayerKind::layer_norm;
    if (kind == LayerKind::network) {
      draw_tokens(bytes, layer);
      return;
    }
    const auto shape = [&](std::int64_t columns) {
      return has_rows ? std::vector<std::int64_t>{length, columns} : std::vector<std::int64_t>{batch, length, columns};
    };
    x.draw(bytes, shape(layer.width()), kInput, random, Numbers::tame);
    memory.draw(bytes, {batch, memory_length, layer.width()}, kInput, random, Numbers::tame);
    y.draw(bytes, shape(layer.outputs()), kOutput, random, Numbers::tame);
    if (bytes.once_in(3)) residual.draw(bytes, shape(layer.outputs()), kInput, random, Numbers::tame);
    shares = bytes.once_in(2);
    if (bytes.once_in(3)) options.causal = static_cast<headlight_causal>(bytes.wild(1));
    if (bytes.once_in(4)) {
      lengths.assign(static_cast<std::size_t>(batch), 0);
      for (std::int64_t& each : lengths) each = bytes.wild(bytes.integer(0, length));
      options.key_lengths = {lengths.data(), static_cast<std::int64_t>(lengths.size())};
    }
  }

  headlight_status forward(const CLayer& layer, headlight_engine* engine, headlight_error& error) const {
    switch (kind) {
      case LayerKind::linear:
        return headlight_linear_forward(layer.get(), engine, x.get(), y.get(), HEADLIGHT_ACTIVATION_GELU,
                                        residual.get(), &error);
      case LayerKind::layer_norm:
        return headlight_layer_norm_layer_forward(layer.get(), engine, x.get(), y.get(), &error);
      case LayerKind::feed_forward:
        return headlight_feed_forward_forward(layer.get(), engine, x.get(), y.get(), residual.get(), &error);
      case LayerKind::attention:
        return headlight_multi_head_attention_forward(layer.get(), engine, x.get(), keys(), keys(), y.get(), &options,
                                                      residual.get(), nullptr, &error);
      case LayerKind::encoder_layer:
        return headlight_transformer_encoder_layer_forward(layer.get(), engine, x.get(), y.get(), &options, nullptr,
                                                           &error);
      case LayerKind::decoder_layer:
        return headlight_transformer_decoder_layer_forward(layer.get(), engine, x.get(), memory.get(), y.get(),
                                                           &options, nullptr, &error);
      default: {
        const headlight_encoder_network_input input = tokens();
        return headlight_encoder_network_forward(layer.get(), engine, &input, y.get(), nullptr, 0, &error);
      }
    }
  }

  [[nodiscard]] const headlight_tensor* keys() const noexcept { return shares ? x.get() : memory.get(); }
  [[nodiscard]] headlight_encoder_network_input tokens() const {
    headlight_encoder_network_input input = HEADLIGHT_OPTIONS(headlight_encoder_network_input);
    const auto list = [](const std::vector<std::int64_t>& numbers) {
      return headlight_indices{numbers.data(), static_cast<std::int64_t>(numbers.size())};
    };
    input.ids = list(ids);
    input.positions = list(positions);
    input.token_types = list(types);
    input.offsets = list(offsets);
    return input;
  }

  LayerKind kind;
  test::Random random;
  std::int64_t batch = 0, length = 0, memory_length = 0;
  Floats x, memory, y, residual;
  bool shares = false;
  std::vector<std::int64_t> lengths, ids, positions, types, offsets;
  headlight_attention_options options = HEADLIGHT_OPTIONS(headlight_attention_options);

 private:
  void draw_tokens(Bytes& bytes, const CLayer& layer) {
    for (std::int64_t n = 0; n < length; ++n) {
      ids.push_back(bytes.wild(bytes.integer(0, 5)));
      positions.push_back(bytes.wild(bytes.integer(0, 7)));
      types.push_back(bytes.wild(bytes.integer(0, 1)));
    }
    offsets = {0, bytes.wild(bytes.integer(0, length)), length};
    y.draw(bytes, {length, layer.width()}, kOutput, random, Numbers::tame);
  }
};

}  // namespace headlight::fuzz
