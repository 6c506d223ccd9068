#include "mpi/travelling.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "headlight/out_of_memory.h"
#include "mpi/stopwatch.h"

namespace headlight::mpi {

Travelling::Travelling(std::vector<TravellingPiece> pieces, std::vector<int> ranks, std::int64_t row_bytes,
                       std::int64_t carry, std::size_t buffers)
    : pieces_(std::move(pieces)), ranks_(std::move(ranks)), row_bytes_(row_bytes), carry_(carry), buffers_(buffers) {
  std::int64_t longest = 0;
  for (const TravellingPiece& piece : pieces_) longest = std::max(longest, piece.count);
  const auto bytes = static_cast<std::size_t>((carry_ + longest) * row_bytes_);
  try {
    for (Buffer& buffer : buffers_) buffer.memory.make(0, bytes);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("mpi: travelling blocks", buffers * bytes);
  }
}

void Travelling::begin(Transport& transport, Fill fill) {
  transport_ = &transport;
  own_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), transport.rank()) - ranks_.begin());
  fill_ = std::move(fill);
  next_ = started_ = 0;
  bytes_received_ = bytes_late_ = waiting_seconds_ = 0;
  while (started_ < std::min(pieces_.size(), buffers_.size() - 1)) start(started_++);
}

int Travelling::place_in_tree(const TravellingPiece& piece) const noexcept {
  const auto ranks = static_cast<int>(ranks_.size());
  return (own_ - piece.sender + ranks) % ranks;
}

int Travelling::rank_at(const TravellingPiece& piece, int place) const noexcept {
  return ranks_[static_cast<std::size_t>(piece.sender + place) % ranks_.size()];
}

// What the buffer held before has been used here, and once it has been sent on it is free.
void Travelling::start(std::size_t piece) {
  Buffer& buffer = buffer_of(piece);
  transport_->wait(buffer.memory.requests);
  const TravellingPiece& here = pieces_[piece];
  buffer.sent_on = false;
  const int place = place_in_tree(here);
  if (place == 0) {
    fill_(here, rows_of(piece));
    return send_on(piece);
  }
  const auto bytes = static_cast<std::size_t>(here.count * row_bytes_);
  transport_->receive(rank_at(here, place & (place - 1)), rows_of(piece), bytes, buffer.memory.requests,
                      channel_of(piece));
  bytes_received_ += static_cast<double>(bytes);
}

// Place p has the block from p without its lowest bit, and sends it to p + 2^k for every 2^k below that bit, the ones
// with most places behind them first.
void Travelling::send_on(std::size_t piece) {
  buffer_of(piece).sent_on = true;
  const TravellingPiece& here = pieces_[piece];
  const int place = place_in_tree(here);
  const auto ranks = static_cast<int>(ranks_.size());
  const auto own_bit = static_cast<int>(place == 0 ? std::bit_ceil(static_cast<unsigned>(ranks))
                                                   : static_cast<unsigned>(place & -place));
  for (int bit = own_bit / 2; bit > 0; bit /= 2) {
    if (place + bit >= ranks) continue;
    transport_->send(rank_at(here, place + bit), rows_of(piece), static_cast<std::size_t>(here.count * row_bytes_),
                     buffer_of(piece).memory.requests, channel_of(piece));
  }
}

Arrived Travelling::next() {
  const std::size_t piece = next_++;
  Buffer& buffer = buffer_of(piece);
  const TravellingPiece& here = pieces_[piece];
  if (!buffer.sent_on) {
    if (!transport_->test(buffer.memory.requests)) {
      bytes_late_ += static_cast<double>(here.count * row_bytes_);
      const Stopwatch waiting(waiting_seconds_);
      transport_->wait(buffer.memory.requests);
    }
    send_on(piece);
  }
  buffer.carried = 0;
  if (piece > 0 && pieces_[piece - 1].series == here.series) {
    const TravellingPiece& before = pieces_[piece - 1];
    buffer.carried = std::min(carry_, buffer_of(piece - 1).carried + before.count);
    const std::int64_t bytes = buffer.carried * row_bytes_;
    if (bytes > 0) {
      const std::byte* const end = rows_of(piece - 1) + before.count * row_bytes_;
      std::memcpy(rows_of(piece) - bytes, end - bytes, static_cast<std::size_t>(bytes));
    }
  }
  if (started_ < pieces_.size()) start(started_++);
  return {rows_of(piece) - buffer.carried * row_bytes_, here.first - buffer.carried, here.first,
          here.first + here.count, here.series};
}

void Travelling::finish() {
  for (Buffer& buffer : buffers_) transport_->wait(buffer.memory.requests);
}

void Travelling::poll() {
  transport_->poll();
  for (Buffer& buffer : buffers_) {
    if (buffer.sent_on) static_cast<void>(transport_->test(buffer.memory.requests));
  }
  for (std::size_t piece = next_; piece < started_; ++piece) {
    if (!buffer_of(piece).sent_on && transport_->test(buffer_of(piece).memory.requests)) send_on(piece);
  }
}

}  // namespace headlight::mpi
