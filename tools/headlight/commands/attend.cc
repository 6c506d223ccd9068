// headlight attend: attention on arrays, the black box that anyone can hold against another framework.
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "baseline/attention_unfused.h"
#include "headlight/attention.h"
#include "headlight/models/errors.h"
#include "ops/attention/check.h"
#include "reference/attention.h"
#include "tools/headlight/commands/attend_arrays.h"
#include "tools/headlight/commands/attend_gradients.h"
#include "tools/headlight/commands/attend_names.h"
#include "tools/headlight/commands/attend_rows.h"
#include "tools/headlight/commands/attend_scores.h"
#include "tools/headlight/commands/attend_types.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace attend_command {
namespace {

struct Arguments {
  EngineArguments engine;
  std::string query, key, value, out;
  std::string causal, window, align;
  std::int64_t chunk = 0;
  std::string query_lengths, key_lengths, cu_seqlens;
  std::string mask, mask_means, bias;
  std::optional<float> scale;
  float dropout = 0;
  std::uint64_t seed = 0;
  TypeArguments types;
  ScoreArguments scores;
  GradientArguments gradients;
  std::string log_sum_exp, probabilities;
  std::string method = "fused";
  std::shared_ptr<AttentionCalls> calls;  // null: the method's
};

// The arrays that the options point into.
struct Inputs {
  explicit Inputs(AttentionCalls* calls) : rows(calls) {}

