// A pipelined broadcast of a tensor's rows: segments in an order that all ranks agree on, each on its way from the rank
// that holds it to all others while they work on those before. A segment goes down a binomial tree whose root holds it:
// a rank that has it sends it on, so that all have it after ⌈log₂ ranks⌉ messages one behind the other, and no rank
// sends more than that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpi/messages.h"
#include "mpi/transport.h"

namespace headlight::mpi {

// Rows of one message, and the rank that holds them. Those of one series follow each other without a gap.
struct Segment {
  std::int64_t first;
  std::int64_t count;
  int root;  // its place among the ranks of the broadcast
  std::int64_t series;
};

// Rows first … to − 1 of the tensor: those that have just come, from `from` on, and as many of the series before them
// as were asked for or there are.
struct Received {
  std::byte* rows;
  std::int64_t first;
  std::int64_t from;
  std::int64_t to;
  std::int64_t series;
};

class RowBroadcast {
 public:
  // Writes the rows of a segment where they are to be sent from.
  using Fill = std::function<void(const Segment& segment, std::byte* rows)>;

  // Rows of so many bytes. `carry`: how many rows before a segment its reader may still need. `buffers`: how many
  // segments there is memory for, one that is worked on and at least one on its way. Throws OutOfMemory.
  RowBroadcast(std::vector<Segment> segments, std::vector<int> ranks, std::int64_t row_bytes, std::int64_t carry,
               std::size_t buffers);
  RowBroadcast(const RowBroadcast&) = delete;
  RowBroadcast& operator=(const RowBroadcast&) = delete;

  // Anew behind finish(), if all ranks do.
  void begin(Transport& transport, Fill fill);
  [[nodiscard]] bool done() const noexcept { return next_ == segments_.size(); }
  // Waits for the next segment, and begins with one more behind those that are on their way.
  [[nodiscard]] Received next();
  // Behind the last: waits until what this rank has sent is with the others.
  void finish();
  // Between parts of the work: messages make progress when MPI is called.
  void progress();

  // Adds what has come, and how long it was waited for.
  void tell(Statistics& statistics) const noexcept {
    statistics.bytes_received += bytes_received_;
    statistics.bytes_late += bytes_late_;
    statistics.waiting_seconds += waiting_seconds_;
  }

 private:
  // What a segment needs on its way. Its memory holds what is carried, which ends where the segment begins.
  struct Buffer {
    Messages memory{1};
    bool sent_on = false;
    std::int64_t carried = 0;
  };

  void start(std::size_t segment);
  void send_on(std::size_t segment);
  // This rank's number in the tree of a segment, counted from its root.
  [[nodiscard]] int place_in_tree(const Segment& segment) const noexcept;
  [[nodiscard]] int rank_at(const Segment& segment, int place) const noexcept;
  // Messages from one rank to another may not have the order of the segments, where one of the rank's own is sent
  // before another has come that is to be sent on: each buffer is a channel.
  [[nodiscard]] int channel_of(std::size_t segment) const noexcept {
    return static_cast<int>(segment % buffers_.size());
  }
  [[nodiscard]] Buffer& buffer_of(std::size_t segment) noexcept { return buffers_[segment % buffers_.size()]; }
  [[nodiscard]] std::byte* rows_of(std::size_t segment) noexcept {
    return buffer_of(segment).memory.data(0) + carry_ * row_bytes_;
  }

  Transport* transport_ = nullptr;
  std::vector<Segment> segments_;
  std::vector<int> ranks_;
  std::int64_t row_bytes_;
  std::int64_t carry_;
  Fill fill_;
  int own_ = 0;  // this rank's place among ranks_
  std::size_t next_ = 0;
  std::size_t started_ = 0;  // those before it are here or on their way
  std::vector<Buffer> buffers_;
  double bytes_received_ = 0;
  double bytes_late_ = 0;
  double waiting_seconds_ = 0;
};

}  // namespace headlight::mpi
