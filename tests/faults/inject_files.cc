// Files and folders: calls that can fail, be cut short, or find less than there was.
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "faults/inject.h"

using headlight::faults::board;
using headlight::faults::Effect;
using headlight::faults::effect_on;
using headlight::faults::is_refused;
using headlight::faults::Kind;
using headlight::faults::next;

namespace {

int opened(int folder, const char* path, int flags, mode_t mode) noexcept {
  if (is_refused(Kind::open)) return -1;
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

// How many of `bytes` a call may move, or −1 with errno set.
ssize_t allowed(Kind kind, size_t bytes) noexcept {
  switch (effect_on(kind)) {
    case Effect::fail:
      errno = board().number.load(std::memory_order_relaxed);
      return -1;
    case Effect::shorten:
      return bytes > 1 ? 1 : static_cast<ssize_t>(bytes);
    case Effect::end:
      return 0;
    default:
      return static_cast<ssize_t>(bytes);
  }
}

// Of several pieces as much as of one: what the caller must cope with anyway.
ssize_t moved(Kind kind, long call, int descriptor, const iovec* pieces, int count) noexcept {
  if (count <= 0) return syscall(call, descriptor, pieces, count);
  iovec first = pieces[0];
  const ssize_t most = allowed(kind, first.iov_len);
  if (most < 0) return -1;
  if (static_cast<size_t>(most) == first.iov_len) return syscall(call, descriptor, pieces, count);
  first.iov_len = static_cast<size_t>(most);
  return syscall(call, descriptor, &first, 1);
}

mode_t mode_of(int flags, va_list arguments) noexcept {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {
#define HEADLIGHT_OPEN(name)                                        \
  HEADLIGHT_INTERPOSED int name(const char* path, int flags, ...) { \
    va_list arguments;                                              \
    va_start(arguments, flags);                                     \
    const mode_t mode = mode_of(flags, arguments);                  \
    va_end(arguments);                                              \
    return opened(AT_FDCWD, path, flags, mode);                     \
  }
#define HEADLIGHT_OPEN_AT(name)                                                 \
  HEADLIGHT_INTERPOSED int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                                          \
    va_start(arguments, flags);                                                 \
    const mode_t mode = mode_of(flags, arguments);                              \
    va_end(arguments);                                                          \
    return opened(folder, path, flags, mode);                                   \
  }
HEADLIGHT_OPEN(open)
HEADLIGHT_OPEN(open64)
HEADLIGHT_OPEN_AT(openat)
HEADLIGHT_OPEN_AT(openat64)

#define HEADLIGHT_FOPEN(name)                                           \
  HEADLIGHT_INTERPOSED FILE* name(const char* path, const char* mode) { \
    static auto* const real = next(&name, #name);                       \
    return is_refused(Kind::open) ? nullptr : real(path, mode);         \
  }
HEADLIGHT_FOPEN(fopen)
HEADLIGHT_FOPEN(fopen64)

HEADLIGHT_INTERPOSED ssize_t read(int descriptor, void* into, size_t bytes) {
  const ssize_t most = allowed(Kind::read, bytes);
  return most < 0 ? -1 : syscall(SYS_read, descriptor, into, most);
}

#define HEADLIGHT_PREAD(name)                                                             \
  HEADLIGHT_INTERPOSED ssize_t name(int descriptor, void* into, size_t bytes, off_t at) { \
    const ssize_t most = allowed(Kind::read, bytes);                                      \
    return most < 0 ? -1 : syscall(SYS_pread64, descriptor, into, most, at);              \
  }
HEADLIGHT_PREAD(pread)
HEADLIGHT_PREAD(pread64)

HEADLIGHT_INTERPOSED ssize_t readv(int descriptor, const iovec* pieces, int count) {
  return moved(Kind::read, SYS_readv, descriptor, pieces, count);
}

HEADLIGHT_INTERPOSED ssize_t write(int descriptor, const void* from, size_t bytes) {
  const ssize_t most = descriptor == STDERR_FILENO ? static_cast<ssize_t>(bytes) : allowed(Kind::write, bytes);
  return most < 0 ? -1 : syscall(SYS_write, descriptor, from, most);
}

#define HEADLIGHT_PWRITE(name)                                                                  \
  HEADLIGHT_INTERPOSED ssize_t name(int descriptor, const void* from, size_t bytes, off_t at) { \
    const ssize_t most = allowed(Kind::write, bytes);                                           \
    return most < 0 ? -1 : syscall(SYS_pwrite64, descriptor, from, most, at);                   \
  }
HEADLIGHT_PWRITE(pwrite)
HEADLIGHT_PWRITE(pwrite64)

HEADLIGHT_INTERPOSED ssize_t writev(int descriptor, const iovec* pieces, int count) {
  if (descriptor == STDERR_FILENO) return syscall(SYS_writev, descriptor, pieces, count);
  return moved(Kind::write, SYS_writev, descriptor, pieces, count);
}

// Nothing is lost here but time: no test takes the power away.
HEADLIGHT_INTERPOSED int fsync(int) { return is_refused(Kind::sync) ? -1 : 0; }
HEADLIGHT_INTERPOSED int fdatasync(int) { return is_refused(Kind::sync) ? -1 : 0; }

HEADLIGHT_INTERPOSED int rename(const char* from, const char* to) {
  if (is_refused(Kind::rename)) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

HEADLIGHT_INTERPOSED int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  if (is_refused(Kind::rename)) return -1;
  return static_cast<int>(syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

#define HEADLIGHT_STAT(name)                                             \
  HEADLIGHT_INTERPOSED int name(const char* path, struct stat* status) { \
    static auto* const real = next(&name, #name);                        \
    return is_refused(Kind::status) ? -1 : real(path, status);           \
  }
HEADLIGHT_STAT(stat)
HEADLIGHT_STAT(lstat)

HEADLIGHT_INTERPOSED int fstat(int descriptor, struct stat* status) {
  static auto* const real = next(&fstat, "fstat");
  return is_refused(Kind::status) ? -1 : real(descriptor, status);
}

HEADLIGHT_INTERPOSED int fstat64(int descriptor, struct stat64* status) {
  static auto* const real = next(&fstat64, "fstat64");
  return is_refused(Kind::status) ? -1 : real(descriptor, status);
}

HEADLIGHT_INTERPOSED ssize_t readlink(const char* path, char* into, size_t bytes) {
  return is_refused(Kind::status) ? -1 : syscall(SYS_readlinkat, AT_FDCWD, path, into, bytes);
}

HEADLIGHT_INTERPOSED char* realpath(const char* path, char* into) {
  static auto* const real = next(&realpath, "realpath");
  return is_refused(Kind::status) ? nullptr : real(path, into);
}

// They close, whatever they say.
HEADLIGHT_INTERPOSED int close(int descriptor) {
  const bool refused = is_refused(Kind::close);
  const int error = errno;
  const long closed = syscall(SYS_close, descriptor);
  if (!refused) return static_cast<int>(closed);
  errno = error;
  return -1;
}

HEADLIGHT_INTERPOSED int fclose(FILE* file) {
  static auto* const real = next(&fclose, "fclose");
  const bool refused = is_refused(Kind::close);
  const int error = errno;
  const int closed = real(file);
  if (!refused) return closed;
  errno = error;
  return EOF;
}

HEADLIGHT_INTERPOSED int mkdir(const char* path, mode_t mode) {
  return is_refused(Kind::folder) ? -1 : static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
}  // extern "C"