  HeldRows rows;
  models::Array<float> query, key, value;
  Int8Cache cache;
  Broadcast<float> bias;
  models::Array<std::int64_t> query_lengths, key_lengths, cu_seqlens;
  Broadcast<std::uint8_t> mask;
  ScoreInputs scores;
};

constexpr const char* kScores = "[B, Hq, Lq, Lk]";

// "LEFT,RIGHT", −1 for unbounded.
std::optional<Window> parse_window(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return std::nullopt;
  const auto left = parse_number<std::int64_t>(text.substr(0, comma));
  const auto right = parse_number<std::int64_t>(text.substr(comma + 1));
  if (!left || !right || *left < -1 || *right < -1) return std::nullopt;
  return Window{*left, *right};
}

std::string expected_window(const std::string& text) {
  if (parse_window(text)) return "";
  const std::size_t comma = std::min(text.find(','), text.size());
  const bool too_large = is_too_large<std::int64_t>(text.substr(0, comma)) ||
                         (comma < text.size() && is_too_large<std::int64_t>(text.substr(comma + 1)));
  return "LEFT,RIGHT: two whole numbers, each at " +
         (too_large ? "most " + std::to_string(std::numeric_limits<std::int64_t>::max()) : "least -1");
}

// The same for every spelling of a path.
std::filesystem::path place_of(const std::string& path) {
  std::error_code error;
  std::filesystem::path place = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? std::filesystem::path(path) : place;
}

void check_usage(const Arguments& arguments) {
  if (arguments.mask.empty() != arguments.mask_means.empty()) {
    throw UsageError("--mask and --mask-means go together: frameworks disagree on what true says");
  }
  if (!arguments.cu_seqlens.empty() && !(arguments.query_lengths.empty() && arguments.key_lengths.empty())) {
    throw UsageError("--cu-seqlens cannot go with --query-lengths or --key-lengths");
  }
  if (arguments.calls) {
    for (const auto& [option, path] : {std::pair("--mask", &arguments.mask),
                                       {"--bias", &arguments.bias},
                                       {"--probabilities", &arguments.probabilities},
                                       {"--scores", &arguments.scores.scores}}) {
      if (!path->empty()) throw UsageError(std::string(option) + " has an axis of keys, of which a rank holds some");
    }
  }
  arguments.scores.check_usage();
  arguments.gradients.check_usage(!arguments.bias.empty(), !arguments.scores.sinks.empty());
  std::vector<std::filesystem::path> outputs{place_of(arguments.out)};
  std::vector<std::string> others = arguments.gradients.outputs();
  others.insert(others.end(), {arguments.log_sum_exp, arguments.probabilities, arguments.scores.scores});
  for (const std::string& path : others) {
    if (path.empty()) continue;
    if (std::find(outputs.begin(), outputs.end(), place_of(path)) != outputs.end()) {
      throw UsageError("two outputs have the name '" + models::printable(path) + "'");
    }
    outputs.push_back(place_of(path));
  }
}

void read_lists(const Arguments& arguments, std::int64_t batch, Inputs& inputs) {
  inputs.query_lengths = read_numbers<std::int64_t>(arguments.query_lengths, "[B]", batch);
  inputs.key_lengths = read_numbers<std::int64_t>(arguments.key_lengths, "[B]", batch);
  inputs.cu_seqlens = read_numbers<std::int64_t>(arguments.cu_seqlens, "[n + 1]");
  if (!arguments.mask.empty()) inputs.mask = read_broadcast<std::uint8_t>(arguments.mask, 4, kScores);
  if (!arguments.bias.empty()) inputs.bias = read_broadcast<float>(arguments.bias, 4, kScores);
  inputs.scores = read_score_inputs(arguments.scores);
}

AttentionOptions make_options(const Arguments& arguments, const Inputs& inputs) {
  AttentionOptions options;
  if (arguments.causal == "top-left") options.causal = Causal::top_left;
  if (arguments.causal == "bottom-right") options.causal = Causal::bottom_right;
  if (arguments.align == "top-left") options.align = Align::top_left;
  if (arguments.align == "bottom-right") options.align = Align::bottom_right;
  if (!arguments.window.empty()) options.window = *parse_window(arguments.window);
  options.chunk = arguments.chunk;
  options.query_lengths = inputs.query_lengths.values;
  options.key_lengths = inputs.key_lengths.values;
  options.query_offsets = inputs.cu_seqlens.values;
  if (!arguments.mask.empty()) {
    options.mask =
        BooleanMask{inputs.mask.view<4>(), arguments.mask_means == "attend" ? MaskMeans::attend : MaskMeans::ignore};
  }
  if (!arguments.bias.empty()) options.bias = inputs.bias.view<4>();
  options.scale = arguments.scale;
  set_score_options(arguments.scores, inputs.scores, options);
  options.dropout = {arguments.dropout, arguments.seed};
  return options;
}

Inputs read_inputs(const Arguments& arguments) {
  Inputs inputs(arguments.calls.get());
  const ArrayFile query(arguments.query, 4, "[B, Lq, Hq, D]");
  const ArrayFile key(arguments.key, 4, "[B, Lk, Hkv, D]");
  const ArrayFile value(arguments.value, 4, "[B, Lk, Hkv, Dv]");
  read_lists(arguments, query.shape()[0], inputs);
  inputs.rows.plan(query.shape(), key.shape(), value.shape(), make_options(arguments, inputs));
  inputs.query = inputs.rows.read(query, RowsOf::queries);
  inputs.key = inputs.rows.read(key, RowsOf::keys);
  inputs.value = inputs.rows.read(value, RowsOf::keys);
  round_to(arguments.types.of_query(), inputs.query.values);
  if (arguments.types.of_cache() == NumberType::int8) {
    inputs.cache.key.emplace(View<float, 4>(inputs.key.values.data(), inputs.key.view<4>().shape));
    inputs.cache.value.emplace(View<float, 4>(inputs.value.values.data(), inputs.value.view<4>().shape));
  } else {
    round_to(arguments.types.of_cache(), inputs.key.values);
    round_to(arguments.types.of_cache(), inputs.value.values);
  }
  return inputs;
}

struct Outputs {
  Tensor<float, 4> out, probabilities, scores;
  Tensor<float, 3> log_sum_exp;
};

Outputs make_outputs(const Arguments& arguments, const Inputs& inputs) {
  const auto& query = inputs.query.shape;
  Outputs outputs;
  outputs.out = Tensor<float, 4>({query[0], query[1], query[2], inputs.value.shape[3]});
  // The gradients are computed from it.
  if (!arguments.log_sum_exp.empty() || !arguments.gradients.out_gradient.empty())
    outputs.log_sum_exp = Tensor<float, 3>({query[0], query[2], query[1]});
  const std::array<std::int64_t, 4> squares = {query[0], query[2], query[1], inputs.key.shape[1]};
  if (!arguments.probabilities.empty()) outputs.probabilities = Tensor<float, 4>(squares);
  if (!arguments.scores.scores.empty()) outputs.scores = Tensor<float, 4>(squares);
  return outputs;
}

// With float64 between, for the twin trusts its arguments and knows no other type.
void compute_reference(const Inputs& inputs, const AttentionOptions& options, NumberType type, Outputs& outputs) {
  const View<const float, 4> query = inputs.query.view<4>(), key = inputs.key.view<4>(), value = inputs.value.view<4>();
  ops::check_attention("attention", query, key, value, outputs.out, options);
  WideResult out(outputs.out), probabilities(outputs.probabilities), scores(outputs.scores);
  WideResult log_sum_exp(outputs.log_sum_exp);
  reference::attention<double>(
      widen(query), widen(key), widen(value), out.view(), options,
      {.log_sum_exp = log_sum_exp.view(), .probabilities = probabilities.view(), .scores = scores.view()});
  out.round(type);
  for (WideResult<4>* const result : {&probabilities, &scores}) result->round();
  log_sum_exp.round();
}

void compute(Engine& engine, const Arguments& arguments, const Inputs& inputs, Outputs& outputs) {
  AttentionOptions options = make_options(arguments, inputs);
  if (outputs.log_sum_exp.data() != nullptr) options.log_sum_exp = outputs.log_sum_exp;
  if (outputs.probabilities.data() != nullptr) options.probabilities.per_head = outputs.probabilities;
  if (outputs.scores.data() != nullptr) options.scores = outputs.scores;
  const View<const float, 4> query = inputs.query.view<4>(), key = inputs.key.view<4>(), value = inputs.value.view<4>();
  if (arguments.calls) return arguments.calls->attention(engine, query, key, value, outputs.out, options);
  if (arguments.method == "reference") return compute_reference(inputs, options, arguments.types.of_query(), outputs);
  if (arguments.method == "unfused") {
    baseline::attention_unfused(engine, query, key, value, outputs.out, options);
    round_to(arguments.types.of_query(), {outputs.out.begin(), outputs.out.end()});
  } else if (arguments.types.all_float32()) {
    attention(engine, query, key, value, outputs.out, options);
  } else {
    attend_typed(engine, arguments.types, query, key, value, inputs.cache, outputs.out, options);
  }
}

// What a call needs, read and made.
struct Prepared {
  explicit Prepared(const Arguments& arguments)
      : inputs(read_inputs(arguments)), outputs(make_outputs(arguments, inputs)) {
    if (arguments.gradients.out_gradient.empty()) return;
    gradients.emplace(
        arguments.gradients, arguments.types,
        GradientInputs{inputs.query.view<4>(), inputs.key.view<4>(), inputs.value.view<4>(), outputs.out,
                       outputs.log_sum_exp, arguments.bias.empty() ? View<const float, 4>() : inputs.bias.view<4>(),
                       inputs.bias.own_shape, inputs.rows});
  }

