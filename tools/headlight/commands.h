// The subcommands: each adds itself to the program, with its options, its help and what it does when it is chosen.
#pragma once

#include <CLI/CLI.hpp>

namespace headlight::program {

void add_info(CLI::App& program);
void add_attend(CLI::App& program);
void add_encode(CLI::App& program);
void add_embed(CLI::App& program);
void add_demo(CLI::App& program);
void add_beams(CLI::App& program);
void add_heads(CLI::App& program);
void add_presets(CLI::App& program);
void add_train(CLI::App& program);
void add_study(CLI::App& program);
void add_speed(CLI::App& program);

}  // namespace headlight::program
