#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi/call.h"
#include "mpi/group.h"
#include "mpi/records.h"
#include "mpi/shares.h"
#include "ops/check.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kName = "mpi::collect";

// The runs and the rows of one rank, on their way to the root.
struct Parcel {
  std::vector<std::byte> runs;
  std::vector<std::byte> rows;
  Requests requests;

  Parcel() = default;
  ~Parcel() {
    if (requests.empty()) return;
    keep_for_ever(std::move(runs));
    keep_for_ever(std::move(rows));
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;

  [[nodiscard]] View<float, 4> share(const View<const float, 4>& like, std::int64_t count) noexcept {
    return {reinterpret_cast<float*>(rows.data()), {like.extent(0), count, like.extent(2), like.extent(3)}};
  }
};

void send(Transport& transport, int root, std::span<const Run> runs, const View<const float, 4>& share) {
  Parcel parcel;
  const auto bytes = std::as_bytes(runs);
  parcel.runs.assign(bytes.begin(), bytes.end());
  parcel.rows.resize(static_cast<std::size_t>(share.size()) * sizeof(float));
  copy_rows(share, parcel.share(share, share.extent(1)));
  transport.send(root, parcel.runs.data(), parcel.runs.size(), parcel.requests);
  transport.send(root, parcel.rows.data(), parcel.rows.size(), parcel.requests);
  transport.wait(parcel.requests);
}

// One rank after the other: memory is that of one share.
void receive(Transport& transport, int from, std::size_t count, const View<float, 4>& whole) {
  Parcel parcel;
  parcel.runs.resize(count * sizeof(Run));
  transport.receive(from, parcel.runs.data(), parcel.runs.size(), parcel.requests);
  transport.wait(parcel.requests);
  std::vector<Run> runs(count);
  std::copy_n(parcel.runs.data(), parcel.runs.size(), reinterpret_cast<std::byte*>(runs.data()));
  const std::int64_t rows = rows_of(runs);
  parcel.rows.resize(static_cast<std::size_t>(rows * whole.extent(0) * whole.extent(2) * whole.extent(3)) *
                     sizeof(float));
  transport.receive(from, parcel.rows.data(), parcel.rows.size(), parcel.requests);
  transport.wait(parcel.requests);
  give_share(runs, parcel.share(whole, rows), whole);
}

}  // namespace

void agree(Group& group, const std::string& problem) {
  group.state().transport.agree({{"the call", "mpi::agree"}},
                                problem.empty() ? std::nullopt : std::optional<std::string>(problem));
}

void collect(Group& group, int root, std::span<const Run> runs, View<const float, 4> share, View<float, 4> whole) {
  Transport& transport = group.state().transport;
  const std::array<std::int64_t, 3> sizes = {share.extent(0), share.extent(2), share.extent(3)};
  double seconds = 0;
  std::vector<std::size_t> counts(static_cast<std::size_t>(transport.size()));
  together(
      transport, {{"the call", std::string(kName)}, {"root", std::to_string(root)}, {"share", ops::describe(sizes)}},
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
      },
      [&] {
        std::size_t count = runs.size();
        Requests requests;
        if (transport.rank() != root) {
          transport.send(root, &count, sizeof(count), requests);
          transport.wait(requests);
          return send(transport, root, runs, share);
        }
        for (int rank = 0; rank < transport.size(); ++rank) {
          if (rank == root) {
            give_share(runs, share, whole);
            continue;
          }
          transport.receive(rank, &counts[static_cast<std::size_t>(rank)], sizeof(count), requests);
          transport.wait(requests);
          receive(transport, rank, counts[static_cast<std::size_t>(rank)], whole);
        }
      });
}

}  // namespace headlight::mpi
