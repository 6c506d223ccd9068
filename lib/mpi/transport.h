// Messages between the ranks of a group, and the watch over them: no wait is without end.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/mpi.h"

namespace headlight::mpi {

// What is on its way: requests, and the rank at the other end of each.
class Requests {
 public:
  [[nodiscard]] bool empty() const noexcept { return requests_.empty(); }

 private:
  friend class Transport;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;
};

class Transport {
 public:
  Transport(MPI_Comm communicator, const GroupOptions& options);
  // After close() alone, and not where that was in vain.
  ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  // Begins a message. Its memory stays as it is until it has come, and for ever where wait() throws: see Messages. From
  // one rank to another, messages of one channel come in the order in which they were sent.
  void send(int to, const void* data, std::size_t bytes, Requests& requests, int channel = 0);
  void receive(int from, void* data, std::size_t bytes, Requests& requests, int channel = 0);
  // Whether all have come, without waiting.
  bool test(Requests& requests);
  // Until all have come. Asks a rank that has been silent for a quarter of the timeout for a sign of life; throws Error
  // once one has been for all of it, and tells the others.
  void wait(Requests& requests);
  // Answers others, and throws what one of them has ended with.
  void progress();

  // Every rank's record, or what it could not go on for; throws Error on all where one could not, or where two differ,
  // after which the group can be used as before. Returns whether any rank votes for something.
  bool agree(const Record& record, const std::optional<std::string>& problem, bool vote = false);

  // Ends what is open, and gives the communicators back. Returns whether that could be done within the timeout, and the
  // memory may go: after a failure it cannot, for what is open may be waiting for a rank that is gone.
  [[nodiscard]] bool close() noexcept;

  // Ends the group on all ranks.
  [[noreturn]] void fail(int rank, const std::string& reason);
  // Throws where it has ended.
  void check() const;
  [[nodiscard]] bool has_failed() const noexcept { return failure_.has_value(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind : int { failed, are_you_there, here };
  struct Notice {
    Kind kind;
    int rank;
    std::array<char, 504> text;
  };

  void duplicate(MPI_Comm from, MPI_Comm& to);
  void check_call(int code, int peer);
  void listen();
  void forget_what_has_left() noexcept;
  void notify(int to, Kind kind, int rank, std::string_view text);
  void take_notice(const Notice& notice, int from);
  // How long each of those ranks has been silent since `begin`; throws at the timeout.
  void watch(const Requests& requests, Clock::time_point begin, Clock::time_point& asked);

  int rank_ = 0;
  int size_ = 0;
  std::chrono::milliseconds timeout_;
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm notices_ = MPI_COMM_NULL;
  Notice incoming_{};
  MPI_Request listening_ = MPI_REQUEST_NULL;
  std::list<std::pair<MPI_Request, Notice>> outgoing_;
  std::vector<Clock::time_point> heard_;
  std::optional<std::pair<int, std::string>> failure_;
};

}  // namespace headlight::mpi
