// Updates of parameters, element by element. One thread, no allocation.
#pragma once

#include <cstdint>

namespace headlight::kernels {

struct SgdArguments {
  float* values;
  const float* gradient;
  float* momentum;  // null: none
  std::int64_t count;
  float scale;  // of the gradient
  float weight_decay;
  float decay;  // μ
  float rate;   // γ
};

struct AdamWArguments {
  float* values;
  const float* gradient;
  float* first;
  float* second;
  std::int64_t count;
  float scale;          // of the gradient
  float keep;           // 1 − γ λ
  float first_weight;   // 1 − β₁
  float second_decay;   // β₂
  float second_weight;  // 1 − β₂
  float root;           // √(1 − β₂ᵗ)
  float epsilon;
  float rate;  // γ / (1 − β₁ᵗ)
};

struct OptimizerKernels {
  void (*sgd)(const SgdArguments& arguments) noexcept;
  void (*adamw)(const AdamWArguments& arguments) noexcept;
};

}  // namespace headlight::kernels
