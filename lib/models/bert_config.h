// config.json: what a published BERT folder says of its network.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "headlight/models/text_encoder.h"
#include "models/model_folder.h"

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

struct BertConfig {
  EncoderOptions encoder;
  std::optional<std::string> tokenizer_class;
};

// Appends keys that nobody knows. Throws FileError.
[[nodiscard]] BertConfig read_bert_config(const ModelFolder& folder, std::vector<std::string>& unknown);

}  // namespace headlight::models
