#include "tools/headlight/commands/attend_gradients.h"

#include "baseline/attention_unfused.h"
#include "ops/attention_backward/check.h"
#include "reference/attention_backward.h"
#include "tools/headlight/commands/attend_arrays.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace {

Tensor<float, 4> tensor_for(const std::string& path, const View<const float, 4>& like) {
  return path.empty() ? Tensor<float, 4>() : Tensor<float, 4>(like.shape);
}

template <int Rank>
View<float, Rank> asked(Tensor<float, Rank>& tensor) {
  return tensor.data() == nullptr ? View<float, Rank>() : tensor.view();
}

}  // namespace

void GradientArguments::add_to(Command& command) {
  command.add_option("--grad-out", out_gradient, "float32 [B, Lq, Hq, Dv]: the gradient of the result, for those below")
      .type_name("NPY")
      .check(file_name())
      .reads();
  const auto add = [&](const char* name, std::string& path, const char* description) {
    command.add_option(name, path, description).type_name("NPY").check(output_name()).writes();
  };
  add("--grad-query", query, "Write the gradient of the queries");
  add("--grad-key", key, "Write the gradient of the keys");
  add("--grad-value", value, "Write the gradient of the values");
  add("--grad-bias", bias, "Write the gradient of --bias");
  add("--grad-sinks", sinks, "Write the gradient of --sinks");
}

void GradientArguments::check_usage(bool has_bias, bool has_sinks) const {
  if (out_gradient.empty() && !outputs().empty()) {
    throw UsageError("--grad-query, --grad-key, --grad-value, --grad-bias and --grad-sinks need --grad-out");
  }
  if (!out_gradient.empty() && outputs().empty()) {
    throw UsageError("--grad-out needs --grad-query, --grad-key, --grad-value, --grad-bias or --grad-sinks");
  }
  if (!bias.empty() && !has_bias) throw UsageError("--grad-bias needs --bias");
  if (!sinks.empty() && !has_sinks) throw UsageError("--grad-sinks needs --sinks");
}

std::vector<std::string> GradientArguments::outputs() const {
  std::vector<std::string> files;
  for (const std::string& path : {query, key, value, bias, sinks}) {
    if (!path.empty()) files.push_back(path);
  }
  return files;
}

Gradients::Gradients(const GradientArguments& arguments, const TypeArguments& types, const GradientInputs& inputs)
    : arguments_(arguments),
      types_(types),
      inputs_(inputs),
      out_gradient_(inputs.rows.read(ArrayFile(arguments.out_gradient, 4, "[B, Lq, Hq, Dv]"), RowsOf::queries)),
      query_(tensor_for(arguments.query, inputs.query)),
      key_(tensor_for(arguments.key, inputs.key)),
      value_(tensor_for(arguments.value, inputs.value)),
      bias_(tensor_for(arguments.bias, inputs.bias)),
      sinks_(arguments.sinks.empty() ? Tensor<float, 1>() : Tensor<float, 1>({inputs.query.extent(2)})) {
  round_to(types.of_query(), out_gradient_.values);
}

void Gradients::compute(Engine& engine, const std::string& method, AttentionCalls* calls,
                        const AttentionOptions& options) {
  const auto& [query, key, value, out, log_sum_exp, bias, bias_shape, rows] = inputs_;
  const View<const float, 4> out_gradient = out_gradient_.view<4>();
  const AttentionGradients gradients{asked(query_), asked(key_), asked(value_), asked(bias_), asked(sinks_)};
  if (calls != nullptr) {
    return calls->attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options);
  }
  if (method == "fused" && types_.all_float32()) {
    return attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options);
  }
  if (method == "fused") {
    return differentiate_typed(engine, types_, {query, key, value, out, log_sum_exp, out_gradient}, gradients, options);
  }
  if (method == "unfused") {
    baseline::attention_unfused_backward(engine, query, key, value, out_gradient, gradients, options);
    round_to(types_.of_query(), {query_.begin(), query_.end()});
    for (Tensor<float, 4>* const gradient : {&key_, &value_}) {
      round_to(types_.of_cache_backward(), {gradient->begin(), gradient->end()});
    }
    return;
  }
  // The twin trusts its arguments.
  ops::check_attention_backward("attention_backward", {query, key, value, out, log_sum_exp, out_gradient}, gradients,
                                options);
  WideResult<4> wide[] = {WideResult(query_), WideResult(key_), WideResult(value_), WideResult(bias_)};
  WideResult sinks(sinks_);
  reference::attention_backward<double>(widen(query), widen(key), widen(value), widen(out_gradient),
                                        {wide[0].view(), wide[1].view(), wide[2].view(), wide[3].view(), sinks.view()},
                                        options);
  wide[0].round(types_.of_query());
  wide[1].round(types_.of_cache_backward());
  wide[2].round(types_.of_cache_backward());
  wide[3].round();
  sinks.round();
}

void Gradients::warn_of_rounded() const { inputs_.rows.warn_if_rounded(arguments_.out_gradient, out_gradient_); }

void Gradients::write(std::vector<WrittenFile>& written) const {
  inputs_.rows.write(arguments_.query, query_, RowsOf::queries, written);
  inputs_.rows.write(arguments_.key, key_, RowsOf::keys, written);
  inputs_.rows.write(arguments_.value, value_, RowsOf::keys, written);
  if (!inputs_.rows.tells()) return;
  write_asked(arguments_.bias, bias_, written, inputs_.bias_shape);
  write_asked(arguments_.sinks, sinks_, written);
}

}  // namespace headlight::program
