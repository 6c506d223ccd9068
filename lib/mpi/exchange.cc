#include "mpi/exchange.h"

#include <algorithm>

#include "mpi/messages.h"

namespace headlight::mpi {
namespace {

// Heads first_head … first_head + heads − 1 of a row of all samples, to or from what lies one after another.
template <class View4, class Copy>
void for_each_head(const View4& view, std::int64_t row, std::int64_t first_head, std::int64_t heads, const Copy& copy) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t h = first_head; h < first_head + heads; ++h) copy(&view(b, row, h, 0), view.extent(3));
  }
}

// What a rank of the grid's row and this one exchange, on the side of the share: that rank's heads of all its rows.
template <class View4>
struct HeadsOfShare {
  View4 share;
  std::int64_t heads;

  [[nodiscard]] std::int64_t floats(int) const noexcept {
    return share.extent(0) * share.extent(1) * heads * share.extent(3);
  }
  template <class Copy>
  void for_each(int column, const Copy& copy) const {
    for (std::int64_t i = 0; i < share.extent(1); ++i) for_each_head(share, i, column * heads, heads, copy);
  }
};

// And on the side of the row: that rank's rows with the heads that this one works on.
template <class View4>
struct RowsOfRank {
  const Grid& grid;
  const Holding& holding;
  View4 rows;

  [[nodiscard]] std::int64_t floats(int column) const noexcept {
    std::int64_t count = 0;
    for_each_block(column, [&](const Block& block) { count += block.count; });
    return rows.extent(0) * count * rows.extent(2) * rows.extent(3);
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
  const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); };
  const auto going = [](int column) { return static_cast<std::size_t>(column); };
  const auto coming = [&](int column) {
    return static_cast<std::size_t>(column == grid.column ? column : ranks + column);
  };
  Messages messages(static_cast<std::size_t>(2 * ranks));
  for (int column = 0; column < ranks; ++column) {
    messages.make(going(column), bytes(from.floats(column)));
    float* at = messages.floats(going(column));
    from.for_each(column, [&](const float* row, std::int64_t count) { at = std::copy_n(row, count, at); });
    if (column == grid.column) continue;
    messages.make(coming(column), bytes(to.floats(column)));
    messages.send(transport, grid.rank_at(grid.row, column), going(column));
    messages.receive(transport, grid.rank_at(grid.row, column), coming(column));
  }
  transport.wait(messages.requests);
  for (int column = 0; column < ranks; ++column) {
    const float* at = messages.floats(coming(column));
    to.for_each(column, [&](float* row, std::int64_t count) {
      std::copy_n(at, count, row);
      at += count;
    });
  }
}

}  // namespace

Tensor<float, 4> gather_rows(Transport& transport, const Grid& grid, const Holding& holding,
                             const View<const float, 4>& share) {
  const std::int64_t heads = share.extent(2) / grid.head_ranks;
  Tensor<float, 4> rows({share.extent(0), rows_of(holding.of_row), heads, share.extent(3)});
  exchange(transport, grid, HeadsOfShare<View<const float, 4>>{share, heads},
           RowsOfRank<View<float, 4>>{grid, holding, rows});
  return rows;
}

void scatter_rows(Transport& transport, const Grid& grid, const Holding& holding, const View<const float, 4>& rows,
                  const View<float, 4>& share) {
  exchange(transport, grid, RowsOfRank<View<const float, 4>>{grid, holding, rows},
           HeadsOfShare<View<float, 4>>{share, rows.extent(2)});
}

}  // namespace headlight::mpi
