// The broadcast of keys and values, for a pass over rows that stay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpi/broadcast.h"
#include "mpi/call.h"
#include "mpi/records.h"
#include "ops/typed_check.h"

namespace headlight::mpi {

// Keys, and what belongs to them: scales where they, or their values, are int8.
struct Keys {
  TypedView<4> key;    // [B, n, Hkv, Dqk]
  TypedView<4> value;  // [B, n, Hkv, Dv]
  View<const float, 3> key_scales{};
  View<const float, 3> value_scales{};
};

class KeyBroadcast {
 public:
  // Keys and values of those types, for sums over blocks of that many keys. Throws OutOfMemory.
  KeyBroadcast(const Call& call, std::int64_t key_block, NumberType key = NumberType::float32,
               NumberType value = NumberType::float32)
      : call_(call),
        records_{call.here.batch,
                 call.here.key_value_heads,
                 {Field{call.here.head_dim, key}, Field{call.here.value_dim, value}, Field{scales_of(key)},
                  Field{scales_of(value)}}},
        broadcast_(call.segments_of(call.keys), call.grid.column_ranks(), records_.bytes(), call.carry(key_block),
                   call.segments_at_once()) {}

  // f(keys, received, progress) for one segment of keys after the other; f calls progress() between parts of its work.
  // `keys` are those of this rank's row of the grid.
  template <class Function>
  void run(Transport& transport, const Keys& keys, Statistics& statistics, const Function& f) {
    broadcast_.begin(transport, [&](const Segment& segment, std::byte* rows) { pack(keys, segment, rows); });
    while (!broadcast_.done()) {
      const Received received = broadcast_.next();
      const std::int64_t count = received.to - received.first;
      const Keys here = {records_(received.rows, count, 0), records_(received.rows, count, 1),
                         scales(received.rows, count, 2), scales(received.rows, count, 3)};
      f(here, received, [&] { broadcast_.progress(); });
    }
    broadcast_.finish();
    broadcast_.tell(statistics);
  }

 private:
  static std::int64_t scales_of(NumberType type) noexcept { return type == NumberType::int8 ? 1 : 0; }

  void pack(const Keys& keys, const Segment& segment, std::byte* rows) const noexcept {
    const std::int64_t place = place_in(call_.keys.of_row, segment.first);
    const auto pack_field = [&](const TypedView<4>& tensor, std::size_t field) {
      copy_rows(some_rows(tensor, place, segment.count), records_(rows, segment.count, field));
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
  RowBroadcast broadcast_;
};

}  // namespace headlight::mpi
