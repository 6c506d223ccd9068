#include "harness/layer_check.h"

#include <cmath>
#include <map>

namespace headlight::bench {

bool first_sequence_is_right(const std::string& name, const Tensor<float, 3>& x, const Tensor<float, 3>& y,
                             const std::function<Tensor<double, 3>(Tensor<double, 3>& x)>& twin) {
  static std::map<std::string, Tensor<double, 3>> known;
  auto truth = known.find(name);
  if (truth == known.end()) {
    Tensor<double, 3> first({1, x.shape()[1], x.shape()[2]});
    for (std::int64_t n = 0; n < first.size(); ++n) first.data()[n] = x.data()[n];
    truth = known.emplace(name, twin(first)).first;
  }
  // Values are of the order of 1: far above the rounding of a few layers, far below a wrong weight or head.
  for (std::int64_t n = 0; n < truth->second.size(); ++n) {
    if (!(std::abs(y.data()[n] - truth->second.data()[n]) < 1e-4)) return false;
  }
  return true;
}

}  // namespace headlight::bench
