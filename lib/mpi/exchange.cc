#include "mpi/exchange.h"

#include <algorithm>
#include <utility>

namespace headlight::mpi {
namespace {

// Messages in memory of their own, which outlives them even where they never end.
class Messages {
 public:
  explicit Messages(std::size_t count) : memory_(count) {}
  ~Messages() {
    if (requests.empty()) return;
    for (std::vector<std::byte>& memory : memory_) keep_for_ever(std::move(memory));
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  float* make(std::size_t n, std::int64_t floats) {
    memory_[n].resize(static_cast<std::size_t>(floats) * sizeof(float));
    return reinterpret_cast<float*>(memory_[n].data());
  }
  [[nodiscard]] const std::vector<std::byte>& operator[](std::size_t n) const noexcept { return memory_[n]; }

  Requests requests;

 private:
  std::vector<std::vector<std::byte>> memory_;
};

// f(row of the share, row of all that the grid's row holds) for the rows of one rank.
template <class Function>
void for_each_row(const Holding& holding, int owner, const Function& f) {
  std::int64_t of_share = 0;
  for (const Block& block : holding.blocks) {
    if (block.owner != owner) continue;
    const std::int64_t place = place_in(holding.of_row, block.first);
    for (std::int64_t r = 0; r < block.count; ++r) f(of_share++, place + r);
  }
}

std::int64_t rows_of_rank(const Holding& holding, int owner) noexcept {
  std::int64_t rows = 0;
  for (const Block& block : holding.blocks) rows += block.owner == owner ? block.count : 0;
  return rows;
}

// Heads first_head … first_head + heads − 1 of a row of all samples, to or from what lies one after another.
template <class View4, class Copy>
void for_each_head(const View4& view, std::int64_t row, std::int64_t first_head, std::int64_t heads, const Copy& copy) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t h = first_head; h < first_head + heads; ++h) copy(&view(b, row, h, 0), view.extent(3));
  }
}

}  // namespace

Tensor<float, 4> gather_rows(Transport& transport, const Grid& grid, const Holding& holding,
                             const View<const float, 4>& share) {
  const std::int64_t heads = share.extent(2) / grid.head_ranks;
  const std::int64_t of_row = share.extent(0) * heads * share.extent(3);
  Tensor<float, 4> rows({share.extent(0), rows_of(holding.of_row), heads, share.extent(3)});
  const auto ranks = static_cast<std::size_t>(grid.head_ranks);
  const int me = grid.rank_at(grid.row, grid.column);
  Messages messages(2 * ranks);
  for (std::size_t n = 0; n < ranks; ++n) {
    const int peer = grid.rank_at(grid.row, static_cast<int>(n));
    float* to = messages.make(n, share.extent(1) * of_row);
    for (std::int64_t i = 0; i < share.extent(1); ++i) {
      for_each_head(share, i, static_cast<std::int64_t>(n) * heads, heads,
                    [&](const float* from, std::int64_t count) { to = std::copy_n(from, count, to); });
    }
    if (peer == me) continue;
    float* const coming = messages.make(ranks + n, rows_of_rank(holding, peer) * of_row);
    transport.send(peer, messages[n].data(), messages[n].size(), messages.requests);
    transport.receive(peer, coming, messages[ranks + n].size(), messages.requests);
  }
  transport.wait(messages.requests);
  for (std::size_t n = 0; n < ranks; ++n) {
    const int peer = grid.rank_at(grid.row, static_cast<int>(n));
    const auto* from = reinterpret_cast<const float*>(messages[peer == me ? n : ranks + n].data());
    for_each_row(holding, peer, [&](std::int64_t, std::int64_t row) {
      for_each_head(rows.view(), row, 0, heads, [&](float* to, std::int64_t count) {
        std::copy_n(from, count, to);
        from += count;
      });
    });
  }
  return rows;
}

void scatter_rows(Transport& transport, const Grid& grid, const Holding& holding, const View<const float, 4>& rows,
                  const View<float, 4>& share) {
  const std::int64_t heads = rows.extent(2);
  const std::int64_t of_row = rows.extent(0) * heads * rows.extent(3);
  const auto ranks = static_cast<std::size_t>(grid.head_ranks);
  const int me = grid.rank_at(grid.row, grid.column);
  Messages messages(2 * ranks);
  for (std::size_t n = 0; n < ranks; ++n) {
    const int peer = grid.rank_at(grid.row, static_cast<int>(n));
    float* to = messages.make(n, rows_of_rank(holding, peer) * of_row);
    for_each_row(holding, peer, [&](std::int64_t, std::int64_t row) {
      for_each_head(rows, row, 0, heads,
                    [&](const float* from, std::int64_t count) { to = std::copy_n(from, count, to); });
    });
    if (peer == me) continue;
    float* const coming = messages.make(ranks + n, share.extent(1) * of_row);
    transport.send(peer, messages[n].data(), messages[n].size(), messages.requests);
    transport.receive(peer, coming, messages[ranks + n].size(), messages.requests);
  }
  transport.wait(messages.requests);
  for (std::size_t n = 0; n < ranks; ++n) {
    const int peer = grid.rank_at(grid.row, static_cast<int>(n));
    const auto* from = reinterpret_cast<const float*>(messages[peer == me ? n : ranks + n].data());
    for (std::int64_t i = 0; i < share.extent(1); ++i) {
      for_each_head(share, i, static_cast<std::int64_t>(n) * heads, heads, [&](float* to, std::int64_t count) {
        std::copy_n(from, count, to);
        from += count;
      });
    }
  }
}

}  // namespace headlight::mpi
