#include "tools/headlight/support/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "headlight/models/errors.h"

namespace headlight::program {
namespace {

// Allocates nothing: it may have to say that memory is out.
void print_line(std::string_view kind, std::string_view message) noexcept {
  char line[2048];
  std::size_t length = 0;
  const auto append = [&](std::string_view text) {
    for (const char letter : text) {
      const bool shows = static_cast<unsigned char>(letter) >= ' ' && letter != '\x7f';
      if (length + 1 < sizeof line) line[length++] = shows ? letter : ' ';
    }
  };
  append("headlight: ");
  append(kind);
  append(": ");
  append(message);
  line[length++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, length);
}

bool is_out_of_memory(const std::exception_ptr& exception) {
  if (!exception) return true;  // there was not even memory for an exception
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Where memory ends outside main()'s try block: while globals are made, or for the exception that was to tell of it.
// What else ends here is a defect of the program, and is left to end it as usual.
[[noreturn]] void end_without_memory() noexcept {
  if (!is_out_of_memory(std::current_exception())) std::abort();
  print_error("out of memory");
  ::_exit(1);
}

// Before all globals that C++ makes, those of libraries included: 101 is the first priority that programs may have.
[[gnu::constructor(101)]] void watch_memory() noexcept { std::set_terminate(end_without_memory); }

// Somebody shortens a file that is mapped here, and a page that is gone is read: there is nothing to go on with. Other
// causes of the signal end the program as usual.
void end_without_page(int number, siginfo_t* information, void*) {
  if (information->si_code != BUS_ADRERR) {
    std::signal(number, SIG_DFL);
    return;
  }
  print_error("a file was shortened while it was read");
  ::_exit(1);
}

std::string& called_as() {
  static std::string name = "headlight";
  return name;
}

}  // namespace

void set_program_name(const std::string& argument) {
  if (argument.empty()) return;
  const auto is_plain = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           std::strchr("/._-+", letter) != nullptr;
  };
  const bool plain = std::all_of(argument.begin(), argument.end(), is_plain);
  called_as() = plain ? argument : models::in_quotes(argument);
}

const std::string& program_name() noexcept { return called_as(); }

void prepare_process() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction page_is_gone {};
  page_is_gone.sa_sigaction = end_without_page;
  page_is_gone.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &page_is_gone, nullptr);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() takes the lowest free number, which is this one. Read-only, so that writing still fails.
    if (::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int taken = ::open("/dev/null", O_RDONLY);
    }
  }
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) throw models::NobodyReads("standard output", "nobody reads it any more");
      throw std::runtime_error(std::string("standard output: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void print_error(std::string_view message) noexcept { print_line("error", message); }
void print_warning(std::string_view message) noexcept { print_line("warning", message); }

bool colours_wanted() {
  const char* const no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace headlight::program
