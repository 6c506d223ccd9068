#include "mpi/transport.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "mpi/messages.h"

namespace headlight::mpi {
namespace {

// Of one message: counts are ints.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr int kNoticeTag = 1;
constexpr int kDataTag = 2;  // of channel 0
// Of a record, which fits or is cut: differences stand near its beginning.
constexpr std::size_t kRecordBytes = 8192;

std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return "error " + std::to_string(code);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string seconds_of(std::chrono::milliseconds time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g s", static_cast<double>(time.count()) / 1000);
  return text.data();
}

// First a few times at once, then the core is given to others, and after a while a little is slept: ranks may be more
// than cores.
void pause(int turn) noexcept {
  if (turn < 100) return;
  if (turn < 1000) {
    ::sched_yield();
    return;
  }
  const timespec little{0, 20'000};
  ::nanosleep(&little, nullptr);
}

}  // namespace

Transport::Transport(MPI_Comm communicator, const GroupOptions& options) : timeout_(options.timeout) {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0) throw std::invalid_argument("mpi::Group: MPI is not initialised");
  if (communicator == MPI_COMM_NULL) throw std::invalid_argument("mpi::Group: communicator is MPI_COMM_NULL");
  if (timeout_ <= std::chrono::milliseconds(0)) {
    throw std::invalid_argument("mpi::Group: timeout is " + std::to_string(timeout_.count()) +
                                " ms, expected more than 0");
  }
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &size_);
  heard_.resize(static_cast<std::size_t>(size_), Clock::now());
  duplicate(communicator, data_);
  duplicate(communicator, notices_);
  listen();
}

bool Transport::close() noexcept {
  if (failure_) return false;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0) return true;
  if (listening_ != MPI_REQUEST_NULL) MPI_Cancel(&listening_);
  const Clock::time_point begin = Clock::now();
  for (int turn = 0;; pause(turn++)) {
    int done = 1;
    if (listening_ != MPI_REQUEST_NULL) MPI_Test(&listening_, &done, MPI_STATUS_IGNORE);
    forget_what_has_left();
    if (done != 0 && outgoing_.empty()) break;
    if (Clock::now() - begin > timeout_) return false;
  }
  MPI_Comm_free(&notices_);
  MPI_Comm_free(&data_);
  return true;
}

