// How the program talks to the system: standard output that notices failure, and errors on one line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace headlight::program {

// The command line asks for something that makes no sense: exit code 2. Every other exception ends in exit code 1.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// To be called first: a reader that goes away and a file that meets its size limit (ulimit -f) become errors of write()
// instead of signals, a mapped file that somebody shortens is an error too, and file descriptors 0, 1 and 2 are taken
// if they were closed, so that no output file can become one of them.
void prepare_process();

// All of `text` to standard output now. Throws models::NobodyReads, and std::runtime_error when it is closed or full.
void print(std::string_view text);

// How the program was called, as a shell takes it again: in examples and hints, which so can be pasted where the user
// stands. "headlight" before set_program_name(), and where the caller gave no name.
void set_program_name(const std::string& argument);
[[nodiscard]] const std::string& program_name() noexcept;

// "headlight: error: …" or "headlight: warning: …" on standard error, on one line whatever the message holds.
void print_error(std::string_view message) noexcept;
void print_warning(std::string_view message) noexcept;

// Whether standard output is a terminal that may get colours: NO_COLOR is unset or empty (https://no-color.org).
[[nodiscard]] bool colours_wanted();

}  // namespace headlight::program
