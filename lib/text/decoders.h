// How tokens become text again.
#pragma once

#include <memory>

#include "text/parts.h"
#include "text/table_limit.h"

namespace headlight::text {

// `part` of the file: an object with the type ByteLevel, Metaspace, WordPiece, ByteFallback, Fuse, Strip, Replace,
// BPEDecoder or Sequence. Refuses others.
[[nodiscard]] std::unique_ptr<Decoder> read_decoder(const JsonValue& part, TableLimit& limit);

}  // namespace headlight::text
