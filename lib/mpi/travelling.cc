#include "mpi/travelling.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headlight/out_of_memory.h"
#include "mpi/stopwatch.h"

namespace headlight::mpi {

Travelling::Travelling(std::vector<Stop> stops, std::vector<int> ranks, std::int64_t row_bytes, std::int64_t carry)
    : stops_(std::move(stops)), ranks_(std::move(ranks)), row_bytes_(row_bytes), carry_(carry) {
  std::int64_t longest = 0;
  for (const Stop& stop : stops_) longest = std::max(longest, stop.count);
  const auto bytes = static_cast<std::size_t>((carry_ + longest) * row_bytes_);
  try {
    for (Messages& buffer : buffers_) buffer.make(0, bytes);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("mpi: travelling blocks", 2 * bytes);
  }
}

std::byte* Travelling::rows_of(std::size_t stop) noexcept { return buffers_[stop % 2].data(0) + carry_ * row_bytes_; }

void Travelling::begin(Transport& transport, Fill fill) {
  transport_ = &transport;
  fill_ = std::move(fill);
  if (!stops_.empty()) start(0);
}

// What the buffer held two stops ago has been used here, and once it has reached all others it is free.
void Travelling::start(std::size_t stop) {
  const std::size_t n = stop % 2;
  transport_->wait(buffers_[n].requests);
  const Stop& here = stops_[stop];
  const auto bytes = static_cast<std::size_t>(here.count * row_bytes_);
  if (here.sender != transport_->rank()) {
    transport_->receive(here.sender, rows_of(stop), bytes, buffers_[n].requests);
    bytes_received_ += static_cast<double>(bytes);
    return;
  }
  fill_(here, rows_of(stop));
  for (const int rank : ranks_) {
    if (rank != transport_->rank()) transport_->send(rank, rows_of(stop), bytes, buffers_[n].requests);
  }
}

Arrived Travelling::next() {
  const std::size_t stop = next_++;
  const std::size_t n = stop % 2;
  const Stop& here = stops_[stop];
  if (here.sender != transport_->rank() && !transport_->test(buffers_[n].requests)) {
    bytes_late_ += static_cast<double>(here.count * row_bytes_);
    const Stopwatch waiting(waiting_seconds_);
    transport_->wait(buffers_[n].requests);
  }
  carried_[n] = 0;
  if (stop > 0 && stops_[stop - 1].series == here.series) {
    const Stop& before = stops_[stop - 1];
    carried_[n] = std::min(carry_, carried_[1 - n] + before.count);
    const std::int64_t bytes = carried_[n] * row_bytes_;
    if (bytes > 0) {
      const std::byte* const end = rows_of(stop - 1) + before.count * row_bytes_;
      std::memcpy(rows_of(stop) - bytes, end - bytes, static_cast<std::size_t>(bytes));
    }
  }
  if (stop + 1 < stops_.size()) start(stop + 1);
  return {rows_of(stop) - carried_[n] * row_bytes_, here.first - carried_[n], here.first, here.first + here.count,
          here.series};
}

void Travelling::finish() {
  for (Messages& buffer : buffers_) transport_->wait(buffer.requests);
}

void Travelling::poll() {
  transport_->poll();
  for (Messages& buffer : buffers_) static_cast<void>(transport_->test(buffer.requests));
}

}  // namespace headlight::mpi