void Transport::forget_what_has_left() noexcept {
  outgoing_.remove_if([](auto& message) {
    int done = 0;
    MPI_Test(&message.first, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

// Waits for all ranks, but not for ever.
void Transport::duplicate(MPI_Comm from, MPI_Comm& to) {
  MPI_Request request = MPI_REQUEST_NULL;
  // Where it never ends, it writes to this when nobody is there any more.
  auto* const place = new MPI_Comm(MPI_COMM_NULL);
  check_call(MPI_Comm_idup(from, place, &request), rank_);
  const Clock::time_point begin = Clock::now();
  for (int turn = 0, done = 0;; pause(turn++)) {
    check_call(MPI_Test(&request, &done, MPI_STATUS_IGNORE), rank_);
    if (done != 0) break;
    if (Clock::now() - begin > timeout_) {
      failure_ = {rank_, "not all ranks have made their group within " + seconds_of(timeout_)};
      check();
    }
  }
  to = *place;
  delete place;
  MPI_Comm_set_errhandler(to, MPI_ERRORS_RETURN);
}

void Transport::check_call(int code, int peer) {
  if (code != MPI_SUCCESS) fail(peer, "MPI has lost it: " + text_of(code));
}

void Transport::check() const {
  if (failure_) throw Error(failure_->first, failure_->second);
}

void Transport::send(int to, const void* data, std::size_t bytes, Requests& requests, int channel) {
  for (std::size_t at = 0; at < bytes; at += kMostBytes) {
    MPI_Request& request = requests.requests_.emplace_back(MPI_REQUEST_NULL);
    requests.peers_.push_back(to);
    check_call(MPI_Isend(static_cast<const char*>(data) + at, static_cast<int>(std::min(kMostBytes, bytes - at)),
                         MPI_BYTE, to, kDataTag + channel, data_, &request),
               to);
  }
}

void Transport::receive(int from, void* data, std::size_t bytes, Requests& requests, int channel) {
  for (std::size_t at = 0; at < bytes; at += kMostBytes) {
    MPI_Request& request = requests.requests_.emplace_back(MPI_REQUEST_NULL);
    requests.peers_.push_back(from);
    check_call(MPI_Irecv(static_cast<char*>(data) + at, static_cast<int>(std::min(kMostBytes, bytes - at)), MPI_BYTE,
                         from, kDataTag + channel, data_, &request),
               from);
  }
}

bool Transport::test(Requests& requests) {
  bool all = true;
  for (std::size_t n = 0; n < requests.requests_.size(); ++n) {
    if (requests.requests_[n] == MPI_REQUEST_NULL) continue;
    int done = 0;
    check_call(MPI_Test(&requests.requests_[n], &done, MPI_STATUS_IGNORE), requests.peers_[n]);
    if (done != 0) {
      heard_[static_cast<std::size_t>(requests.peers_[n])] = Clock::now();
    } else {
      all = false;
    }
  }
  if (!all) return false;
  requests.requests_.clear();
  requests.peers_.clear();
  return true;
}

void Transport::wait(Requests& requests) {
  const Clock::time_point begin = Clock::now();
  Clock::time_point asked = begin;
  for (int turn = 0; !test(requests); pause(turn++)) {
    progress();
    if (turn % 64 == 63) watch(requests, begin, asked);
  }
}

void Transport::watch(const Requests& requests, Clock::time_point begin, Clock::time_point& asked) {
  const Clock::time_point now = Clock::now();
  const bool asks = now - asked > timeout_ / 4;
  if (asks) asked = now;
  for (std::size_t n = 0; n < requests.requests_.size(); ++n) {
    const int peer = requests.peers_[n];
    if (requests.requests_[n] == MPI_REQUEST_NULL || peer == rank_) continue;
    if (now - std::max(begin, heard_[static_cast<std::size_t>(peer)]) > timeout_) {
      fail(peer, "no sign of life for " + seconds_of(timeout_));
    }
    if (asks) notify(peer, Kind::are_you_there, rank_, "");
  }
}

void Transport::listen() {
  check_call(MPI_Irecv(&incoming_, sizeof(incoming_), MPI_BYTE, MPI_ANY_SOURCE, kNoticeTag, notices_, &listening_),
             rank_);
}

void Transport::notify(int to, Kind kind, int rank, std::string_view text) {
  auto& [request, notice] = outgoing_.emplace_back(MPI_REQUEST_NULL, Notice{kind, rank, {}});
  text.copy(notice.text.data(), notice.text.size() - 1);
  MPI_Isend(&notice, sizeof(notice), MPI_BYTE, to, kNoticeTag, notices_, &request);
}

void Transport::take_notice(const Notice& notice, int from) {
  heard_[static_cast<std::size_t>(from)] = Clock::now();
  if (notice.kind == Kind::are_you_there) notify(from, Kind::here, rank_, "");
  if (notice.kind != Kind::failed) return;
  failure_ = {notice.rank, notice.text.data()};
  check();
}

void Transport::progress() {
  check();
  for (;;) {
    int done = 0;
    MPI_Status status;
    check_call(MPI_Test(&listening_, &done, &status), rank_);
    if (done == 0) break;
    const Notice notice = incoming_;
    listen();
    take_notice(notice, status.MPI_SOURCE);
  }
  forget_what_has_left();
}

void Transport::fail(int rank, const std::string& reason) {
  if (!failure_) {
    failure_ = {rank, reason};
    if (notices_ != MPI_COMM_NULL) {
      for (int peer = 0; peer < size_; ++peer) {
        if (peer != rank_) notify(peer, Kind::failed, rank, reason);
      }
      // Small messages leave at once, or, to one that does not listen, never.
      for (int turn = 0; turn < 1000 && !outgoing_.empty(); pause(turn++)) {
        forget_what_has_left();
      }
    }
  }
  throw Error(failure_->first, failure_->second);
}

namespace {

// What a record begins with.
constexpr char kProblem = '!', kVote = '+', kNoVote = '-';

// Writes "name=value" lines behind what could not be done, NUL-terminated.
void pack(const Record& record, const std::optional<std::string>& problem, bool vote, std::byte* to) {
  std::string text = problem ? kProblem + *problem : std::string(1, vote ? kVote : kNoVote);
  for (const auto& [name, value] : record) text += '\n' + name + '=' + value;
  std::memcpy(to, text.data(), std::min(text.size(), kRecordBytes - 1));
}

std::vector<std::string> lines_of(const std::byte* bytes) {
  std::vector<std::string> lines(1);
  for (const char* at = reinterpret_cast<const char*>(bytes); *at != '\0'; ++at) {
    if (*at == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += *at;
    }
  }
  return lines;
}

// "scale is 2 and 1 on rank 0" for the first line in which they differ; empty where none does.
std::string difference(const std::vector<std::string>& here, const std::vector<std::string>& at_rank_0) {
  for (std::size_t n = 1; n < std::max(here.size(), at_rank_0.size()); ++n) {
    const std::string mine = n < here.size() ? here[n] : "nothing";
    const std::string theirs = n < at_rank_0.size() ? at_rank_0[n] : "nothing";
    if (mine == theirs) continue;
    return mine + ", but " + theirs + " on rank 0: all ranks give the same";
  }
  return {};
}

}  // namespace

bool Transport::agree(const Record& record, const std::optional<std::string>& problem, bool vote) try {
  check();
  const auto ranks = static_cast<std::size_t>(size_), own = static_cast<std::size_t>(rank_);
  Messages records(ranks);
  pack(record, problem, vote, records.make(own, kRecordBytes));
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (peer == own) continue;
    records.make(peer, kRecordBytes);
    records.receive(*this, static_cast<int>(peer), peer);
    records.send(*this, static_cast<int>(peer), own);
  }
  wait(records.requests);
  // All ranks see the same records, and come to the same end without another word.
  std::vector<std::vector<std::string>> lines;
  for (std::size_t peer = 0; peer < ranks; ++peer) lines.push_back(lines_of(records.data(peer)));
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (lines[peer][0][0] == kProblem) throw Error(static_cast<int>(peer), lines[peer][0].substr(1));
  }
  for (std::size_t peer = 1; peer < ranks; ++peer) {
    const std::string differs = difference(lines[peer], lines[0]);
    if (!differs.empty()) throw Error(static_cast<int>(peer), differs);
  }
  return std::any_of(lines.begin(), lines.end(), [](const auto& of_rank) { return of_rank[0][0] == kVote; });
} catch (const std::bad_alloc&) {
  // The others may have come to an end already.
  fail(rank_, "no memory to agree with the other ranks");
}

}  // namespace headlight::mpi
