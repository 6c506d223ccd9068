#include "tools/headlight_mpi/row_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "models/tensor_files/npy_header.h"
#include "mpi/call.h"
#include "mpi/group.h"
#include "mpi/messages.h"

namespace headlight::program {
namespace {

// Rows of an array in C order, as bytes: of sample b, rows from `first` on.
struct Layout {
  std::int64_t length;
  std::size_t row_bytes;

  [[nodiscard]] std::size_t offset(std::int64_t b, std::int64_t first) const noexcept {
    return static_cast<std::size_t>(b * length + first) * row_bytes;
  }
  [[nodiscard]] std::size_t bytes(std::int64_t count) const noexcept {
    return static_cast<std::size_t>(count) * row_bytes;
  }
};

// A file that another rank has made, to write some of its bytes. Errors speak of `path`, which it will be.
class FileParts {
 public:
  FileParts(const std::string& path, const std::string& name)
      : path_(path), descriptor_(::open(name.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail(errno);
  }
  ~FileParts() { ::close(descriptor_); }
  FileParts(const FileParts&) = delete;
  FileParts& operator=(const FileParts&) = delete;

  void write(std::size_t offset, const std::byte* data, std::size_t bytes) const {
    constexpr std::size_t kLargestWrite = std::size_t{1} << 30;
    while (bytes > 0) {
      const ssize_t written = ::pwrite(descriptor_, data, std::min(bytes, kLargestWrite), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(written < 0 ? errno : EIO);
      data += written;
      offset += static_cast<std::size_t>(written);
      bytes -= static_cast<std::size_t>(written);
    }
  }
  // Until they are on the device.
  void sync() const {
    if (::fsync(descriptor_) != 0) fail(errno);
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw models::FileError(path_, "cannot write: " + std::generic_category().message(error));
  }

  std::string path_;
  int descriptor_;
};

const std::byte* bytes_of(const View<const float, 4>& share) noexcept {
  return reinterpret_cast<const std::byte*>(share.data);
}

void write_own(const FileParts& parts, std::size_t start, const Layout& whole, std::span<const RowRun> runs,
               const View<const float, 4>& share) {
  const Layout own{share.extent(1), whole.row_bytes};
  for (std::int64_t b = 0; b < share.extent(0); ++b) {
    std::int64_t at = 0;
    for (const RowRun& run : runs) {
      parts.write(start + whole.offset(b, run.first), bytes_of(share) + own.offset(b, at), whole.bytes(run.count));
      at += run.count;
    }
  }
  parts.sync();
}

// In the order of the file.
struct OwnedRun {
  RowRun rows;
  int rank;
  std::int64_t at;  // of the rank's share
};
std::vector<OwnedRun> in_order(std::span<const std::vector<RowRun>> runs) {
  std::vector<OwnedRun> all;
  for (std::size_t rank = 0; rank < runs.size(); ++rank) {
    std::int64_t at = 0;
    for (const RowRun& run : runs[rank]) {
      all.push_back({run, static_cast<int>(rank), at});
      at += run.count;
    }
  }
  std::sort(all.begin(), all.end(),
            [](const OwnedRun& one, const OwnedRun& other) { return one.rows.first < other.rows.first; });
  return all;
}

// To rank 0, which has opened `file`, one run after the other.
void send_all(mpi::Transport& transport, std::optional<models::AtomicFile>& file, std::size_t row_bytes,
              std::span<const std::vector<RowRun>> runs, const View<const float, 4>& share) {
  const Layout own{share.extent(1), row_bytes};
  const std::vector<OwnedRun> order = in_order(runs);
  for (std::int64_t b = 0; b < share.extent(0); ++b) {
    for (const OwnedRun& run : order) {
      const std::size_t bytes = own.bytes(run.rows.count);
      const bool is_own = run.rank == transport.rank();
      const std::byte* const from = is_own ? bytes_of(share) + own.offset(b, run.at) : nullptr;
      if (is_own && file) file->write(from, bytes);
      if (is_own == file.has_value()) continue;
      mpi::Messages message(1);
      message.make(0, bytes);
      if (is_own) std::copy_n(from, bytes, message.data(0));
      is_own ? message.send(transport, 0, 0) : message.receive(transport, run.rank, 0);
      transport.wait(message.requests);
      if (file) file->write(message.data(0), bytes);
    }
  }
}

// What rank 0 says, of less than 4096 bytes.
std::string told(mpi::Transport& transport, std::string text) {
  constexpr std::size_t kBytes = 4096;
  mpi::Messages message(1);
  message.make(0, kBytes);
  char* const letters = reinterpret_cast<char*>(message.data(0));
  if (transport.rank() == 0) {
    if (text.size() < kBytes) std::copy(text.begin(), text.end(), letters);
    for (int rank = 1; rank < transport.size(); ++rank) message.send(transport, rank, 0);
  } else {
    message.receive(transport, 0, 0);
  }
  transport.wait(message.requests);
  return letters;
}

// What one of them cannot do ends it for all. The file beside is gone by then: the first rank that gives up ends the
// others.
template <class Work>
void attempt(mpi::Group& group, std::optional<models::AtomicFile>& file, const Work& work) {
  std::string problem;
  try {
    work();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (mpi::any(group, !problem.empty())) file.reset();
  mpi::agree(group, problem);
}

}  // namespace

void write_rows(mpi::Group& group, const std::string& path, std::int64_t length,
                std::span<const std::vector<RowRun>> runs, const View<const float, 4>& share) {
  const std::array<std::int64_t, 4> shape = {share.extent(0), length, share.extent(2), share.extent(3)};
  const std::string start = models::npy_start("<f4", shape);
  const Layout whole{length, static_cast<std::size_t>(share.extent(2) * share.extent(3)) * sizeof(float)};
  mpi::Transport& transport = group.state().transport;
  std::optional<models::AtomicFile> file;
  attempt(group, file, [&] {
    if (group.rank() > 0) return;
    file.emplace(path, models::AtomicFile::Beside::named);
    file->write(start.data(), start.size());
  });
  const std::string name = told(transport, file ? file->name_beside() : "");
  std::optional<FileParts> parts;
  try {
    if (!name.empty()) parts.emplace(path, name);
  } catch (const models::FileError&) {
    // This rank does not see the folder of rank 0.
  }
  if (mpi::any(group, !parts)) {
    double seconds = 0;
    mpi::together(
        transport, {{"the call", "write_rows"}}, seconds, [] {},
        [&] { send_all(transport, file, whole.row_bytes, runs, share); });
  } else {
    const auto rank = static_cast<std::size_t>(group.rank());
    attempt(group, file, [&] { write_own(*parts, start.size(), whole, runs[rank], share); });
  }
  attempt(group, file, [&] {
    if (file) file->commit();
  });
}

}  // namespace headlight::program
