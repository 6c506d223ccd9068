// An output that appears whole or not at all.
#pragma once

#include <cstddef>
#include <string>

#include "headlight/export.h"

namespace headlight::models {

// Writes beside the target, into a file of the same folder that has no name, and gives it the target's in commit();
// without a commit nothing is left. A target behind a symbolic link is replaced where the link points. A target that
// exists and is no regular file (a pipe, /dev/full) is written straight into, since it cannot be replaced, and so is an
// open descriptor by its name (/dev/stdin, /dev/stdout, /dev/stderr, /dev/fd/3) or behind a link to one, wherever it
// leads. A process that is killed while it writes leaves nothing behind, never a partial target; where a file is
// replaced, what it may leave in the last moment is the whole new one under a hidden name. Where a file system has no
// files without names (O_TMPFILE), the file has such a name all along.
class HEADLIGHT_API AtomicFile {
 public:
  // Whether the file beside has a name before it gets the target's: by that, others can write into it as well. A
  // process that is killed leaves it then.
  enum class Beside { nameless, named };

  // Opens the file beside. Throws FileError when the folder is missing or not writable or the target is a folder.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const std::string& path, Beside beside);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The name of the file beside; empty where it has none, as where the target is written straight into.
  [[nodiscard]] const std::string& name_beside() const noexcept { return temporary_; }

  // Appends. Throws FileError when the device is full or fails, NobodyReads of a pipe without a reader,
  // std::logic_error after commit().
  void write(const void* data, std::size_t bytes);

  // Waits until the bytes are on the device and names the file. Throws FileError, and the target is then as it was
  // before; std::logic_error the second time.
  void commit();

 private:
  bool open_nameless();
  void open_hidden();
  template <class Create>
  int try_hidden_names(Create create);
  void give_name();
  void check_open(const char* what) const;
  [[noreturn]] void fail(const char* action, int error) const;

  std::string path_;       // as the caller said it, for messages
  std::string target_;     // links followed
  std::string temporary_;  // the hidden name, where there is one
  bool nameless_ = false;
  int descriptor_ = -1;
};

}  // namespace headlight::models
