// How far numbers are from those that they stand for.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace headlight::program {

// ‖some − exact‖ / ‖exact‖ in float64, Euclidean (Frobenius of matrices), over all that was added; 0 where that is 0.
class Deviation {
 public:
  // Both of the same size.
  void add(std::span<const float> some, std::span<const float> exact) noexcept {
    for (std::size_t n = 0; n < exact.size(); ++n) {
      const auto truth = static_cast<double>(exact[n]);
      difference_ += std::pow(static_cast<double>(some[n]) - truth, 2);
      size_ += truth * truth;
    }
  }
  void add(const Deviation& other) noexcept {
    difference_ += other.difference_;
    size_ += other.size_;
  }

  [[nodiscard]] double relative() const noexcept { return size_ > 0 ? std::sqrt(difference_ / size_) : 0; }

 private:
  double difference_ = 0, size_ = 0;
};

// Of whole tensors.
template <class Numbers>
[[nodiscard]] double relative_deviation(const Numbers& some, const Numbers& exact) noexcept {
  Deviation deviation;
  deviation.add({some.data(), static_cast<std::size_t>(some.size())},
                {exact.data(), static_cast<std::size_t>(exact.size())});
  return deviation.relative();
}

}  // namespace headlight::program
