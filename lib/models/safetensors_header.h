// The JSON header of a safetensors file, read strictly.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::models {

struct SafetensorsHeader {
  struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0;  // relative to the data
    std::uint64_t end = 0;
  };
  std::vector<Tensor> tensors;  // in ascending order of begin
  std::map<std::string, std::string> metadata;
};

// Bytes an element takes, or 0 for an unknown dtype.
[[nodiscard]] std::uint64_t safetensors_element_size(std::string_view dtype) noexcept;

// Reads `json`, whose tensors must cover `data_size` bytes exactly. Throws FileError naming `path` and the tensor.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                                         std::uint64_t data_size);

}  // namespace headlight::models
