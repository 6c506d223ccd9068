// A model out of a GGUF file of any bytes: refused by a FileError, or it computes.
#include "fuzz/model_files.h"

namespace headlight::fuzz::gguf_model_fuzz {

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  load_and_embed({{"model.gguf", as_bytes(file)}});
}

}  // namespace headlight::fuzz::gguf_model_fuzz
