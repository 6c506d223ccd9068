// headlight study: trade-offs, measured. One study a file, each a subcommand of its own with a table that explains
// itself.
#pragma once

#include <functional>
#include <string>

#include "tools/headlight/support/command.h"
#include "tools/headlight/support/engine_arguments.h"

namespace headlight::program {

// The options that every study shares.
struct StudyArguments {
  EngineArguments engine;
  std::string json;
  std::string svg;
  bool quick = false;

  void add_to(Command& command);
  // The table on standard output, or with --json - the document alone; files where they are asked for.
  void give(const std::string& table, const std::string& document, const std::function<std::string()>& chart) const;
};

void add_study_activations(Command& study);
void add_study_diversity(Command& study);
void add_study_memory(Command& study);
void add_study_chunk(Command& study);
void add_study_depth(Command& study);
void add_study_heads(Command& study);
void add_study_merge(Command& study);
void add_study_relations(Command& study);
void add_study_precision(Command& study);

}  // namespace headlight::program
