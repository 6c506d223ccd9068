// A safetensors file of any bytes: refused by a FileError, or its tensors cover the data exactly, and what is written
// of them is read back.
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "fuzz/memory_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"

namespace headlight::fuzz::safetensors_fuzz {
namespace {

using models::SafetensorsFile;

void check_entries(const SafetensorsFile& file, std::size_t size) {
  const std::byte* end = nullptr;
  for (const models::SafetensorsEntry& entry : file.tensors()) {
    must(end == nullptr || entry.bytes.data() == end, "tensors lie one after another");
    end = entry.bytes.data() + entry.bytes.size();
    must(file.find(entry.name) == &entry, "a tensor is found by its name");
  }
  must(size >= 8, "a file has a header length");
}

// Where they lie, tensors have the numbers that are read as float32.
void check_stored(SafetensorsFile& file) {
  for (const auto& [name, weight] : file.weights()) {
    const WeightView there = file.stored(name);
    must(there.shape == weight.shape, "a shape is the same");
    if (!there.stored) continue;
    const auto count = static_cast<std::size_t>(there.stored.count);
    must(count == weight.values.size(), "as many numbers");
    if (count == 0) continue;
    const std::int64_t columns = there.shape.empty() ? 1 : there.shape.back();
    std::vector<float> widened(count);
    widen_rows(there.stored, columns, 0, there.stored.count / columns, widened.data());
    must(std::memcmp(widened.data(), weight.values.data(), weight.values.size_bytes()) == 0, "the same numbers");
  }
}

void check_written(const Weights& weights, const std::map<std::string, std::string>& metadata) {
  static MemoryFile written;
  written.fill("");
  models::write_safetensors(written.path(), weights, metadata);
  SafetensorsFile again(written.path());
  must(again.metadata() == metadata, "metadata is read as it was written");
  must(again.tensors().size() == weights.size(), "all that is written is read");
  for (const auto& [name, weight] : weights) {
    const WeightView found = again.float32(name);
    must(found.shape == weight.shape && found.values.size() == weight.values.size(), "shapes are read as written");
    must(found.values.empty() || std::memcmp(found.values.data(), weight.values.data(), found.values.size_bytes()) == 0,
         "numbers are read as written");
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    models::SafetensorsFile file("fuzz", bytes);
    check_entries(file, size);
    check_stored(file);
    check_written(file.weights(), file.metadata());
  } catch (const models::FileError&) {
  }
}

}  // namespace headlight::fuzz::safetensors_fuzz
