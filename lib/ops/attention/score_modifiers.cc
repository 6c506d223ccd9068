#include "ops/attention/score_modifiers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

namespace headlight::ops {
namespace {

using kernels::asks_for;
using kernels::ScoreModifier;

// No factor becomes infinite.
float bounded(double factor) noexcept {
  constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
  return static_cast<float>(std::clamp(factor, -kLargest, kLargest));
}

bool is_normal_float(double number) noexcept {
  using Limits = std::numeric_limits<float>;
  const double size = std::abs(number);
  return static_cast<double>(Limits::min()) <= size && size <= static_cast<double>(Limits::max());
}

// Whether the modifiers leave scores in units of e.
bool is_natural(const kernels::ScoreModifiers& modifiers) noexcept {
  return asks_for(modifiers.asked, ScoreModifier::softcap) || asks_for(modifiers.asked, ScoreModifier::bias) ||
         asks_for(modifiers.asked, ScoreModifier::slope);
}

// The smallest number whose square, rounded, is that or more.
float smallest_of_square(float square) noexcept {
  const auto reaches = [square](float x) { return x * x >= square; };
  float x = std::sqrt(square);
  while (reaches(x)) x = std::nextafter(x, 0.0f);
  while (!reaches(x)) x = std::nextafter(x, std::numeric_limits<float>::max());
  return x;
}

// Whether a slope may take from a score what comes near −FLT_MAX. Up to here none does: positions end at 2⁶⁰.
constexpr float kSteepSlope = 0x1p30f;
bool is_any_steep(std::span<const float> slopes) noexcept {
  return std::ranges::any_of(slopes, [](float slope) { return !(std::abs(slope) <= kSteepSlope); });
}

// cap · tanh(q · product_scale / cap). tanh x = x (1 + x² (…)) in x² for |x| < ½, relative error 1.5e-8; the factors of
// x are put into the coefficients.
kernels::ScoreCap score_cap(float cap, float product_scale) noexcept {
  constexpr double kOfTanh[] = {1.0, -0x1.5554d6p-2, 0x1.10e9f4p-3, -0x1.b28bbap-5, 0x1.1a7954p-6};
  kernels::ScoreCap result{};
  result.cap = cap;
  result.scale = bounded(static_cast<double>(product_scale) / static_cast<double>(cap));
  const auto scale = static_cast<double>(result.scale);
  double factor = static_cast<double>(cap) * scale;
  bool are_normal = true;
  for (int i = 0; i < kernels::ScoreCap::kCoefficients; ++i) {
    const double coefficient = factor * kOfTanh[i];
    are_normal = are_normal && is_normal_float(coefficient);
    result.coefficients[i] = are_normal ? static_cast<float>(coefficient) : 0.0f;
    factor *= scale * scale;
  }
  if (are_normal) result.bound = smallest_of_square(static_cast<float>(0.25 / (scale * scale)));
  return result;
}

}  // namespace

kernels::ScoreModifiers score_modifiers(const AttentionOptions& options, float exponent_scale) noexcept {
  kernels::ScoreModifiers modifiers{};
  const auto ask = [&](bool is_asked, ScoreModifier modifier) {
    modifiers.asked |= is_asked ? static_cast<unsigned>(modifier) : 0;
  };
  modifiers.exponent_scale = exponent_scale;
  ask(options.softcap != 0, ScoreModifier::softcap);
  ask(!options.alibi.empty(), ScoreModifier::slope);
  ask(static_cast<bool>(options.bias), ScoreModifier::bias);
  modifiers.may_be_low = options.bias || is_any_steep(options.alibi);
  ask(options.mask.has_value(), ScoreModifier::mask);
  modifiers.product_scale = static_cast<float>(static_cast<double>(exponent_scale) / std::numbers::log2e);
  if (modifiers.asked == 0) return modifiers;
  if (asks_for(modifiers.asked, ScoreModifier::softcap)) {
    modifiers.cap = score_cap(options.softcap, modifiers.product_scale);
  }
  // What is added is in units of e, and so is the sum: of a change of unit nothing can become infinite (a row whose
  // every key carries −FLT_MAX still sees them all), and it is one multiply-add.
  if (is_natural(modifiers)) modifiers.exponent_scale = static_cast<float>(std::numbers::log2e);
  if (options.mask) {
    modifiers.masks.mask_key_stride = options.mask->entries.extent(3) == 1 ? 0 : 1;
    modifiers.masks.attend = options.mask->means == MaskMeans::attend;
  }
  if (options.bias) modifiers.masks.bias_key_stride = options.bias.extent(3) == 1 ? 0 : 1;
  return modifiers;
}

float natural_factor(const kernels::ScoreModifiers& modifiers) noexcept {
  return is_natural(modifiers) ? 1.0f : modifiers.product_scale;
}

void RowModifiers::give(const AttentionOptions& options, std::int64_t n,
                        kernels::ScoreModifiers& modifiers) const noexcept {
  if (options.mask) modifiers.masks.mask = masks + n;
  if (options.bias) modifiers.masks.bias = biases + n;
  if (!options.alibi.empty()) modifiers.slopes = slopes + n;
}

}  // namespace headlight::ops
