// The index of weights in several files, beside two sound ones, "a" with the tensors "x" and "y", "b" with "z": refused
// by a FileError, or it names plain files alone, and says of just these tensors where they are. Reading it takes no
// more memory than twice the file.
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz/bytes.h"
#include "fuzz/memory_file.h"
#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "models/tensor_files/safetensors_index.h"
#include "support/heap_watch.h"

namespace headlight::fuzz::safetensors_index_fuzz {
namespace {

using models::SafetensorsFile;

std::string file_of(const Weights& weights) {
  MemoryFile file;
  file.fill("");
  models::write_safetensors(file.path(), weights);
  return file.text();
}

void check(const std::string& text) {
  static const float numbers[] = {1, 2};
  static const std::string a = file_of({{"x", {{2}, numbers}}, {"y", {{1, 2}, numbers}}});
  static const std::string b = file_of({{"z", {{2}, numbers}}});
  const models::SafetensorsIndex index = [&] {
    const test::HeapLimit limit(2 * text.size() + kFewBytes);
    return models::parse_safetensors_index("fuzz", text);
  }();
  const SafetensorsFile joined = models::join_shards(index, [](const std::string& name) {
    must(!name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos, "a plain name");
    must(std::strlen(name.c_str()) == name.size(), "a name without zeros");
    if (name != "a" && name != "b") throw models::FileError(name, "is not there");
    return SafetensorsFile(name, std::as_bytes(std::span(name == "a" ? a : b)));
  });
  must(joined.tensors().size() == index.weight_map.members().size(), "tensors are those of the index");
  for (const auto& [tensor, shard] : index.weight_map.members()) {
    must(joined.find(tensor) != nullptr, "each is found");
    must(shard.as_string() == (tensor == "z" ? "b" : "a"), "each is where it is");
  }
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  try {
    check(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const models::FileError&) {
  }
}

}  // namespace headlight::fuzz::safetensors_index_fuzz
