// Keys and values on their way from rank to rank, for a pass over rows that stay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpi/call.h"
#include "mpi/records.h"
#include "mpi/travelling.h"
#include "ops/typed_check.h"

namespace headlight::mpi {

// Keys, and what belongs to them: scales where they, or their values, are int8.
struct Keys {
  TypedView<4> key;    // [B, n, Hkv, Dqk]
  TypedView<4> value;  // [B, n, Hkv, Dv]
  View<const float, 3> key_scales{};
  View<const float, 3> value_scales{};
};

class KeyTravel {
 public:
  // Keys and values of those types, for sums over blocks of that many keys. Throws OutOfMemory.
  KeyTravel(const Call& call, std::int64_t key_block, NumberType key = NumberType::float32,
            NumberType value = NumberType::float32)
      : call_(call),
        records_{call.here.batch,
                 call.here.key_value_heads,
                 {Field{call.here.head_dim, key}, Field{call.here.value_dim, value}, Field{scales_of(key)},
                  Field{scales_of(value)}}},
        travelling_(call.pieces_of(call.keys), call.grid.column_ranks(), records_.bytes(), call.carry(key_block),
                    call.pieces_at_once()) {}

  // f(keys, arrived, poll) for one block of keys after the other; f calls poll() between pieces of its work. `keys` are
  // those of this rank's row of the grid.
  template <class Function>
  void run(Transport& transport, const Keys& keys, Statistics& statistics, const Function& f) {
    travelling_.begin(transport, [&](const TravellingPiece& piece, std::byte* rows) { pack(keys, piece, rows); });
    while (!travelling_.done()) {
      const Arrived arrived = travelling_.next();
      const std::int64_t count = arrived.to - arrived.first;
      const Keys here = {records_(arrived.rows, count, 0), records_(arrived.rows, count, 1),
                         scales(arrived.rows, count, 2), scales(arrived.rows, count, 3)};
      f(here, arrived, [&] { travelling_.poll(); });
    }
    travelling_.finish();
    travelling_.tell(statistics);
  }

 private:
  static std::int64_t scales_of(NumberType type) noexcept { return type == NumberType::int8 ? 1 : 0; }

  void pack(const Keys& keys, const TravellingPiece& piece, std::byte* rows) const noexcept {
    const std::int64_t place = place_in(call_.keys.of_row, piece.first);
    const auto pack_field = [&](const TypedView<4>& tensor, std::size_t field) {
      copy_rows(some_rows(tensor, place, piece.count), records_(rows, piece.count, field));
    };
    pack_field(keys.key, 0);
    pack_field(keys.value, 1);
    if (records_.fields[2].dim > 0) pack_field(ops::each_scale(keys.key_scales), 2);
    if (records_.fields[3].dim > 0) pack_field(ops::each_scale(keys.value_scales), 3);
  }
  // [B, n, Hkv].
  [[nodiscard]] View<const float, 3> scales(std::byte* rows, std::int64_t count, std::size_t field) const noexcept {
    return records_.fields[field].dim == 0 ? View<const float, 3>() : as_scales(records_(rows, count, field));
  }

  const Call& call_;
  Records<4> records_;
  Travelling travelling_;
};

}  // namespace headlight::mpi
