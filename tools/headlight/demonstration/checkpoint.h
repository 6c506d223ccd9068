// A training run in a file, to go on from.
#pragma once

#include <string>

#include "tools/headlight/demonstration/trainer.h"

namespace headlight::demonstration {

// One safetensors file: parameters and moments by their names; steps taken, options, vocabulary and command in its
// metadata. It appears whole or not at all. Throws models::FileError.
void save_checkpoint(const std::string& path, Trainer& trainer, const std::string& command);

// The options of the run. Throws models::FileError for a file that is cut short, is no such checkpoint, or is one for
// another vocabulary.
[[nodiscard]] TrainingOptions read_checkpoint_options(const std::string& path);

// Puts a trainer of these options where the run was. Throws models::FileError.
void restore_checkpoint(const std::string& path, Trainer& trainer);

}  // namespace headlight::demonstration
