// The safetensors format: named tensors in one file, as published checkpoints come.
//
// u64 little-endian header length N, N bytes of JSON {name: {dtype, shape, data_offsets: [begin, end]}, "__metadata__":
// {…}}, then the data. https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/export.h"
#include "headlight/parameters.h"

namespace headlight::models {

// One tensor of a file, as it lies there.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // as the format spells it: "F32", "BF16", "I64" …
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // little-endian, C order
};

// An open file: memory-mapped, and wholly validated before the constructor returns. Memory beyond the mapping is a
// small multiple of the header, which is at most 100,000,000 bytes, and never more than the file holds. Whoever
// shortens the file while it is open breaks the mapping: reading then ends the process, as with any mapped file.
class HEADLIGHT_API SafetensorsFile {
 public:
  // Throws FileError when the file cannot be read or breaks any rule of the format: a header longer than allowed or
  // than the file, JSON that is none, nests too deep or repeats a key, an unknown dtype, extents or offsets that are no
  // plain integers, shapes whose size does not fit 63 bits or differs from their bytes, bytes that are not covered
  // exactly once.
  explicit SafetensorsFile(const std::string& path);
  // The same from memory, which outlives this object; `name` stands for the path in errors.
  SafetensorsFile(std::string_view name, std::span<const std::byte> bytes);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  [[nodiscard]] const std::string& path() const noexcept;
  // In the order of their bytes; valid as long as this object.
  [[nodiscard]] std::span<const SafetensorsEntry> tensors() const noexcept;
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept;

  // The tensor as float32, valid as long as this object: the mapped bytes themselves for F32 (copied where they are not
  // aligned), whose owner keeps the mapping even longer, widened exactly and once for F16 and BF16. FileError for
  // another dtype or a name that is not there.
  [[nodiscard]] WeightView float32(std::string_view name);

  // Every F32, F16 and BF16 tensor; others (such as the I64 position ids of old BERT files) are left out.
  [[nodiscard]] Weights weights();

 private:
  void parse(std::span<const std::byte> bytes);

  struct State;
  std::unique_ptr<State> state_;
};

// Writes all of `weights` as F32, names in ascending order, and `metadata`; the file appears whole or not at all.
// Throws FileError when it cannot be written, std::invalid_argument for a shape that does not match its values or a
// name that is not UTF-8 or is "__metadata__".
HEADLIGHT_API void write_safetensors(const std::string& path, const Weights& weights,
                                     const std::map<std::string, std::string>& metadata = {});

}  // namespace headlight::models
