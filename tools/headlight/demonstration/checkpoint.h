// A training run in a file, to go on from.
#pragma once

#include <cstdint>
#include <string>

#include "tools/headlight/demonstration/trainer.h"

namespace headlight::demonstration {

// One safetensors file: parameters and moments by their names; steps taken, options, vocabulary and command in its
// metadata. It appears whole or not at all. Of several processes that train together all call it, and one writes.
// Throws models::FileError.
void save_checkpoint(const std::string& path, Trainer& trainer, const std::string& command);

// What a checkpoint says of its run.
struct CheckpointedRun {
  TrainingOptions options;
  std::int64_t steps_taken = 0;  // at most options.steps
  std::string command;           // what it was called with

  [[nodiscard]] bool ended() const noexcept { return steps_taken == options.steps; }
};

// Throws models::FileError for a file that is cut short, is no such checkpoint, or is one for another vocabulary.
[[nodiscard]] CheckpointedRun read_checkpoint(const std::string& path);

// Puts a trainer of these options, or of more steps, where the run was. Throws models::FileError.
void restore_checkpoint(const std::string& path, Trainer& trainer);

}  // namespace headlight::demonstration
