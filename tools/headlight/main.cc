// headlight: one program, one subcommand a file. Exit codes: 0 done, 1 the input or the machine failed, 2 wrong usage.
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/process.h"

int main(int count, char** arguments) {
  headlight::program::prepare_process();
  return headlight::program::run(count, arguments);
}
