// The same weights packed as each type of number: what they take, and how far products are off.
#include <headlight/gemm.h>

#include <algorithm>
#include <cmath>
#include <iostream>

int main() {
  constexpr std::int64_t kRows = 3, kInputs = 256, kOutputs = 192;
  headlight::Engine engine;
  headlight::Tensor<float, 2> x({kRows, kInputs}), weight({kOutputs, kInputs});  // as torch.nn.Linear keeps its own
  headlight::Tensor<float, 2> y({kRows, kOutputs}), unpacked({kRows, kOutputs});
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(static_cast<float>(i));
  for (std::int64_t i = 0; i < weight.size(); ++i) weight.data()[i] = std::cos(static_cast<float>(3 * i));
  headlight::gemm(engine, x, weight, unpacked, {.transpose_b = headlight::Transpose::yes});

  // All numbers are between -1 and 1. A product of two of them is off by at most `off`, the sum of kInputs by as many
  // times that.
  const struct {
    headlight::NumberType type;
    double bits, off;
  } packings[] = {{headlight::NumberType::float32, 32, 0},
                  {headlight::NumberType::float16, 16, 1.0 / 2048},
                  {headlight::NumberType::bfloat16, 16, 1.0 / 127},
                  {headlight::NumberType::int8, 8, 1.0 / 126},
                  {headlight::NumberType::int4, 4.5, 0.08}};
  bool good = true;
  for (const auto& [type, bits, off] : packings) {
    const headlight::PackedMatrix packed(engine, weight, headlight::Transpose::yes, type);
    headlight::gemm(engine, x, packed, y);
    double worst = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(y.data()[i]) - unpacked.data()[i]));
    }
    const double bytes = kOutputs * (kInputs * bits / 8 + 8);  // with two more numbers a column, those of int8
    std::cout << packed.bytes() << " bytes, off by " << worst << '\n';
    good = good && worst <= kInputs * off && static_cast<double>(packed.bytes()) <= bytes;
  }
  return good ? 0 : 1;
}
