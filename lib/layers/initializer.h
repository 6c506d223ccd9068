// First values of parameters: the same on every machine, whatever was asked for before or on how many threads.
#pragma once

#include <cstdint>
#include <span>

namespace headlight::layers {

// Each parameter takes a stream of its own in runtime/random.h: a value depends on the seed, the place of its parameter
// in the layer's list and its own index alone.
class Initializer {
 public:
  explicit Initializer(std::uint64_t seed) noexcept : seed_(seed) {}

  // Uniform in [−bound, bound).
  void uniform(std::span<float> values, float bound) noexcept;
  // Xavier-uniform (Glorot & Bengio 2010): bound √(6 / (fan_in + fan_out)).
  void xavier(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out) noexcept;
  // Xavier's variance with orthonormal rows in place of independent ones (Saxe et al. 2014): as many in a row as the
  // matrix [rows, columns] has columns. All rows are as long as Xavier's are on average.
  void orthogonal(std::span<float> values, std::int64_t columns, std::int64_t fan_out);
  void constant(std::span<float> values, float value) noexcept;

 private:
  std::uint64_t seed_;
  std::uint32_t stream_ = 0;
};

}  // namespace headlight::layers
