#include <exception>
#include <new>
#include <stdexcept>

#include "headlight/models/errors.h"
#include "headlight/out_of_memory.h"
#include "headlight/version.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/caller.h"
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

void add_all(Command& commands) {
  add_info(commands);
  add_attend(commands);
  add_encode(commands);
  add_embed(commands);
  add_rerank(commands);
  add_tokenize(commands);
  add_convert(commands);
  add_demo(commands);
  add_beams(commands);
  add_heads(commands);
  add_presets(commands);
  add_train(commands);
  add_study(commands);
  add_speed(commands);
}

void run_one(const ProgramParts& parts, int count, char** arguments) {
  set_program_name(count > 0 ? arguments[0] : "");
  listen_to_caller();
  Program program(parts.description, kVersion);
  parts.add_commands(program.commands());
  program.run(count, arguments);
}

}  // namespace

int run(int count, char** arguments) {
  return run({"Multi-head attention for CPUs", add_all, print_error}, count, arguments);
}

int run(const ProgramParts& parts, int count, char** arguments) {
  try {
    run_one(parts, count, arguments);
    return kDone;
  } catch (const models::NobodyReads&) {
    return kDone;  // as after `headlight … | head -1`: nothing is left to do
  } catch (const UsageError& error) {
    parts.tell(error.what());
    return kWrongUsage;
  } catch (const OutOfMemory& error) {
    parts.tell(format("out of memory: %s", error.what()));
  } catch (const std::bad_alloc&) {
    parts.tell("out of memory");
  } catch (const std::length_error&) {  // what containers throw for sizes that no memory has
    parts.tell("out of memory");
  } catch (const std::exception& error) {
    parts.tell(error.what());
  }
  return kFailed;
}

}  // namespace headlight::program
