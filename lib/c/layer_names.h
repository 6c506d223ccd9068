// What the C interface calls its layers in messages.
#pragma once

namespace headlight::c {

inline constexpr const char* kLayer = "layer";
inline constexpr const char* kLinear = "linear";
inline constexpr const char* kLayerNorm = "layer_norm_layer";
inline constexpr const char* kFeedForward = "feed_forward";
inline constexpr const char* kMultiHeadAttention = "multi_head_attention";
inline constexpr const char* kEncoderLayer = "transformer_encoder_layer";
inline constexpr const char* kDecoderLayer = "transformer_decoder_layer";

}  // namespace headlight::c
