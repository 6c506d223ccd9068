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

constexpr std::string_view kName = "mpi::collect";

// What a rank sends to the root: how many runs, the runs, and their rows.
enum Part : std::size_t { count_of_runs, runs_of_share, rows_of_share, parts };

MutableTypedView<4> rows_in(const Messages& parcel, const TypedView<4>& like, std::int64_t count) noexcept {
  return {like.type, parcel.data(rows_of_share), {like.extent(0), count, like.extent(2), like.extent(3)}};
}

void send(Transport& transport, int root, std::span<const Run> runs, const TypedView<4>& share) {
  Messages parcel(parts);
  const std::size_t count = runs.size();
  std::memcpy(parcel.make(count_of_runs, sizeof(count)), &count, sizeof(count));
  const auto bytes = std::as_bytes(runs);
  std::copy(bytes.begin(), bytes.end(), parcel.make(runs_of_share, bytes.size()));
  parcel.make(rows_of_share, static_cast<std::size_t>(share.size()) * bytes_of(share.type));
  copy_rows(share, rows_in(parcel, share, share.extent(1)));
  for (const Part part : {count_of_runs, runs_of_share, rows_of_share}) parcel.send(transport, root, part);
  transport.wait(parcel.requests);
}

// One rank after the other: memory is that of one share.
void receive(Transport& transport, int from, const MutableTypedView<4>& whole) {
  Messages parcel(parts);
  const auto receive_part = [&](Part part, std::size_t bytes) {
    parcel.make(part, bytes);
    parcel.receive(transport, from, part);
    transport.wait(parcel.requests);
  };
  std::size_t count = 0;
  receive_part(count_of_runs, sizeof(count));
  std::memcpy(&count, parcel.data(count_of_runs), sizeof(count));
  std::vector<Run> runs(count);
  receive_part(runs_of_share, count * sizeof(Run));
  std::copy_n(parcel.data(runs_of_share), count * sizeof(Run), reinterpret_cast<std::byte*>(runs.data()));
  const std::int64_t rows = rows_of(runs);
  receive_part(rows_of_share, static_cast<std::size_t>(rows * whole.extent(0) * whole.extent(2)) * bytes_of_row(whole));
  give_share(runs, rows_in(parcel, whole, rows), whole);
}

}  // namespace

void agree(Group& group, const std::string& problem) {
  group.state().transport.agree({{"the call", "mpi::agree"}},
                                problem.empty() ? std::nullopt : std::optional<std::string>(problem));
}

void collect(Group& group, int root, std::span<const Run> runs, const TypedView<4>& share,
             const MutableTypedView<4>& whole) {
  Transport& transport = group.state().transport;
  const std::array<std::int64_t, 3> sizes = {share.extent(0), share.extent(2), share.extent(3)};
  double seconds = 0;
  together(
      transport,
      {{"the call", std::string(kName)},
       {"root", std::to_string(root)},
       {"share", ops::describe(sizes)},
       {"the type of share", ops::type_name(share.type)}},
      seconds,
      [&] {
        if (root < 0 || root >= transport.size()) {
          ops::fail(kName, "root is " + std::to_string(root) + ", expected a rank of the group");
        }
        ops::check_view(kName, "share", share);
        const std::array<std::int64_t, 4> shape = {share.extent(0), rows_of(runs), share.extent(2), share.extent(3)};
        ops::check_shape(kName, "share", share.shape, shape, "[B, rows of the runs, H, D]");
        if (transport.rank() != root) return;
        const std::array<std::int64_t, 4> of_all = {share.extent(0), -1, share.extent(2), share.extent(3)};
        ops::check_output(kName, "whole", whole, of_all, "[B, L, H, D]");
        if (whole.type != share.type) {
          ops::fail(kName, "whole has type " + ops::type_name(whole.type) + ", expected " + ops::type_name(share.type) +
                               ", the type of the shares");
        }
      },
      [&] {
        if (transport.rank() != root) return send(transport, root, runs, share);
        for (int rank = 0; rank < transport.size(); ++rank) {
          if (rank == root) {
            give_share(runs, share, whole);
          } else {
            receive(transport, rank, whole);
          }
        }
      });
}

}  // namespace headlight::mpi
