// headlight: one program, one subcommand a file. Exit codes: 0 done, 1 the input or the machine failed, 2 wrong usage.
#include <CLI/CLI.hpp>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/out_of_memory.h"
#include "headlight/version.h"
#include "tools/headlight/command.h"
#include "tools/headlight/commands.h"
#include "tools/headlight/number_text.h"
#include "tools/headlight/process.h"

namespace headlight::program {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

#define HEADLIGHT_TEXT_OF(x) #x
#define HEADLIGHT_TEXT(x) HEADLIGHT_TEXT_OF(x)
constexpr const char* kVersion = "headlight " HEADLIGHT_TEXT(HEADLIGHT_VERSION_MAJOR) "." HEADLIGHT_TEXT(
    HEADLIGHT_VERSION_MINOR) "." HEADLIGHT_TEXT(HEADLIGHT_VERSION_PATCH);

// "build/release/headlight study": as far as what was typed leads.
std::string asked_for(const CLI::App& program) {
  std::string path = program.get_name();
  for (const CLI::App* at = &program; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

// What is there and unknown is more likely the mistake than what is not there.
std::string what_is_wrong(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = program.remaining(true);
  if (!unknown.empty()) return models::in_quotes(unknown.front()) + " was not expected";
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
  program.footer("Each subcommand has its own --help, with an example.");
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
    program.parse(count, arguments);  // runs the subcommand
  } catch (const CLI::CallForHelp&) {
    print(program.help());
  } catch (const CLI::CallForVersion&) {
    print(std::string(kVersion) + "\n");
  } catch (const CLI::ParseError& error) {
    throw UsageError(what_is_wrong(program, error) + "; see " + asked_for(program) + " --help");
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
