// The memory of messages on their way.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "mpi/transport.h"

namespace headlight::mpi {

// Buffers, and the requests that read or write them. Whatever has not come to its end when they go is that of
// a group that has failed: its memory is never given back, since MPI may still use it.
class Messages {
 public:
  explicit Messages(std::size_t count) : buffers_(count) {}
  ~Messages() {
    if (requests.empty()) return;
    for (Buffer& buffer : buffers_) static_cast<void>(buffer.memory.release());
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Buffer n anew, of zeros.
  std::byte* make(std::size_t n, std::size_t bytes) {
    buffers_[n] = {std::make_unique<std::byte[]>(bytes), bytes};
    return buffers_[n].memory.get();
  }
  [[nodiscard]] std::byte* data(std::size_t n) const noexcept { return buffers_[n].memory.get(); }
  [[nodiscard]] float* floats(std::size_t n) const noexcept { return reinterpret_cast<float*>(data(n)); }

  void send(Transport& transport, int to, std::size_t n) { transport.send(to, data(n), buffers_[n].bytes, requests); }
  void receive(Transport& transport, int from, std::size_t n) {
    transport.receive(from, data(n), buffers_[n].bytes, requests);
  }

  Requests requests;

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  std::vector<Buffer> buffers_;
};

}  // namespace headlight::mpi
