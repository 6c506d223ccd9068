// Values of a config.json, checked as they are read.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"
#include "headlight/activation_kind.h"

namespace headlight::models {

// The values of `hidden_act`. Of several names of an activation the first is written to files.
struct ActivationName {
  const char* name;
  Activation activation;
};
inline constexpr std::array<ActivationName, 7> kActivationNames = {{{"gelu", Activation::gelu},
                                                                    {"gelu_python", Activation::gelu},
                                                                    {"gelu_new", Activation::gelu_tanh},
                                                                    {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                    {"relu", Activation::relu},
                                                                    {"silu", Activation::silu},
                                                                    {"swish", Activation::silu}}};

// Larger than any model, small enough that products of two stay far below 2⁶³.
inline constexpr std::int64_t kLargestSize = INT32_MAX;
// Blocks of a network, and numbers of a head: what is kept of each before any weight is looked for stays small.
inline constexpr std::int64_t kMostBlocks = 1024;
inline constexpr std::int64_t kWidestHead = 8192;
// The largest factor, base or bound.
inline constexpr double kLargestNumber = 1e12;

// Throw FileError naming the key where it is missing and nothing stands in for it, of another type, or not between
// least and most.
[[nodiscard]] std::int64_t size(const files::JsonValue& config, std::string_view key, std::int64_t least,
                                std::optional<std::int64_t> otherwise = std::nullopt, std::int64_t most = kLargestSize);
[[nodiscard]] double number(const files::JsonValue& config, std::string_view key, double otherwise, double least,
                            double most);
[[nodiscard]] bool flag(const files::JsonValue& config, std::string_view key, bool otherwise = false);
// Of a key whose null is not as if it were missing.
void expect_no_null(const files::JsonValue& config, std::string_view key);
[[nodiscard]] Activation activation(const files::JsonValue& config, std::string_view key, std::string_view otherwise);
// That of a name, which the key asks for.
[[nodiscard]] Activation activation_named(const files::JsonValue& config, std::string_view key, std::string_view name);

// That one of two spellings of a key that is there, the first where none is. Throws FileError where they differ.
[[nodiscard]] std::string_view spelling(const files::JsonValue& config, std::string_view one, std::string_view other);

// heads, key_value_heads and head_dim of config.json.
struct HeadSizes {
  std::int64_t heads = 0, key_value_heads = 0, head_dim = 0;
};
// Of num_attention_heads, num_key_value_heads and head_dim, or where those are missing as many heads of keys as of
// queries, and width / heads.
[[nodiscard]] HeadSizes head_sizes(const files::JsonValue& config, std::int64_t width,
                                   std::string_view heads_key = "num_attention_heads");

// The same where heads are width / heads numbers each, whatever other keys say.
[[nodiscard]] HeadSizes whole_heads(const files::JsonValue& config, std::int64_t width, std::string_view heads_key);

// For each block whether it sees a window alone: `layer_types`, or where that is missing what otherwise(block, period)
// says.
[[nodiscard]] std::vector<bool> sliding_blocks(const files::JsonValue& config, std::int64_t blocks,
                                               bool (*otherwise)(std::int64_t block, std::int64_t period),
                                               std::int64_t period);

}  // namespace headlight::models
