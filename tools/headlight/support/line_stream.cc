#include "tools/headlight/support/line_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tools/headlight/support/json.h"
#include "tools/headlight/support/text_errors.h"

namespace headlight::program {

bool is_stream(const std::string& path) noexcept {
  struct stat status {};
  const int failed = path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status);
  return failed == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || S_ISCHR(status.st_mode));
}

const TextMemory LineStream::kAnyLength;

LineStream::LineStream(const std::string& path, const TextMemory& memory)
    : name_(path == "-" ? "standard input" : path),
      descriptor_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      memory_(memory) {
  if (descriptor_ < 0) fail_to_read(name_);
}

LineStream::~LineStream() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool LineStream::is_ready() const noexcept {
  pollfd asked{descriptor_, POLLIN, 0};
  return ::poll(&asked, 1, 0) > 0;
}

void LineStream::read_more() {
  constexpr std::size_t kPart = 1 << 16;
  read_.erase(0, taken_);
  searched_ -= taken_;
  taken_ = 0;
  const std::size_t before = read_.size();
  read_.resize(before + kPart);
  ::ssize_t count = -1;
  do {
    count = ::read(descriptor_, read_.data() + before, kPart);
  } while (count < 0 && errno == EINTR);
  if (count < 0) fail_to_read(name_);
  read_.resize(before + static_cast<std::size_t>(count));
  bytes_ += static_cast<std::size_t>(count);
  is_at_end_ = count == 0;
}

void LineStream::fail_by_size() {
  std::size_t size = 0;
  for (std::size_t end = std::string::npos;; read_more()) {
    end = read_.find('\n', taken_);
    size += std::min(end, read_.size()) - taken_;
    taken_ = searched_ = read_.size();
    if (end != std::string::npos || is_at_end_) break;
  }
  memory_.fail_by_size(name_, lines_ + 1, size);
}

bool LineStream::take_line(std::string& line) {
  std::size_t end = read_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = read_.size();
    if (!is_at_end_ || taken_ == read_.size()) return false;
    end = read_.size();  // the last line, without its end
  }
  line.assign(read_, taken_, end - taken_);
  taken_ = searched_ = end < read_.size() ? end + 1 : end;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

std::vector<std::string> LineStream::next() {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  for (std::string line; lines.size() < memory_.texts();) {
    const std::size_t at = taken_;
    const bool whole = take_line(line);
    // Lines before one that is refused, or too much beside them, are given first; it is met again by the next call.
    const auto is_last = [&] {
      if (!lines.empty()) taken_ = searched_ = at;
      return !lines.empty();
    };
    if (whole && line.size() + bytes <= memory_.text_bytes()) {
      if (!is_utf8(line)) {
        if (is_last()) break;
        fail_by_encoding(name_, lines_ + 1, line);
      }
      bytes += line.size();
      lines.push_back(std::move(line));
      ++lines_;
    } else if (whole || read_.size() - taken_ > memory_.text_bytes()) {
      if (is_last()) break;
      taken_ = at;
      fail_by_size();
    } else if (is_at_end_ || (!lines.empty() && !is_ready())) {
      break;
    } else {
      read_more();
    }
  }
  if (lines_ == 0) fail_as_empty(name_);
  return lines;
}

}  // namespace headlight::program
