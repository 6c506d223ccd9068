#include "mpi/group.h"

#include <utility>

namespace headlight::mpi {

Error::Error(int rank, const std::string& reason)
    : std::runtime_error("rank " + std::to_string(rank) + ": " + reason), rank_(rank) {}
Error::~Error() = default;

Group::Group(MPI_Comm communicator, const GroupOptions& options)
    : state_(std::make_unique<State>(communicator, options)) {}

Group::~Group() {
  // What MPI may still write to stays; see Transport.
  if (state_ != nullptr && !state_->transport.close()) static_cast<void>(state_.release());
}

Group::Group(Group&& other) noexcept = default;
Group& Group::operator=(Group&& other) noexcept {
  Group old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

int Group::rank() const noexcept { return state_->transport.rank(); }
int Group::size() const noexcept { return state_->transport.size(); }

}  // namespace headlight::mpi
