// The subcommands: each adds itself to the program, with its options, its help and what it does when it is chosen.
#pragma once

#include "tools/headlight/support/command.h"

namespace headlight::program {

void add_info(Command& program);
void add_attend(Command& program);
void add_encode(Command& program);
void add_embed(Command& program);
void add_convert(Command& program);
void add_demo(Command& program);
void add_beams(Command& program);
void add_heads(Command& program);
void add_presets(Command& program);
void add_train(Command& program);
void add_study(Command& program);
void add_speed(Command& program);

// The program with all of them: does what the arguments ask for, its own name first, says on standard error what went
// wrong, and returns the exit code.
[[nodiscard]] int run(int count, char** arguments);

}  // namespace headlight::program
