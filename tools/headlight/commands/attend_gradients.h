// The backward half of headlight attend: --grad-out and what is asked for it.
#pragma once

#include <string>
#include <vector>

#include "headlight/attention_backward.h"
#include "headlight/models/npy.h"
#include "tools/headlight/commands/attend_rows.h"
#include "tools/headlight/commands/attend_types.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/command.h"
#include "tools/headlight/support/output.h"

namespace headlight::program {

struct GradientArguments {
  std::string out_gradient, query, key, value, bias, sinks;

  void add_to(Command& command);
  // Throws UsageError where options are missing that others need.
  void check_usage(bool has_bias, bool has_sinks) const;
  // The files that will be written.
  [[nodiscard]] std::vector<std::string> outputs() const;
};

// What gradients are computed from; out and log_sum_exp are those of the forward pass.
struct GradientInputs {
  View<const float, 4> query, key, value, out;
  View<const float, 3> log_sum_exp;
  View<const float, 4> bias;
  std::vector<std::int64_t> bias_shape;  // as the file has it: of fewer axes, perhaps none
  const HeldRows& rows;
};

// The gradients asked for, computed and then written.
class Gradients {
 public:
  // Reads --grad-out, which has the type of the result; gradients have those of what they are gradients of.
  Gradients(const GradientArguments& arguments, const TypeArguments& types, const GradientInputs& inputs);
  // method: fused, unfused or reference; or by `calls`, where there are some.
  void compute(Engine& engine, const std::string& method, AttentionCalls* calls, const AttentionOptions& options);
  void warn_of_rounded() const;
  // Adds what it has written.
  void write(std::vector<WrittenFile>& written) const;

 private:
  const GradientArguments& arguments_;
  const TypeArguments& types_;
  GradientInputs inputs_;
  models::Array<float> out_gradient_;
  Tensor<float, 4> query_, key_, value_, bias_;
  Tensor<float, 1> sinks_;
};

}  // namespace headlight::program
