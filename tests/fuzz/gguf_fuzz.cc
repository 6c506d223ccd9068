// A GGUF file of any bytes: refused by a FileError, or its tensors lie apart within the file, entries and tensors are
// found by name, and all numbers of a storage format are read, where they lie as widened. Opening it takes no more
// memory than twice the file.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "fuzz/bytes.h"
#include "headlight/models/errors.h"
#include "headlight/models/gguf.h"
#include "support/heap_watch.h"

namespace headlight::fuzz::gguf_fuzz {
namespace {

using models::GgufEntry;
using models::GgufFile;
using models::GgufTensor;
using models::GgufType;

void check_metadata(const GgufFile& file) {
  for (const GgufEntry& entry : file.metadata()) {
    const models::GgufValue value = entry.value();
    const std::optional<models::GgufValue> found = file.find_value(entry.key());
    must(found && found->type() == value.type() && found->size() == value.size(), "an entry is found by its key");
    const bool is_array = value.type() == GgufType::array;
    must(!value.integers() || (is_array && value.integers()->size() == value.size()), "integers are those of an array");
    must(!value.strings() || (is_array && value.strings()->size() == value.size()), "strings are those of an array");
    must(!value.integer() || value.number(), "an integer is a number");
    must(value.string().has_value() == (value.type() == GgufType::string), "a string is one");
    must(value.boolean().has_value() == (value.type() == GgufType::boolean), "a boolean is one");
  }
}

void check_tensors(GgufFile& file, std::span<const std::byte> all) {
  std::vector<std::span<const std::byte>> places;
  for (const GgufTensor& tensor : file.tensors()) {
    must(file.find(tensor.name) == &tensor, "a tensor is found by its name");
    if (!tensor.format) continue;
    if (!tensor.bytes.empty()) {
      must(tensor.bytes.data() >= all.data() && tensor.bytes.data() + tensor.bytes.size() <= all.data() + all.size(),
           "bytes lie in the file");
      places.push_back(tensor.bytes);
    }
    const WeightView stored = file.stored(tensor.name), floats = file.float32(tensor.name);
    must(std::equal(stored.shape.begin(), stored.shape.end(), tensor.shape().begin(), tensor.shape().end()) &&
             floats.shape == stored.shape,
         "shapes are the tensor's");
    must(!stored.stored || stored.stored.count == static_cast<std::int64_t>(floats.values.size()), "as many numbers");
    if (!stored.stored || floats.values.empty()) continue;
    const std::int64_t columns = tensor.shape().empty() ? 1 : tensor.shape().back();
    std::vector<float> widened(floats.values.size());
    widen_rows(stored.stored, columns, 0, stored.stored.count / columns, widened.data());
    must(std::memcmp(widened.data(), floats.values.data(), floats.values.size_bytes()) == 0, "numbers are the same");
  }
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.data() < b.data(); });
  for (std::size_t n = 1; n < places.size(); ++n) {
    must(places[n - 1].data() + places[n - 1].size() <= places[n].data(), "tensors lie apart");
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  // Where a mapped file would begin.
  std::vector<std::max_align_t> aligned(size / sizeof(std::max_align_t) + 1);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  const auto bytes = std::as_bytes(std::span(aligned)).first(size);
  try {
    models::GgufFile file = [&] {
      const test::HeapLimit limit(2 * size + kFewBytes);
      return models::GgufFile("fuzz", bytes);
    }();
    check_metadata(file);
    check_tensors(file, bytes);
  } catch (const models::FileError&) {
  }
}

}  // namespace headlight::fuzz::gguf_fuzz
