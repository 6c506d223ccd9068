// What layers of several sources call themselves in messages.
#pragma once

#include <string_view>

namespace headlight::layers {

inline constexpr std::string_view kDecoderLayerName = "TransformerDecoderLayer";
inline constexpr std::string_view kEncoderLayerName = "TransformerEncoderLayer";
inline constexpr std::string_view kEncoderName = "Encoder";
inline constexpr std::string_view kFeedForwardName = "FeedForward";
inline constexpr std::string_view kMultiHeadAttentionName = "MultiHeadAttention";
inline constexpr std::string_view kNetworkName = "Network";

}  // namespace headlight::layers
