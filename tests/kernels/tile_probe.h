// The register tile made callable from code that is compiled for any machine: one table per instruction set.
#pragma once

#include <cstdint>

#include "headlight/engine.h"

namespace headlight::test {

enum class TileA : std::uint8_t { rows, columns };  // TileRows, TileColumns
// TileVectors, TileMemory twice, GemmPanels, and TileMemory of numbers of 16 bits.
enum class TileB : std::uint8_t { vectors, memory, partial, panels, bfloat16, float16 };

// sums[r · sums_stride + j] ← Σ_k a(r, k) · b(k, j) for r < rows and j < vectors · lanes.
struct TileProduct {
  TileA of_a;
  TileB of_b;
  std::int64_t rows;
  std::int64_t vectors;
  std::int64_t depth;
  const float* a;
  std::int64_t a_stride;
  const float* b;
  const std::uint16_t* narrow_b;  // of 16 bits, in its place
  std::int64_t b_stride;
  std::int64_t panel_stride;  // of panels
  int last_lanes;             // of the last vector of `partial`
  float* sums;
  std::int64_t sums_stride;
};

struct TileProbe {
  int lanes;
  int most_rows;
  int most_vectors;
  int panel_vectors;
  // False where no kernel takes that B with that A.
  bool (*run)(const TileProduct& product) noexcept;
};

[[nodiscard]] const TileProbe& tile_probe(Isa isa);

}  // namespace headlight::test