  void warn_of_rounded(const Arguments& arguments) const {
    inputs.rows.warn_if_rounded(arguments.query, inputs.query);
    inputs.rows.warn_if_rounded(arguments.key, inputs.key);
    inputs.rows.warn_if_rounded(arguments.value, inputs.value);
    warn_if_rounded(arguments.bias, inputs.bias);
    if (gradients) gradients->warn_of_rounded();
  }

  Inputs inputs;
  Outputs outputs;
  std::optional<Gradients> gradients;
};

// Where others compute along, all hear of one that could not.
std::unique_ptr<Prepared> prepare(const Arguments& arguments) {
  if (!arguments.calls) return std::make_unique<Prepared>(arguments);
  std::unique_ptr<Prepared> prepared;
  std::string problem;
  arguments.calls->begin();
  try {
    prepared = std::make_unique<Prepared>(arguments);
  } catch (const std::exception& error) {
    problem = in_names_of_options(error.what());
  }
  arguments.calls->agree(problem);
  return prepared;
}

void attend(const Arguments& arguments) {
  const std::unique_ptr<Prepared> prepared = prepare(arguments);
  prepared->warn_of_rounded(arguments);
  auto& [inputs, outputs, gradients] = *prepared;
  Engine engine(arguments.engine.options());
  compute(engine, arguments, inputs, outputs);
  if (gradients) {
    gradients->compute(engine, arguments.method, arguments.calls.get(), make_options(arguments, inputs));
  }
  std::vector<WrittenFile> written;
  inputs.rows.write(arguments.log_sum_exp, outputs.log_sum_exp, written);
  write_asked(arguments.probabilities, outputs.probabilities, written);
  write_asked(arguments.scores.scores, outputs.scores, written);
  if (gradients) gradients->write(written);
  inputs.rows.write(arguments.out, outputs.out, RowsOf::queries, written);
  std::rotate(written.begin(), written.end() - 1, written.end());  // the result is told first, and written last
  if (inputs.rows.tells()) print_report(written);
}

void add_tensors(Command& command, Arguments& arguments) {
  const auto add = [&](const char* name, std::string& path, const char* help) {
    command.add_option(name, path, help).type_name("NPY").check(file_name()).reads().required();
  };
  add("--query", arguments.query, "float32 [B, Lq, Hq, D]");
  add("--key", arguments.key, "float32 [B, Lk, Hkv, D]; Hq is a multiple of Hkv");
  add("--value", arguments.value, "float32 [B, Lk, Hkv, Dv]");
  command.add_option("-o,--output", arguments.out, "The result, float32 [B, Lq, Hq, Dv]")
      .type_name("NPY")
      .check(output_name())
      .writes()
      .required();
}

void add_masks(Command& command, Arguments& arguments) {
  const auto alignment = one_of({"top-left", "bottom-right"});
  command.add_option("--causal", arguments.causal, "Row i sees keys up to its own position")
      .type_name("top-left|bottom-right")
      .check(alignment);
  command.add_option("--window", arguments.window, "Row at p sees keys p-LEFT to p+RIGHT; -1 means unbounded")
      .type_name("LEFT,RIGHT")
      .check(expected_window);
  command.add_option("--chunk", arguments.chunk, "Row at p sees the keys of its own chunk of C")
      .type_name("C")
      .check(at_least(1));
  command
      .add_option("--align", arguments.align,
                  "Where rows stand for windows, chunks and slopes (default: as --causal, else top-left)")
      .type_name("top-left|bottom-right")
      .check(alignment);
  command.add_option("--query-lengths", arguments.query_lengths, "int64 [B]: rows from here on are padding")
      .type_name("NPY")
      .check(file_name())
      .reads();
  command.add_option("--key-lengths", arguments.key_lengths, "int64 [B]: keys from here on are padding")
      .type_name("NPY")
      .check(file_name())
      .reads();
  command.add_option("--cu-seqlens", arguments.cu_seqlens, "int64 [n+1]: n sequences packed in one (B = 1)")
      .type_name("NPY")
      .check(file_name())
      .reads();
  command.add_option("--mask", arguments.mask, "bool or uint8, broadcast against [B, Hq, Lq, Lk]")
      .type_name("NPY")
      .check(file_name())
      .reads();
  command.add_option("--mask-means", arguments.mask_means, "What true in --mask says")
      .type_name("attend|ignore")
      .check(one_of({"attend", "ignore"}));
  command.add_option("--bias", arguments.bias, "float32, added to the scores, broadcast against [B, Hq, Lq, Lk]")
      .type_name("NPY")
      .check(file_name())
      .reads();
}

}  // namespace
}  // namespace attend_command

