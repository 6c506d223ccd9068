// The memory of messages on their way.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "mpi/transport.h"

namespace headlight::mpi {

// Pieces of memory, and the requests that read or write them. Whatever has not come to its end when they go is that of
// a group that has failed: its memory is never given back, since MPI may still use it.
class Messages {
 public:
  explicit Messages(std::size_t count) : pieces_(count) {}
  ~Messages() {
    if (requests.empty()) return;
    for (Piece& piece : pieces_) static_cast<void>(piece.memory.release());
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  // Piece n anew, of zeros.
  std::byte* make(std::size_t n, std::size_t bytes) {
    pieces_[n] = {std::make_unique<std::byte[]>(bytes), bytes};
    return pieces_[n].memory.get();
  }
  [[nodiscard]] std::byte* data(std::size_t n) const noexcept { return pieces_[n].memory.get(); }
  [[nodiscard]] float* floats(std::size_t n) const noexcept { return reinterpret_cast<float*>(data(n)); }

  void send(Transport& transport, int to, std::size_t n) { transport.send(to, data(n), pieces_[n].bytes, requests); }
  void receive(Transport& transport, int from, std::size_t n) {
    transport.receive(from, data(n), pieces_[n].bytes, requests);
  }

  Requests requests;

 private:
  struct Piece {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  std::vector<Piece> pieces_;
};

}  // namespace headlight::mpi
