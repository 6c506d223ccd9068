// What is said about a list of times: always the best and the median, for the mean follows the worst interruption.
#pragma once

#include <vector>

namespace headlight::bench {

// The value below which the fraction `q` in [0, 1] of the values lies, interpolated between the two nearest (Hyndman &
// Fan 1996, definition 7). 0 for no values.
[[nodiscard]] double quantile(std::vector<double> values, double q);
[[nodiscard]] double median(const std::vector<double>& values);
// 0 for no values.
[[nodiscard]] double least(const std::vector<double>& values);
[[nodiscard]] double greatest(const std::vector<double>& values);

// The median of a[i] / b[i]: what two things measured side by side say about each other while the clock moves under
// both. Pairs with b[i] ≤ 0 are passed over. 0 for none.
[[nodiscard]] double median_ratio(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace headlight::bench
