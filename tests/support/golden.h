// Reads what the scripts of tests/golden wrote.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/tensor.h"

namespace headlight::test {

inline std::string golden_path(const std::string& file) { return std::string(HEADLIGHT_GOLDEN_DIR) + "/" + file; }

// The lines of a text file, without comments and empty ones.
inline std::vector<std::string> golden_lines(const std::string& file) {
  std::ifstream stream(golden_path(file));
  if (!stream) throw std::runtime_error("cannot open " + golden_path(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.front() != '#') lines.push_back(line);
  }
  return lines;
}

// One long row of float64 in an .npy file of version 1, given out tensor by tensor.
class GoldenNumbers {
 public:
  explicit GoldenNumbers(const std::string& file) : stream_(golden_path(file), std::ios::binary) {
    char magic[8];
    unsigned char length[2];
    stream_.read(magic, 8);
    stream_.read(reinterpret_cast<char*>(length), 2);
    std::string header(static_cast<std::size_t>(length[0] + 256 * length[1]), ' ');
    stream_.read(header.data(), static_cast<std::streamsize>(header.size()));
    if (!stream_ || header.find("'<f8'") == std::string::npos) throw std::runtime_error("cannot read " + file);
  }

  template <int Rank>
  Tensor<double, Rank> next(const typename View<double, Rank>::Shape& shape) {
    Tensor<double, Rank> tensor(shape);
    stream_.read(reinterpret_cast<char*>(tensor.data()),
                 static_cast<std::streamsize>(tensor.size()) * static_cast<std::streamsize>(sizeof(double)));
    if (!stream_) throw std::runtime_error("the golden numbers end too early: were the cases changed?");
    return tensor;
  }

  [[nodiscard]] bool at_end() { return stream_.peek() == std::ifstream::traits_type::eof(); }

 private:
  std::ifstream stream_;
};

}  // namespace headlight::test
