#include "mpi/travelling.h"

#include <algorithm>
#include <bit>
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
  own_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), transport.rank()) - ranks_.begin());
  fill_ = std::move(fill);
  if (!stops_.empty()) start(0);
}

int Travelling::place_in_tree(const Stop& stop) const noexcept {
  const auto ranks = static_cast<int>(ranks_.size());
  return (own_ - stop.sender + ranks) % ranks;
}

int Travelling::rank_at(const Stop& stop, int place) const noexcept {
  return ranks_[static_cast<std::size_t>(stop.sender + place) % ranks_.size()];
}

// What the buffer held two stops ago has been used here, and once it has been sent on it is free.
void Travelling::start(std::size_t stop) {
  const std::size_t n = stop % 2;
  transport_->wait(buffers_[n].requests);
  const Stop& here = stops_[stop];
  sent_on_ = false;
  const int place = place_in_tree(here);
  if (place == 0) {
    fill_(here, rows_of(stop));
    return send_on(stop);
  }
  const auto bytes = static_cast<std::size_t>(here.count * row_bytes_);
  transport_->receive(rank_at(here, place & (place - 1)), rows_of(stop), bytes, buffers_[n].requests);
  bytes_received_ += static_cast<double>(bytes);
}

// Place p has the block from p without its lowest bit, and sends it to p + 2^k for every 2^k below that bit, the ones
// with most places behind them first.
void Travelling::send_on(std::size_t stop) {
  sent_on_ = true;
  const Stop& here = stops_[stop];
  const int place = place_in_tree(here);
  const auto ranks = static_cast<int>(ranks_.size());
  const auto own_bit = static_cast<int>(place == 0 ? std::bit_ceil(static_cast<unsigned>(ranks))
                                                   : static_cast<unsigned>(place & -place));
  for (int bit = own_bit / 2; bit > 0; bit /= 2) {
    if (place + bit >= ranks) continue;
    transport_->send(rank_at(here, place + bit), rows_of(stop), static_cast<std::size_t>(here.count * row_bytes_),
                     buffers_[stop % 2].requests);
  }
}

Arrived Travelling::next() {
  const std::size_t stop = next_++;
  const std::size_t n = stop % 2;
  const Stop& here = stops_[stop];
  if (!sent_on_) {
    if (!transport_->test(buffers_[n].requests)) {
      bytes_late_ += static_cast<double>(here.count * row_bytes_);
      const Stopwatch waiting(waiting_seconds_);
      transport_->wait(buffers_[n].requests);
    }
    send_on(stop);
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
  if (next_ < stops_.size() && !sent_on_ && transport_->test(buffers_[next_ % 2].requests)) send_on(next_);
}

}  // namespace headlight::mpi
