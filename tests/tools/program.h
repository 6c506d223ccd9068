// Runs the headlight program as a user would, and keeps what it said.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace headlight::test {

// Where the program was built.
extern const char* const program_path;

struct Finished {
  int code = -1;  // of exit(); −1 when a signal ended the program
  std::string out;
  std::string error;
  std::int64_t peak_bytes = 0;      // resident: the most of the program, its children, and the test when it forked
  std::int64_t own_peak_bytes = 0;  // of the program alone
};

struct Surroundings {
  // Added to the environment, from which NO_COLOR and HEADLIGHT_… have been taken.
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string input{};
  // What the program is called, its argument 0; empty: by its path.
  std::string name{};
  // Where standard output goes; empty: into Finished::out. "closed" closes it, "broken" makes it a pipe that nobody
  // reads.
  std::string output{};
  // Bytes of address space, 0: no limit.
  std::size_t memory = 0;
  // Bytes that a file may have, 0: no limit. Past it write() fails as on a full disk, or SIGXFSZ ends the program.
  std::size_t file_size = 0;
};

[[nodiscard]] Finished run_program(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});

// A folder that goes away with the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // The names in it, hidden ones included.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

// Expects exit code 1 (or `code`), nothing on standard output, and on standard error one line that begins with
// "headlight: error: " and holds every one of `words`.
void expect_error(const Finished& finished, const std::vector<std::string>& words, int code = 1);

}  // namespace headlight::test
