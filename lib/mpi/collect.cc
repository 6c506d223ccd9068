#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "mpi/call.h"
#include "mpi/group.h"
#include "mpi/messages.h"
#include "mpi/records.h"
#include "mpi/shares.h"
#include "ops/check.h"
#include "ops/typed_check.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kCollect = "mpi::collect";

// The runs of every rank, on the root; those of others may be any numbers yet.
void bring_runs(Transport& transport, int root, std::span<const Run> runs, std::vector<std::vector<Run>>& of_ranks) {
  const auto rank_count = static_cast<std::size_t>(transport.size());
  const std::size_t own = runs.size();
  if (transport.rank() != root) {
    Messages parcel(2);
    std::memcpy(parcel.make(0, sizeof(own)), &own, sizeof(own));
    const auto bytes = std::as_bytes(runs);
    std::copy(bytes.begin(), bytes.end(), parcel.make(1, bytes.size()));
    parcel.send(transport, root, 0);
    parcel.send(transport, root, 1);
    return transport.wait(parcel.requests);
  }
  of_ranks.resize(rank_count);
  for (std::size_t rank = 0; rank < rank_count; ++rank) {
    const int from = static_cast<int>(rank);
    if (from == root) {
      of_ranks[rank].assign(runs.begin(), runs.end());
      continue;
    }
    Messages parcel(2);
    std::size_t count = 0;
    parcel.make(0, sizeof(count));
    parcel.receive(transport, from, 0);
    transport.wait(parcel.requests);
    std::memcpy(&count, parcel.data(0), sizeof(count));
    parcel.make(1, count * sizeof(Run));
    parcel.receive(transport, from, 1);
    transport.wait(parcel.requests);
    of_ranks[rank].resize(count);
    std::copy_n(parcel.data(1), count * sizeof(Run), reinterpret_cast<std::byte*>(of_ranks[rank].data()));
  }
}

// Neither below 0, and no sum of them overflows.
void check_runs(std::span<const Run> runs) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  std::int64_t rows = 0;
  for (const Run& run : runs) {
    if (run.first < 0 || run.count < 0 || run.first > kMost || run.count > kMost - rows) {
      ops::fail(kCollect, "runs have one of " + std::to_string(run.count) + " rows from row " +
                              std::to_string(run.first) + " on, expected neither below 0");
    }
    rows += run.count;
  }
}

// On the root.
void check_within(const std::vector<std::vector<Run>>& of_ranks, std::int64_t length) {
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    for (const Run& run : of_ranks[rank]) {
      if (run.first + run.count <= length) continue;
      ops::fail(kCollect, "runs of rank " + std::to_string(rank) + " end with row " +
                              std::to_string(run.first + run.count) + ", expected " + std::to_string(length) +
                              " at most, the rows of whole");
    }
  }
}

MutableTypedView<4> rows_in(const Messages& parcel, const TypedView<4>& like, std::int64_t count) noexcept {
  return {like.type, parcel.data(0), {like.extent(0), count, like.extent(2), like.extent(3)}};
}
std::size_t bytes_of_rows(const TypedView<4>& like, std::int64_t rows) noexcept {
  return static_cast<std::size_t>(rows * like.extent(0) * like.extent(2)) * bytes_of_row(like);
}

void send_rows(Transport& transport, int root, const TypedView<4>& share) {
  Messages parcel(1);
  parcel.make(0, bytes_of_rows(share, share.extent(1)));
  copy_rows(share, rows_in(parcel, share, share.extent(1)));
  parcel.send(transport, root, 0);
  transport.wait(parcel.requests);
}

// One rank after the other: memory is that of one share.
void receive_rows(Transport& transport, int from, std::span<const Run> runs, const MutableTypedView<4>& whole) {
  Messages parcel(1);
  const std::int64_t rows = rows_of(runs);
  parcel.make(0, bytes_of_rows(whole, rows));
  parcel.receive(transport, from, 0);
  transport.wait(parcel.requests);
  give_share(runs, rows_in(parcel, whole, rows), whole);
}

}  // namespace

void agree(Group& group, const std::string& problem, const Record& record) {
  Record all = {{"the call", "mpi::agree"}};
  all.insert(all.end(), record.begin(), record.end());
  group.state().transport.agree(all, problem.empty() ? std::nullopt : std::optional<std::string>(problem));
}

bool any(Group& group, bool here) {
  return group.state().transport.agree({{"the call", "mpi::any"}}, std::nullopt, here);
}

void collect(Group& group, int root, std::span<const Run> runs, const TypedView<4>& share,
             const MutableTypedView<4>& whole) {
  Transport& transport = group.state().transport;
  const std::array<std::int64_t, 3> sizes = {share.extent(0), share.extent(2), share.extent(3)};
  double seconds = 0;
  std::vector<std::vector<Run>> of_ranks;
  together(
      transport,
      {{"the call", std::string(kCollect)},
       {"root", std::to_string(root)},
       {"share", ops::describe(sizes)},
       {"the type of share", ops::type_name(share.type)}},
      seconds,
      [&] {
        if (root < 0 || root >= transport.size()) {
          ops::fail(kCollect, "root is " + std::to_string(root) + ", expected a rank of the group");
        }
        check_runs(runs);
        ops::check_view(kCollect, "share", share);
        const std::array<std::int64_t, 4> shape = {share.extent(0), rows_of(runs), share.extent(2), share.extent(3)};
        ops::check_shape(kCollect, "share", share.shape, shape, "[B, rows of the runs, H, D]");
        if (transport.rank() != root) return;
        const std::array<std::int64_t, 4> of_all = {share.extent(0), -1, share.extent(2), share.extent(3)};
        ops::check_output(kCollect, "whole", whole, of_all, "[B, L, H, D]");
        if (whole.type != share.type) {
          ops::fail(kCollect, "whole has type " + ops::type_name(whole.type) + ", expected " +
                                  ops::type_name(share.type) + ", the type of the shares");
        }
      },
      [&] { bring_runs(transport, root, runs, of_ranks); });
  // The root alone knows how long the whole is.
  together(
      transport, {{"the call", std::string(kCollect) + ": rows"}}, seconds,
      [&] {
        if (transport.rank() == root) check_within(of_ranks, whole.extent(1));
      },
      [&] {
        if (transport.rank() != root) return send_rows(transport, root, share);
        for (int rank = 0; rank < transport.size(); ++rank) {
          if (rank == root) {
            give_share(runs, share, whole);
          } else {
            receive_rows(transport, rank, of_ranks[static_cast<std::size_t>(rank)], whole);
          }
        }
      });
}

}  // namespace headlight::mpi
