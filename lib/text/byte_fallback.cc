#include "text/byte_fallback.h"

#include <cstdio>

namespace headlight::text {

std::string byte_token(unsigned byte) {
  std::array<char, 8> name{};
  static_cast<void>(std::snprintf(name.data(), name.size(), "<0x%02X>", byte));
  return name.data();
}

void ByteFallback::read(const JsonValue& model, const std::function<std::uint32_t(std::string_view)>& find) {
  is_used_ = model.boolean("byte_fallback").value_or(false);
  for (unsigned byte = 0; byte < tokens_.size(); ++byte) tokens_[byte] = find(byte_token(byte));
}

}  // namespace headlight::text
