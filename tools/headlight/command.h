// A subcommand and its options, over CLI11. Only command.cc and main.cc see that library: its headers cost
// a compiler several seconds in every file that reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace headlight::program {

// What a value is held against before anything is done with it.
using Validator = std::function<void(CLI::Option&)>;

// Values from `least` to `most`, both included.
[[nodiscard]] Validator between(std::int64_t least, std::int64_t most);
[[nodiscard]] Validator between_real(double least, double most);
[[nodiscard]] Validator one_of(const std::vector<std::string>& names);
[[nodiscard]] Validator one_of_numbers(const std::vector<std::int64_t>& numbers);
// `complaint` gives what is wrong with a text, or nothing.
[[nodiscard]] Validator checked_by(std::function<std::string(const std::string&)> complaint);

class Option {
 public:
  explicit Option(CLI::Option* option) noexcept : option_(option) {}

  Option& required(bool value = true);
  // How help names the value.
  Option& type_name(const std::string& name);
  Option& check(const Validator& validator);
  // A list takes one value each time that the option is given, not all that follow.
  Option& one_at_a_time();
  // One value with this between its parts fills a list.
  Option& delimiter(char between);
  // Help does not show it.
  Option& hidden();
  // Whether it was given, even if empty.
  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
};

// A handle: copies mean the same subcommand, which lives as long as the program that it was added to.
class Command {
 public:
  explicit Command(CLI::App& app) noexcept : app_(&app) {}

  Command add_subcommand(const std::string& name, const std::string& description);
  // `value` is written when the arguments are parsed. T: string, a list of strings, int32 or 64, uint64, float, double,
  // optional<float>; others do not link.
  template <class T>
  Option add_option(const std::string& names, T& value, const std::string& description = {});
  Option add_flag(const std::string& name, bool& value, const std::string& description);
  void require_subcommand();
  // The end of the help.
  void footer(const std::string& text);
  // What is done when the subcommand was chosen and everything has been parsed.
  void callback(std::function<void()> run);
  [[nodiscard]] bool given(const std::string& option) const;

 private:
  CLI::App* app_;
};

}  // namespace headlight::program
