// What headlight attend does to scores on their way to the softmax, where rows and keys stand, and the scores
// themselves.
#pragma once

#include <optional>
#include <string>

#include "headlight/attention.h"
#include "headlight/models/npy.h"
#include "tools/headlight/support/command.h"

namespace headlight::program {

struct ScoreArguments {
  std::string query_start, key_start;
  std::optional<float> softcap;
  std::string slopes, sinks;
  std::string scores, scores_at;

  void add_to(Command& command);
  // Throws UsageError where options are missing that others need.
  void check_usage() const;
};

// A position for all sequences, or one for each of them.
struct StartInput {
  std::optional<std::int64_t> number;
  models::Array<std::int64_t> numbers;
  [[nodiscard]] Start start() const { return number ? Start(*number) : Start(numbers.values); }
};

// The arrays that these options point into.
struct ScoreInputs {
  StartInput query_start, key_start;
  models::Array<float> slopes, sinks;
};
[[nodiscard]] ScoreInputs read_score_inputs(const ScoreArguments& arguments);

// All but the place that scores are written to.
void set_score_options(const ScoreArguments& arguments, const ScoreInputs& inputs, AttentionOptions& options);

}  // namespace headlight::program
