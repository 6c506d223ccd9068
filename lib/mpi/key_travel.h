// Keys and values on their way from rank to rank, for a pass over rows that stay.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpi/call.h"
#include "mpi/records.h"
#include "mpi/travelling.h"

namespace headlight::mpi {

class KeyTravel {
 public:
  // For sums over blocks of that many keys. Throws OutOfMemory.
  KeyTravel(const Call& call, std::int64_t key_block)
      : call_(call),
        records_{call.here.batch, call.here.key_value_heads, {call.here.head_dim, call.here.value_dim}},
        travelling_(call.stops_of(call.keys), call.grid.column_ranks(), records_.floats(), call.carry(key_block)) {}

  // f(key, value, arrived, poll) for one block of keys after the other; f calls poll() between pieces of its work. key
  // and value hold the rows of this rank's row of the grid.
  template <class Function>
  void run(Transport& transport, const View<const float, 4>& key, const View<const float, 4>& value,
           Statistics& statistics, const Function& f) {
    travelling_.begin(transport, [&](const Stop& stop, float* rows) {
      const std::int64_t place = place_in(call_.keys.of_row, stop.first);
      copy_rows(some_rows(key, place, stop.count), records_(rows, stop.count, 0));
      copy_rows(some_rows(value, place, stop.count), records_(rows, stop.count, 1));
    });
    while (!travelling_.done()) {
      const Arrived arrived = travelling_.next();
      const std::int64_t count = arrived.to - arrived.first;
      f(View<const float, 4>(records_(arrived.rows, count, 0)), View<const float, 4>(records_(arrived.rows, count, 1)),
        arrived, [&] { travelling_.poll(); });
    }
    travelling_.finish();
    travelling_.tell(statistics);
  }

 private:
  const Call& call_;
  Records<2> records_;
  Travelling travelling_;
};

}  // namespace headlight::mpi
