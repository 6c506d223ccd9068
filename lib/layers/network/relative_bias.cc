#include "layers/network/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace headlight::layers {

DistanceBuckets::DistanceBuckets(const RelativeBiasSpec& spec) noexcept
    : half_(spec.buckets / 2),
      exact_(half_ / 2),
      max_distance_(spec.max_distance),
      most_(std::log(static_cast<double>(max_distance_) / static_cast<double>(exact_))) {}

// Half of the buckets are of keys behind the query. Of each half, half are of one distance each, the others grow with
// its logarithm up to max_distance. (Raffel et al. 2020, mesh_tensorflow's _relative_position_bucket())
std::int64_t DistanceBuckets::of(std::int64_t distance) const noexcept {
  const std::int64_t first = distance > 0 ? half_ : 0, away = std::abs(distance);
  if (away < exact_) return first + away;
  if (away >= max_distance_) return first + half_ - 1;
  const double along = std::log(static_cast<double>(away) / static_cast<double>(exact_)) / most_;
  const auto bucket = static_cast<std::int64_t>(along * static_cast<double>(half_ - exact_));
  return first + std::min(exact_ + bucket, half_ - 1);
}

View<float, 2> RelativeBiasOperation::by_distance(const View<float, 2>& y) noexcept {
  return {y.data, {y.extent(1) / 2, 2 * y.extent(0) - 1}};
}

void RelativeBiasOperation::forward(const GraphCall& call, const RowRange& rows) const {
  if (rows.count == 0 || call.whole_rows() != call.tokens()) return;
  fill_by_distance(spec_, table_, by_distance(call.floats(output(), rows)));
}

View<const float, 4> as_bias(const View<const float, 2>& by_distance) noexcept {
  const std::int64_t heads = by_distance.extent(0), tokens = (by_distance.extent(1) + 1) / 2;
  return {by_distance.data + tokens - 1, {1, heads, tokens, tokens}, {0, by_distance.stride(0), -1, 1}};
}

void fill_by_distance(const RelativeBiasSpec& spec, const MatrixParameter& table, const View<float, 2>& by_distance) {
  const std::int64_t heads = by_distance.extent(0), last = by_distance.extent(1) / 2;
  float* const row = by_distance.data + by_distance.size();
  const DistanceBuckets buckets(spec);
  std::int64_t read = -1;
  for (std::int64_t distance = -last; distance <= last; ++distance) {
    const std::int64_t bucket = buckets.of(distance);
    if (bucket != read) table.matrix.read({bucket, 1}, row);
    read = bucket;
    for (std::int64_t h = 0; h < heads; ++h) by_distance(h, last + distance) = row[h];
  }
}

void add_bucket_gradients(const RelativeBiasSpec& spec, View<const float, 2> by_distance, MatrixParameter& table) {
  const View<float, 2> to = table.matrix.gradient();
  const std::int64_t count = by_distance.extent(1), last = count / 2;
  const DistanceBuckets buckets(spec);
  // The distances of a bucket lie side by side.
  for (std::int64_t begin = 0, bucket = buckets.of(-last); begin < count;) {
    std::int64_t end = begin + 1, next = bucket;
    while (end < count && (next = buckets.of(end - last)) == bucket) ++end;
    for (std::int64_t h = 0; h < by_distance.extent(0); ++h) {
      double sum = 0;
      for (std::int64_t n = begin; n < end; ++n) sum += static_cast<double>(by_distance(h, n));
      to(bucket, h) += static_cast<float>(sum);
    }
    begin = end;
    bucket = next;
  }
}

}  // namespace headlight::layers
