#include "headlight/models/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

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
// say that somebody else holds it open. That one must be gone on with, not replaced. kUnknown, with errno set, where
// that cannot be found out.
constexpr int kUnknown = -2;
int descriptor_of(std::string path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  for (int link = 0; link < kMostLinks; ++link) {
    const int descriptor = descriptor_named(path);
    if (descriptor >= 0) return descriptor;
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
    if (length <= 0) {
      const bool is_link = length < 0 && errno != EINVAL && errno != ENOENT && errno != ENOTDIR;
      return is_link ? kUnknown : -1;
    }
    const std::string next(target, static_cast<std::size_t>(length));
    path = next.front() == '/' ? next : folder_of(path) + next;
  }
  return -1;
}

// What proc(5) calls an open descriptor.
std::array<char, 32> path_of(int descriptor) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", descriptor);
  return path;
}

std::uint64_t mixed(std::uint64_t value) {  // the finaliser of SplitMix64
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : AtomicFile(path, Beside::nameless) {}

AtomicFile::AtomicFile(const std::string& path, Beside beside) : path_(path), target_(path) {
  if (path.empty() || path.find('\0') != std::string::npos) fail("cannot write", ENOENT);
  const int open = descriptor_of(path);
  if (open == kUnknown) fail("cannot write", errno);
  if (open >= 0) {
    descriptor_ = ::fcntl(open, F_DUPFD_CLOEXEC, 0);
    if (descriptor_ < 0) fail("cannot write", errno);
    return;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail("cannot write", errno);
  if (exists && S_ISDIR(status.st_mode)) fail("cannot write", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("cannot write", errno);
    return;
  }
  if (exists) {
    const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
    if (!resolved && errno == ENOMEM) throw std::bad_alloc();
    if (!resolved) fail("cannot write", errno);
    target_ = resolved.get();
  }
  if (beside == Beside::named || !open_nameless()) open_hidden();
  // The replacement may be read and written by whom the old file could; if that cannot be, it is the creator's.
  if (exists && ::fchmod(descriptor_, status.st_mode & 0777) != 0) errno = 0;
}

// False where the file system has no such files, or where /proc, by which they get a name, is not there.
bool AtomicFile::open_nameless() {
  const std::string folder = folder_of(target_);
  descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (descriptor_ < 0) return false;
  nameless_ = ::access(path_of(descriptor_).data(), F_OK) == 0;
  if (!nameless_) ::close(std::exchange(descriptor_, -1));
  return nameless_;
}

void AtomicFile::open_hidden() {
  const int error = try_hidden_names([this](const char* name) {
    descriptor_ = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor_ >= 0;
  });
  if (error == 0) return;
  const std::string folder = folder_of(target_);
  if (error == ENOENT && !folder.empty())
    throw FileError(path_, "cannot write: there is no folder " + printable(folder));
  fail("cannot create a file in its folder", error);
}

// Sets temporary_ to a name for which create(name) is true, or returns the error of the last attempt.
template <class Create>
int AtomicFile::try_hidden_names(Create create) {
  auto number = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  number ^= static_cast<std::uint64_t>(::getpid()) << 40;
  number ^= static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this));
  for (int attempt = 0;; ++attempt) {
    std::string name =
        folder_of(target_) + ".headlight-" + std::to_string(mixed(number + static_cast<std::uint64_t>(attempt)));
    if (create(name.c_str())) {
      temporary_ = std::move(name);
      return 0;
    }
    if (errno != EEXIST || attempt == kNamesToTry) return errno;
  }
}

// Gives a nameless file the name of the target; where there is one already, a hidden name to be replaced from.
void AtomicFile::give_name() {
  const auto self = path_of(descriptor_);
  const auto link_to = [&self](const char* name) {
    return ::linkat(AT_FDCWD, self.data(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_to(target_.c_str())) return;
  if (errno != EEXIST) fail("cannot create a file in its folder", errno);
  const int error = try_hidden_names(link_to);
  if (error != 0) fail("cannot create a file in its folder", error);
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
  const bool replaces = nameless_ || !temporary_.empty();
  if (replaces && ::fsync(descriptor_) != 0) fail("cannot write", errno);
  if (nameless_) give_name();
  const int closed = ::close(std::exchange(descriptor_, -1));
  // What was synced is on the device, whatever close() says.
  if (!replaces && closed != 0 && errno != EINTR) fail("cannot write", errno);
  if (temporary_.empty()) return;
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
