#include "tools/headlight/support/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"
#include "tools/headlight/support/near_name.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

// Help shows the second alone: -o and -t are the short names that scripts use, -h is what hands type.
constexpr const char* kHelpFlags = "-h,--help";

// "-t,--threads" → "--threads"
std::string long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

template <class T>
void parse_into(T& value, const std::string& name, const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    value = text;
  } else {
    const auto number = parse_number<T>(text);
    if (!number) {
      refuse_value(name, text,
                   std::is_same_v<T, float>    ? "a finite number that float32 holds"
                   : std::is_same_v<T, double> ? "a finite number that float64 holds"
                                               : std::to_string(std::numeric_limits<T>::min()) + " to " +
                                                     std::to_string(std::numeric_limits<T>::max()));
    }
    value = *number;
  }
}

template <class T>
void parse_into(std::optional<T>& value, const std::string& name, const std::string& text) {
  parse_into(value.emplace(), name, text);
}

// "build/release/headlight study memory"
std::string path_of(const CLI::App& app) {
  return (app.get_parent() == nullptr ? "" : path_of(*app.get_parent()) + " ") + app.get_name();
}

// Whether both are one file on a disk, under whatever names.
bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a != "-" && b != "-" && std::filesystem::is_regular_file(a, error) &&
         std::filesystem::equivalent(a, b, error) && !error;
}

void check_inputs_stay(const FileOptions& files) {
  for (const CLI::Option* written : files.written) {
    for (const CLI::Option* read : files.read) {
      if (written->count() == 0 || read->count() == 0) continue;
      const std::string path = written->results().front();
      if (!is_same_file(path, read->results().front())) continue;
      refuse_value("--" + written->get_single_name(), path,
                   "another file than that of --" + read->get_single_name() + ", which it would replace");
    }
  }
}

// As far as what was typed leads: the program or a subcommand, and "build/release/headlight study".
struct Asked {
  const CLI::App* app;
  std::string path;
};

// "shine" in "headlight shine info".
bool has_stray_word(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining();
  return !unknown.empty() && !unknown.front().starts_with('-');
}

Asked asked_for(const CLI::App& program) {
  Asked asked{&program, program.get_name()};
  while (!asked.app->get_subcommands().empty() && !has_stray_word(*asked.app)) {
    asked.app = asked.app->get_subcommands().front();
    asked.path += " " + asked.app->get_name();
  }
  return asked;
}

std::vector<std::string> subcommands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands({})) names.push_back(subcommand->get_name());
  return names;
}

// Those that --help shows: "--causal".
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty() && !option->get_lnames().empty()) names.push_back("--" + option->get_lnames()[0]);
  }
  return names;
}

bool asks_for_help(int count, char** arguments) { return count > 1 && std::string_view(arguments[1]) == "help"; }

// The arguments behind the program's name, the last one first, as CLI11 takes them; "help study" as "study --help".
std::vector<std::string> arguments_of(int count, char** arguments) {
  std::vector<std::string> list(arguments + std::min(count, 1), arguments + count);
  if (asks_for_help(count, arguments)) {
    list.erase(list.begin());
    list.emplace_back("--help");
  }
  std::reverse(list.begin(), list.end());
  return list;
}

// Words in lines of a terminal's width; lines that the text has stay.
std::string wrapped(const std::string& text) {
  constexpr std::size_t kColumns = 110;
  std::string lines;
  std::size_t begin = 0, column = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (column > 0 && column + 1 + (end - begin) > kColumns) lines += "\n", column = 0;
    if (column > 0) lines += " ", ++column;
    lines.append(text, begin, end - begin);
    column += end - begin;
    if (end < text.size() && text[end] == '\n') lines += "\n", column = 0;
    begin = end + 1;
  }
  return lines;
}

// Of what was typed and is not known, `app` being as far as the rest leads.
std::string what_is_unknown(const CLI::App& app, const std::string& typed) {
  const bool is_option = typed.starts_with("--");
  const std::vector<std::string> subcommands = subcommands_of(app);
  const std::string meant = near_name(std::string_view(typed).substr(0, is_option ? typed.find('=') : typed.npos),
                                      is_option ? options_of(app) : subcommands);
  const std::string guess = meant.empty() ? "" : " (did you mean " + meant + "?)";
  if (typed.starts_with("-")) return models::in_quotes(typed) + " was not expected" + guess;
  if (subcommands.empty()) return models::in_quotes(typed) + " was not expected, for options begin with --";
  return models::in_quotes(typed) + " is no subcommand" +
         (meant.empty() ? ", expected one of " + runtime::list_text(subcommands) : guess);
}

