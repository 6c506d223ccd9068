// attend_short() of pairs: rows of queries and of keys are words, and values lie in panels.
#pragma once

#include "kernels/attention/pairs-inl.h"
#include "kernels/attention/short-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct ShortPairs {
  using Keys = KeyPairs;
  using Values = PairValues;
  struct PanelPairs : TileMemory<false, false> {
    static HEADLIGHT_INLINE Vec multiply_add(Vec left, Vec right, Vec sum) { return dot_bf16(left, right, sum); }
  };
  template <bool kPartial>
  using Tile = RegisterTile<TileColumns, PanelPairs, EndValues<kPartial>>;
  static constexpr int kKeys = 2;

  static HEADLIGHT_INLINE ValuePanel<StoredFloat32> values(const kernels::KeyValueBlock& keys, std::int64_t column) {
    const std::int64_t in_panel = column % kValuePanel;
    const auto panel = value_panel<StoredFloat32, kKeys>(keys, column - in_panel);
    return {panel.data + in_panel, panel.stride};
  }
  // Two keys' weights become one word where the first one's lay, rounded as pair_weights() rounds them.
  static HEADLIGHT_INLINE const float* weights_of(float* weights, std::int64_t keys, std::int64_t width) {
    for (std::int64_t j = 0; j < keys; j += 2) {
      for (std::int64_t r = 0; r < width; r += kLanes) {
        const float* const at = weights + j * width + r;
        alignas(64) std::uint16_t rounded[2 * kLanes];
        store(narrow_to_bf16(load(at), j + 1 < keys ? load(at + width) : zero()), reinterpret_cast<float*>(rounded));
        store(value_pair(load_bf16(rounded), load_bf16(rounded + kLanes)), weights + j / 2 * width + r);
      }
    }
    return weights;
  }
  static HEADLIGHT_INLINE void give_weights(const kernels::AttentionBlock& block) { pair_weights(block); }
};

}  // namespace headlight::HEADLIGHT_TARGET
