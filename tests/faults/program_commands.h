// Each subcommand once, with inputs that take it milliseconds.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace headlight::faults {

struct ProgramCommand {
  const char* name;
  // Behind the program; "@name" is a file or folder of the inputs. Outputs go to the current folder.
  std::vector<std::string> arguments;
  // Whether standard output holds no times and nothing of the machine.
  bool prints_the_same = true;
  // A file whose bytes tell when the run was stopped, or of times.
  std::string varying_file{};
  // Whether it writes a file more than once.
  bool replaces_files = false;
  // How many times fewer faults it meets than others, for it takes so much longer.
  int slow = 1;
};

[[nodiscard]] std::span<const ProgramCommand> program_commands();

}  // namespace headlight::faults
