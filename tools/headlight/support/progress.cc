#include "tools/headlight/support/progress.h"

#include <unistd.h>

#include <cstdio>

#include "tools/headlight/support/caller.h"

namespace headlight::program {
namespace {

constexpr std::size_t kWidth = 40;

}  // namespace

Progress::Progress(std::size_t total) : total_(total), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::advance(std::size_t count) noexcept {
  if (total_ == 0) return;
  done_ += count;
  const auto now = std::chrono::steady_clock::now();
  if (done_ >= total_ || now - told_ >= std::chrono::milliseconds(100)) {
    tell_progress(done_, total_);
    told_ = now;
  }
  if (!terminal_ || now - start_ < std::chrono::seconds(1)) return;
  drawn_ = true;
  const std::size_t filled = kWidth * done_ / total_;
  std::fprintf(stderr, "\r[%.*s%.*s] %zu of %zu", static_cast<int>(filled), "########################################",
               static_cast<int>(kWidth - filled), "                                        ", done_, total_);
}

void Progress::clear() noexcept {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace headlight::program