void add_attend(Command& program, const std::shared_ptr<AttentionCalls>& calls) {
  using namespace attend_command;
  Command command = program.add_subcommand("attend", "Attention on .npy arrays");
  const auto arguments = std::make_shared<Arguments>();
  arguments->calls = calls;
  add_tensors(command, *arguments);
  add_masks(command, *arguments);
  command.add_option("--scale", arguments->scale, "Factor of the scores (default: 1/sqrt(D))").type_name("S");
  const Option dropout = command.add_option("--dropout", arguments->dropout, "Probability of dropping a weight")
                             .type_name("P")
                             .check(below_one());
  const Option seed = command.add_option("--seed", arguments->seed, "Of --dropout").type_name("N");
  command.add_option("--log-sum-exp", arguments->log_sum_exp, "Write log-sum-exp of the scores [B, Hq, Lq]")
      .type_name("NPY")
      .check(output_name())
      .writes();
  command.add_option("--probabilities", arguments->probabilities, "Write the softmax rows [B, Hq, Lq, Lk]")
      .type_name("NPY")
      .check(output_name())
      .writes();
  arguments->scores.add_to(command);
  arguments->gradients.add_to(command);
  if (calls) {
    calls->add_to(command);
  } else {
    arguments->types.add_to(command);
    command
        .add_option("--method", arguments->method,
                    "fused: tiled (default); unfused: scores written out; reference: float64")
        .type_name("fused|unfused|reference")
        .check(one_of({"fused", "unfused", "reference"}));
  }
  arguments->engine.add_to(command);
  command.example(
      "--query tests/tools/data/query.npy --key tests/tools/data/key.npy --value tests/tools/data/value.npy"
      " --causal bottom-right -o out.npy",
      "Arrays of float32 may be float16 or float64 in their files, of either byte order, in C or Fortran order. "
      "Several "
      "masks together mean: visible only where all allow. The arrays of the example lie in headlight's source.");
  command.callback([arguments, seed, dropout] {
    if (seed.given() && !dropout.given()) throw UsageError("--seed goes with --dropout");
    check_usage(*arguments);
    try {
      attend(*arguments);
    } catch (const std::invalid_argument& refused) {
      throw std::invalid_argument(in_names_of_options(refused.what()));
    }
  });
}

}  // namespace headlight::program
