// The JSON header of a safetensors file, read strictly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/safetensors.h"

namespace headlight::models {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
  std::vector<std::uint32_t> by_name;     // places in entries
  std::map<std::string, std::string> metadata;
};

// Beside twice the header. One whose tensors would take more is refused: names, shapes and places of published files
// take about as many bytes as in the header.
inline constexpr std::size_t kMemoryBesideHeader = std::size_t{8} << 20;

// Bytes an element takes, or 0 for an unknown dtype.
[[nodiscard]] std::uint64_t safetensors_element_size(std::string_view dtype) noexcept;

// Places of entries by their names; of equal names the first comes first.
[[nodiscard]] std::vector<std::uint32_t> places_by_name(std::span<const SafetensorsEntry> entries);

// Reads `json`, whose tensors must cover `data` exactly. Throws FileError naming `path` and the tensor.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                                         std::span<const std::byte> data);

}  // namespace headlight::models
