#include "tools/headlight/studies/study.h"

#include "tools/headlight/commands/commands.h"

namespace headlight::program {

void add_study(Command& program) {
  Command command = program.add_subcommand("study", "What a choice costs and what it buys, measured here");
  command.require_subcommand();
  command.example("memory --quick", "Each study has its own --help.");
  add_study_memory(command);
  add_study_chunk(command);
  add_study_depth(command);
  add_study_heads(command);
  add_study_merge(command);
  add_study_diversity(command);
  add_study_relations(command);
  add_study_precision(command);
  add_study_activations(command);
}

}  // namespace headlight::program
