// Arrays for `headlight attend`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/npy.h"
#include "headlight/tensor.h"
#include "support/random.h"
#include "tools/program.h"

namespace headlight::test {

inline constexpr std::int64_t kBatch = 2, kQueryLength = 13, kKeyLength = 17, kQueryHeads = 4, kKeyValueHeads = 2,
                              kHeadDim = 8, kValueDim = 5;

// Inputs of one shape, in memory and as files of a scratch folder.
struct AttendCase {
  explicit AttendCase(std::int64_t batch = kBatch, std::int64_t query_length = kQueryLength,
                      std::int64_t key_length = kKeyLength) {
    query = random.normal_tensor<4>({batch, query_length, kQueryHeads, kHeadDim});
    key = random.normal_tensor<4>({batch, key_length, kKeyValueHeads, kHeadDim});
    value = random.normal_tensor<4>({batch, key_length, kKeyValueHeads, kValueDim});
    write("q.npy", query);
    write("k.npy", key);
    write("v.npy", value);
  }

  template <int Rank>
  void write(const std::string& name, const Tensor<float, Rank>& tensor) const {
    models::write_npy(folder / name, tensor.shape(), std::span<const float>(tensor.begin(), tensor.end()));
  }
  template <class T>
  void write(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<T>& values) const {
    models::write_npy(folder / name, shape, std::span<const T>(values));
  }

  // `more` may name one of the first four again: its file then takes the place of the usual one.
  [[nodiscard]] std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"attend"};
    for (const auto& [option, file] :
         {std::pair{"--query", "q.npy"}, {"--key", "k.npy"}, {"--value", "v.npy"}, {"-o", "o.npy"}}) {
      if (std::find(more.begin(), more.end(), option) == more.end()) all.insert(all.end(), {option, folder / file});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  ScratchFolder folder;
  Random random{7};
  Tensor<float, 4> query, key, value;
};

// What is said of a file that was written.
inline std::string line_of(const AttendCase& c, const std::string& name, std::span<const std::int64_t> extents) {
  std::string shape;
  for (const std::int64_t extent : extents) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  return (c.folder / name) + ": [" + shape + "] float32\n";
}

template <int Rank>
std::string line_of(const AttendCase& c, const std::string& name, const Tensor<float, Rank>& tensor) {
  return line_of(c, name, tensor.shape());
}

}  // namespace headlight::test
