#include "headlight/models/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

// A name that nobody else is using is found by trying: O_EXCL decides, the number only makes collisions rare.
constexpr int kNamesToTry = 100;

// write() takes at most about 2 GiB at once on Linux; smaller pieces keep an interrupted call cheap.
constexpr std::size_t kLargestWrite = std::size_t{1} << 30;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// The open descriptor that a name such as /dev/stdout or /dev/fd/3 is; −1 for the name of a file.
int descriptor_named(const std::string& path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* const end = path.data() + path.size();
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return -1;
}

// The same for links to such names, followed one by one: behind the last of them the system has a file, and does not
// say that somebody else holds it open. That one must be gone on with, not replaced.
int descriptor_of(std::string path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  for (int link = 0; link < kMostLinks; ++link) {
    const int descriptor = descriptor_named(path);
    if (descriptor >= 0) return descriptor;
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
    if (length <= 0) return -1;
    const std::string next(target, static_cast<std::size_t>(length));
    path = next.front() == '/' ? next : folder_of(path) + next;
  }
  return -1;
}

std::uint64_t mixed(std::uint64_t value) {  // the finaliser of SplitMix64
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  if (path.empty() || path.find('\0') != std::string::npos) fail("cannot write", ENOENT);
  if (const int open = descriptor_of(path); open >= 0) {
    descriptor_ = ::fcntl(open, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) fail("cannot write", errno);
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("cannot write", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("cannot write", errno);
    return;
  }
  if (exists) {
    const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
    if (resolved) target_ = resolved.get();
  }
  auto number = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  number ^= static_cast<std::uint64_t>(::getpid()) << 40;
  number ^= static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this));
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ =
        folder_of(target_) + ".headlight-" + std::to_string(mixed(number + static_cast<std::uint64_t>(attempt)));
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == kNamesToTry)) {
      const int error = errno;
      temporary_.clear();
      const std::string folder = folder_of(target_);
      if (error == ENOENT && !folder.empty()) {
        throw FileError(path_, "cannot write: there is no folder " + printable(folder));
      }
      fail("cannot create a file in its folder", error);
    }
  }
  // The replacement may be read and written by whom the old file could; if that cannot be, it is the creator's.
  if (exists && ::fchmod(descriptor_, status.st_mode & 0777) != 0) errno = 0;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  check_open("is written to after commit()");
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, from, std::min(bytes, kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write", written < 0 ? errno : EIO);
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::commit() {
  check_open("is committed a second time, expected once");
  const bool replaces = !temporary_.empty();
  if (replaces && ::fsync(descriptor_) != 0) fail("cannot write", errno);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 && errno != EINTR) fail("cannot write", errno);
  if (!replaces) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot replace", errno);
  temporary_.clear();
}

void AtomicFile::check_open(const char* what) const {
  if (descriptor_ < 0) throw std::logic_error(printable(path_) + ": " + what);
}

void AtomicFile::fail(const char* action, int error) const {
  if (error == EPIPE) throw NobodyReads(path_, "cannot write: nobody reads it any more");
  throw FileError(path_, std::string(action) + ": " + std::generic_category().message(error));
}

}  // namespace headlight::models
