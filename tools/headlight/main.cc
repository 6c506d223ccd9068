// headlight: one program, one subcommand a file. Exit codes: 0 done, 1 the input or the machine failed, 2 wrong usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/out_of_memory.h"
#include "headlight/version.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/command.h"
#include "tools/headlight/support/near_name.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

#define HEADLIGHT_TEXT_OF(x) #x
#define HEADLIGHT_TEXT(x) HEADLIGHT_TEXT_OF(x)
constexpr const char* kVersion = "headlight " HEADLIGHT_TEXT(HEADLIGHT_VERSION_MAJOR) "." HEADLIGHT_TEXT(
    HEADLIGHT_VERSION_MINOR) "." HEADLIGHT_TEXT(HEADLIGHT_VERSION_PATCH);

// As far as what was typed leads: the program or a subcommand, and "build/release/headlight study".
struct Asked {
  const CLI::App* app;
  std::string path;
};

Asked asked_for(const CLI::App& program) {
  Asked asked{&program, program.get_name()};
  while (!asked.app->get_subcommands().empty()) {
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

// What is there and unknown is more likely the mistake than what is not there.
std::string what_is_wrong(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = program.remaining(true);
  if (!unknown.empty()) {
    const std::string meant = near_name(unknown.front(), subcommands_of(*asked_for(program).app));
    return models::in_quotes(unknown.front()) + " was not expected" +
           (meant.empty() ? "" : " (did you mean " + meant + "?)");
  }
  const std::string words = error.what();
  // "--threads: 1 required N missing": of values too many, command.cc has said so.
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    return words.substr(0, words.find(':')) + " lacks its value";
  return words;
}

int run(int count, char** arguments) {
  set_program_name(count > 0 ? arguments[0] : "");
  CLI::App program("Multi-head attention for CPUs", program_name());
  program.set_help_flag("--help", "Print this help and exit");
  program.set_version_flag("--version", kVersion, "Print the version and exit");
  program.require_subcommand(1);
  program.footer("Each subcommand has its own --help, with an example; `" + program_name() +
                 " help SUBCOMMAND` is the same.");
  Command commands(program);
  add_info(commands);
  add_attend(commands);
  add_encode(commands);
  add_embed(commands);
  add_demo(commands);
  add_beams(commands);
  add_heads(commands);
  add_presets(commands);
  add_train(commands);
  add_study(commands);
  add_speed(commands);
  try {
    program.parse(arguments_of(count, arguments));  // runs the subcommand
  } catch (const CLI::CallForHelp& help) {
    if (asks_for_help(count, arguments) && !program.remaining(true).empty())
      throw UsageError(what_is_wrong(program, help) + "; see " + asked_for(program).path + " --help");
    print(program.help());
  } catch (const CLI::CallForVersion&) {
    print(std::string(kVersion) + "\n");
  } catch (const CLI::ParseError& error) {
    throw UsageError(what_is_wrong(program, error) + "; see " + asked_for(program).path + " --help");
  }
  return kDone;
}

}  // namespace
}  // namespace headlight::program

int main(int count, char** arguments) {
  using namespace headlight::program;
  prepare_process();
  try {
    return run(count, arguments);
  } catch (const NobodyReads&) {
    return kDone;
  } catch (const UsageError& error) {
    print_error(error.what());
    return kWrongUsage;
  } catch (const headlight::OutOfMemory& error) {
    print_error(format("out of memory: %s", error.what()));
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::length_error&) {  // what containers throw for sizes that no memory has
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return kFailed;
}