// What is there and unknown is more likely the mistake than what is not there.
std::string what_is_wrong(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& app = *asked_for(program).app;
  const std::vector<std::string> unknown = program.remaining(true);
  if (!unknown.empty()) return what_is_unknown(app, unknown.front());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app.get_require_subcommand_min() > 0) {
    return "a subcommand is missing, expected one of " + runtime::list_text(subcommands_of(app));
  }
  const std::string words = error.what();
  // "--threads: 1 required N missing": of values too many, command.cc has said so.
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return words.substr(0, words.find(':')) + " lacks its value";
  return words;
}

}  // namespace

Option& Option::required(bool value) {
  option_->required(value);
  return *this;
}

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::check(Validator validator) {
  const auto run = [option = option_, validator = std::move(validator)](const std::string& text) {
    const std::string expected = validator(text);
    if (!expected.empty()) refuse_value("--" + option->get_single_name(), text, expected);
    return std::string();
  };
  option_->check(std::function<std::string(const std::string&)>(run));
  return *this;
}

Option& Option::reads() {
  files_->read.push_back(option_);
  return *this;
}

Option& Option::writes() {
  files_->written.push_back(option_);
  return *this;
}

Option& Option::one_at_a_time() {
  option_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  return *this;
}

Option& Option::hidden() {
  option_->group("");
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

Command Command::add_subcommand(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

// Single values are read here, for CLI11 takes 0x10 and −1 for whole numbers from 0 on and words its refusals its own
// way.
template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& description) {
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return Option(app_->add_option(names, value, description), files_.get());
  } else {
    const auto read = [name = long_name(names), &value](const CLI::results_t& texts) {
      if (texts.size() != 1)
        throw UsageError(name + " is given " + std::to_string(texts.size()) + " times, expected once");
      parse_into(value, name, texts.front());
      return true;
    };
    CLI::Option* const option = app_->add_option(names, CLI::callback_t(read), description);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return Option(option, files_.get());
  }
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, std::int32_t&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, float&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<float>&, const std::string&);

Option Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return Option(app_->add_flag(name, value, description), files_.get()).check([](const std::string& text) {
    return text == "true" ? "" : "no value";  // CLI11 takes --json=no too
  });
}

void Command::require_subcommand() { app_->require_subcommand(1); }

void Command::example(const std::string& arguments, const std::string& remarks) {
  app_->footer(wrapped(remarks) + (remarks.empty() ? "" : "\n\n") + "Example:\n  " + path_of(*app_) +
               (arguments.empty() ? "" : " ") + arguments);
}

void Command::callback(std::function<void()> run) {
  app_->callback([files = files_, run = std::move(run)] {
    check_inputs_stay(*files);
    run();
  });
}

bool Command::given(const std::string& option) const { return app_->count(option) > 0; }

Program::Program(const std::string& description, std::string version)
    : app_(std::make_unique<CLI::App>(description, program_name())), version_(std::move(version)), commands_(*app_) {
  app_->set_help_flag(kHelpFlags, "Print this help and exit");
  app_->set_version_flag("--version", version_, "Print the version and exit");
  app_->require_subcommand(1);
  app_->footer("Each subcommand has its own --help, with an example; `" + program_name() +
               " help SUBCOMMAND` is the same.");
}

Program::~Program() = default;

void Program::run(int count, char** arguments) {
  try {
    app_->parse(arguments_of(count, arguments));  // runs the subcommand
  } catch (const CLI::CallForHelp& help) {
    if (asks_for_help(count, arguments) && !app_->remaining(true).empty())
      throw UsageError(what_is_wrong(*app_, help) + "; see " + asked_for(*app_).path + " --help");
    // A group of options that are hidden leaves an empty line behind.
    std::string text = app_->help();
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != text.npos;) text.erase(at, 1);
    const std::string_view flags = kHelpFlags;
    if (const std::size_t at = text.find(flags); at != text.npos) {
      text.replace(at, flags.size(), "--help" + std::string(flags.size() - 6, ' '));
    }
    print(text);
  } catch (const CLI::CallForVersion&) {
    print(version_ + "\n");
  } catch (const CLI::ParseError& error) {
    throw UsageError(what_is_wrong(*app_, error) + "; see " + asked_for(*app_).path + " --help");
  }
}

}  // namespace headlight::program
