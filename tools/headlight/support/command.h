// The program, its subcommands and their options, over CLI11. Only command.cc sees that library: its headers cost a
// compiler several seconds in every file that reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/headlight/support/validators.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headlight::program {

// The options of a command that name files, by what happens to those.
struct FileOptions {
  std::vector<const CLI::Option*> read, written;
};

class Option {
 public:
  Option(CLI::Option* option, FileOptions* files) noexcept : option_(option), files_(files) {}

  Option& required(bool value = true);
  // How help names the value.
  Option& type_name(const std::string& name);
  // Throws UsageError while the arguments are parsed: "--threads is 0, expected 1 to 4096".
  Option& check(Validator validator);
  // It names a file that is read, or one that is written, and that must not be one of those read: it would be gone.
  Option& reads();
  Option& writes();
  // A list takes one value each time that the option is given, not all that follow.
  Option& one_at_a_time();
  // Help does not show it.
  Option& hidden();
  // Whether it was given, even if empty.
  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
  FileOptions* files_;
};

// A handle: copies mean the same subcommand, which lives as long as the program that it was added to.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app), files_(std::make_shared<FileOptions>()) {}

  Command add_subcommand(const std::string& name, const std::string& description);
  // `value` is written when the arguments are parsed; numbers have to be numbers that T holds, and only lists may be
  // given twice. T: string, a list of strings, int32 or 64, uint64, float, double, optional<float>; others do not link.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& description = {});
  Option add_flag(const std::string& name, bool& value, const std::string& description);
  void require_subcommand();
  // The end of the help: remarks, and the subcommand as the program was called, with these arguments.
  void example(const std::string& arguments, const std::string& remarks = {});
  // What is done when the subcommand was chosen and everything has been parsed. Throws UsageError before, where a file
  // to be written is one of those read.
  void callback(std::function<void()> run);
  [[nodiscard]] bool given(const std::string& option) const;

 private:
  CLI::App* app_;
  std::shared_ptr<FileOptions> files_;
};

// Its subcommands are added to commands(); then it runs once.
class Program {
 public:
  // `version` is what --version prints.
  Program(const std::string& description, std::string version);
  ~Program();

  [[nodiscard]] Command& commands() noexcept { return commands_; }
  // Parses the arguments, program name first, and does what they ask for: runs a subcommand, or prints help or the
  // version. "help study" means "study --help". Throws UsageError, and whatever the subcommand throws.
  void run(int count, char** arguments);

 private:
  std::unique_ptr<CLI::App> app_;
  std::string version_;
  Command commands_;
};

}  // namespace headlight::program
