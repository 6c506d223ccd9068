#include "ops/rows/buffers.h"

#include "headlight/normalization.h"

namespace headlight {

std::size_t rows_workspace_bytes(const Engine& engine, std::int64_t columns) noexcept {
  return ops::BufferSize(columns).bytes(engine.threads());
}

void reserve_rows(Engine& engine, std::int64_t columns) {
  const runtime::Scratch memory(engine, rows_workspace_bytes(engine, columns), "reserve_rows");
}

}  // namespace headlight
