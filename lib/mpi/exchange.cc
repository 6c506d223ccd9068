#include "mpi/exchange.h"

#include <algorithm>
#include <cstring>

#include "mpi/messages.h"
#include "mpi/records.h"

namespace headlight::mpi {
namespace {

// Heads first_head … first_head + heads − 1 of a row of all samples, to or from what lies one after another.
template <class AnyView, class Copy>
void for_each_head(const AnyView& view, std::int64_t row, std::int64_t first_head, std::int64_t heads,
                   const Copy& copy) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t h = first_head; h < first_head + heads; ++h)
      copy(ops::row_at(view, b, row, h), bytes_of_row(view));
  }
}

// What a rank of the grid's row and this one exchange, on the side of the share: that rank's heads of all its rows.
template <class AnyView>
struct HeadsOfShare {
  AnyView share;
  std::int64_t heads;

  [[nodiscard]] std::size_t bytes(int) const noexcept {
    return static_cast<std::size_t>(share.extent(0) * share.extent(1) * heads) * bytes_of_row(share);
  }
  template <class Copy>
  void for_each(int column, const Copy& copy) const {
    for (std::int64_t i = 0; i < share.extent(1); ++i) for_each_head(share, i, column * heads, heads, copy);
  }
};

// And on the side of the row: that rank's rows with the heads that this one works on.
template <class AnyView>
struct RowsOfRank {
  const Grid& grid;
  const Holding& holding;
  AnyView rows;

  [[nodiscard]] std::size_t bytes(int column) const noexcept {
    std::int64_t count = 0;
    for_each_block(column, [&](const Block& block) { count += block.count; });
    return static_cast<std::size_t>(rows.extent(0) * count * rows.extent(2)) * bytes_of_row(rows);
  }
  template <class Copy>
  void for_each(int column, const Copy& copy) const {
    for_each_block(column, [&](const Block& block) {
      const std::int64_t place = place_in(holding.of_row, block.first);
      for (std::int64_t r = 0; r < block.count; ++r) for_each_head(rows, place + r, 0, rows.extent(2), copy);
    });
  }

 private:
  template <class Function>
  void for_each_block(int column, const Function& f) const {
    for (const Block& block : holding.blocks) {
      if (block.owner == grid.rank_at(grid.row, column)) f(block);
    }
  }
};

// Each rank of the grid's row gets what `from` has for it, and what it sends goes into `to`.
template <class From, class To>
void exchange(Transport& transport, const Grid& grid, const From& from, const To& to) {
  const int ranks = grid.head_ranks;
  const auto going = [](int column) { return static_cast<std::size_t>(column); };
  const auto coming = [&](int column) {
    return static_cast<std::size_t>(column == grid.column ? column : ranks + column);
  };
  Messages messages(static_cast<std::size_t>(2 * ranks));
  for (int column = 0; column < ranks; ++column) {
    std::byte* at = messages.make(going(column), from.bytes(column));
    from.for_each(column, [&](const void* row, std::size_t bytes) {
      if (bytes > 0) std::memcpy(at, row, bytes);
      at += bytes;
    });
    if (column == grid.column) continue;
    messages.make(coming(column), to.bytes(column));
    messages.send(transport, grid.rank_at(grid.row, column), going(column));
    messages.receive(transport, grid.rank_at(grid.row, column), coming(column));
  }
  transport.wait(messages.requests);
  for (int column = 0; column < ranks; ++column) {
    const std::byte* at = messages.data(coming(column));
    to.for_each(column, [&](void* row, std::size_t bytes) {
      if (bytes > 0) std::memcpy(row, at, bytes);
      at += bytes;
    });
  }
}

// As many rows as this rank's row of the grid holds, of the heads that it works on.
TypedView<4>::Shape shape_of_row(const Grid& grid, const Holding& holding, const TypedView<4>& share) {
  return {share.extent(0), rows_of(holding.of_row), share.extent(2) / grid.head_ranks, share.extent(3)};
}

void gather(Transport& transport, const Grid& grid, const Holding& holding, const TypedView<4>& share,
            const MutableTypedView<4>& rows) {
  exchange(transport, grid, HeadsOfShare<TypedView<4>>{share, rows.extent(2)},
           RowsOfRank<MutableTypedView<4>>{grid, holding, rows});
}

}  // namespace

TypedTensor gather_rows(Transport& transport, const Grid& grid, const Holding& holding, const TypedView<4>& share) {
  TypedTensor rows(share.type, shape_of_row(grid, holding, share));
  gather(transport, grid, holding, share, rows.view());
  return rows;
}

Tensor<float, 4> gather_floats(Transport& transport, const Grid& grid, const Holding& holding,
                               const View<const float, 4>& share) {
  Tensor<float, 4> rows(shape_of_row(grid, holding, share));
  gather(transport, grid, holding, share, rows);
  return rows;
}

void scatter_rows(Transport& transport, const Grid& grid, const Holding& holding, const TypedView<4>& rows,
                  const MutableTypedView<4>& share) {
  exchange(transport, grid, RowsOfRank<TypedView<4>>{grid, holding, rows},
           HeadsOfShare<MutableTypedView<4>>{share, rows.extent(2)});
}

void find_largest(Transport& transport, std::span<std::int64_t> numbers) {
  const auto ranks = static_cast<std::size_t>(transport.size()), own = static_cast<std::size_t>(transport.rank());
  Messages messages(ranks);
  std::memcpy(messages.make(own, numbers.size_bytes()), numbers.data(), numbers.size_bytes());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (rank == own) continue;
    messages.make(rank, numbers.size_bytes());
    messages.receive(transport, static_cast<int>(rank), rank);
    messages.send(transport, static_cast<int>(rank), own);
  }
  transport.wait(messages.requests);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      std::int64_t theirs = 0;
      std::memcpy(&theirs, messages.data(rank) + n * sizeof(theirs), sizeof(theirs));
      numbers[n] = std::max(numbers[n], theirs);
    }
  }
}

}  // namespace headlight::mpi
