#include "mpi/broadcast.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "headlight/out_of_memory.h"
#include "mpi/stopwatch.h"

namespace headlight::mpi {

RowBroadcast::RowBroadcast(std::vector<Segment> segments, std::vector<int> ranks, std::int64_t row_bytes,
                           std::int64_t carry, std::size_t buffers)
    : segments_(std::move(segments)),
      ranks_(std::move(ranks)),
      row_bytes_(row_bytes),
      carry_(carry),
      buffers_(buffers) {
  std::int64_t longest = 0;
  for (const Segment& segment : segments_) longest = std::max(longest, segment.count);
  const auto bytes = static_cast<std::size_t>((carry_ + longest) * row_bytes_);
  try {
    for (Buffer& buffer : buffers_) buffer.memory.make(0, bytes);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("mpi: broadcast rows", buffers * bytes);
  }
}

void RowBroadcast::begin(Transport& transport, Fill fill) {
  transport_ = &transport;
  own_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), transport.rank()) - ranks_.begin());
  fill_ = std::move(fill);
  next_ = started_ = 0;
  bytes_received_ = bytes_late_ = waiting_seconds_ = 0;
  while (started_ < std::min(segments_.size(), buffers_.size() - 1)) start(started_++);
}

int RowBroadcast::place_in_tree(const Segment& segment) const noexcept {
  const auto ranks = static_cast<int>(ranks_.size());
  return (own_ - segment.root + ranks) % ranks;
}

int RowBroadcast::rank_at(const Segment& segment, int place) const noexcept {
  return ranks_[static_cast<std::size_t>(segment.root + place) % ranks_.size()];
}

// What the buffer held before has been used here, and once it has been sent on it is free.
void RowBroadcast::start(std::size_t segment) {
  Buffer& buffer = buffer_of(segment);
  transport_->wait(buffer.memory.requests);
  const Segment& here = segments_[segment];
  buffer.sent_on = false;
  const int place = place_in_tree(here);
  if (place == 0) {
    fill_(here, rows_of(segment));
    return send_on(segment);
  }
  const auto bytes = static_cast<std::size_t>(here.count * row_bytes_);
  transport_->receive(rank_at(here, place & (place - 1)), rows_of(segment), bytes, buffer.memory.requests,
                      channel_of(segment));
  bytes_received_ += static_cast<double>(bytes);
}

// Place p has the segment from p without its lowest bit, and sends it to p + 2^k for every 2^k below that bit, the ones
// with most places behind them first.
void RowBroadcast::send_on(std::size_t segment) {
  buffer_of(segment).sent_on = true;
  const Segment& here = segments_[segment];
  const int place = place_in_tree(here);
  const auto ranks = static_cast<int>(ranks_.size());
  const auto own_bit = static_cast<int>(place == 0 ? std::bit_ceil(static_cast<unsigned>(ranks))
                                                   : static_cast<unsigned>(place & -place));
  for (int bit = own_bit / 2; bit > 0; bit /= 2) {
    if (place + bit >= ranks) continue;
    transport_->send(rank_at(here, place + bit), rows_of(segment), static_cast<std::size_t>(here.count * row_bytes_),
                     buffer_of(segment).memory.requests, channel_of(segment));
  }
}

Received RowBroadcast::next() {
  const std::size_t segment = next_++;
  Buffer& buffer = buffer_of(segment);
  const Segment& here = segments_[segment];
  if (!buffer.sent_on) {
    if (!transport_->test(buffer.memory.requests)) {
      bytes_late_ += static_cast<double>(here.count * row_bytes_);
      const Stopwatch waiting(waiting_seconds_);
      transport_->wait(buffer.memory.requests);
    }
    send_on(segment);
  }
  buffer.carried = 0;
  if (segment > 0 && segments_[segment - 1].series == here.series) {
    const Segment& before = segments_[segment - 1];
    buffer.carried = std::min(carry_, buffer_of(segment - 1).carried + before.count);
    const std::int64_t bytes = buffer.carried * row_bytes_;
    if (bytes > 0) {
      const std::byte* const end = rows_of(segment - 1) + before.count * row_bytes_;
      std::memcpy(rows_of(segment) - bytes, end - bytes, static_cast<std::size_t>(bytes));
    }
  }
  if (started_ < segments_.size()) start(started_++);
  return {rows_of(segment) - buffer.carried * row_bytes_, here.first - buffer.carried, here.first,
          here.first + here.count, here.series};
}

void RowBroadcast::finish() {
  for (Buffer& buffer : buffers_) transport_->wait(buffer.memory.requests);
}

void RowBroadcast::progress() {
  transport_->progress();
  for (Buffer& buffer : buffers_) {
    if (buffer.sent_on) static_cast<void>(transport_->test(buffer.memory.requests));
  }
  for (std::size_t segment = next_; segment < started_; ++segment) {
    if (!buffer_of(segment).sent_on && transport_->test(buffer_of(segment).memory.requests)) send_on(segment);
  }
}

}  // namespace headlight::mpi
