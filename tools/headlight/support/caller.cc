#include "tools/headlight/support/caller.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

int progress_descriptor = -1;

std::optional<int> take(const char* name) {
  const char* const given = std::getenv(name);
  if (given == nullptr) return {};
  const std::string text = given;
  ::unsetenv(name);
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw UsageError("the environment's " + std::string(name) + " is " + text + ", expected a number");
  }
  return number;
}

}  // namespace

void listen_to_caller() {
  if (const std::optional<int> parent = take("HEADLIGHT_PARENT")) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != *parent) ::_exit(1);
  }
  if (const std::optional<int> descriptor = take("HEADLIGHT_PROGRESS")) {
    if (::fcntl(*descriptor, F_SETFD, FD_CLOEXEC) != 0) {
      throw UsageError("the environment's HEADLIGHT_PROGRESS is " + std::to_string(*descriptor) +
                       ", which is no open descriptor");
    }
    progress_descriptor = *descriptor;
  }
}

void tell_progress(std::size_t done, std::size_t total) noexcept {
  if (progress_descriptor < 0) return;
  char line[64];
  const int length = std::snprintf(line, sizeof line, "%zu %zu\n", done, total);
  // Nobody may read it any more: that is no reason to stop.
  [[maybe_unused]] const ssize_t written = ::write(progress_descriptor, line, static_cast<std::size_t>(length));
}

}  // namespace headlight::program
