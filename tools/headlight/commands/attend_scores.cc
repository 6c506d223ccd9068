#include "tools/headlight/commands/attend_scores.h"

#include <cmath>

#include "tools/headlight/commands/attend_arrays.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace {

// What is a number is no name, even where no number of ours can be so large or so small.
std::string expected_start(const std::string& text) {
  constexpr std::int64_t kFurthest = std::int64_t{1} << 60;
  const auto number = parse_number<std::int64_t>(text);
  const bool beyond = number ? *number < 0 || *number > kFurthest
                             : is_too_large<std::int64_t>(text.starts_with('-') ? text.substr(1) : text);
  return beyond ? "0 to 2^60, or the name of a file" : "";
}

// What is no number is refused as all others are.
std::string expected_cap(const std::string& text) {
  const auto cap = parse_number<float>(text);
  return !cap || *cap == 0 || (*cap > 0 && std::isnormal(*cap)) ? "" : "0 (none) or a normal number above 0";
}

StartInput read_start(const std::string& text) {
  StartInput start;
  if (text.empty()) return start;
  start.number = parse_number<std::int64_t>(text);
  if (start.number) return start;
  start.numbers = read_numbers<std::int64_t>(text, "[B]");
  return start;
}

models::Array<float> read_heads(const std::string& path) {
  models::Array<float> numbers = read_numbers<float>(path, "[Hq]");
  warn_if_rounded(path, numbers);
  return numbers;
}

}  // namespace

void ScoreArguments::add_to(Command& command) {
  command
      .add_option("--query-start", query_start,
                  "Row i stands at N + i, whatever --causal and --align name; int64 [B]: each sample's")
      .type_name("N|NPY")
      .check(file_name())
      .check(expected_start);
  command.add_option("--key-start", key_start, "Key j stands at N + j (default: 0); int64 [B]: each sample's")
      .type_name("N|NPY")
      .check(file_name())
      .check(expected_start);
  command.add_option("--softcap", softcap, "Scores become S*tanh(score/S), before bias and slopes")
      .type_name("S")
      .check(expected_cap);
  command.add_option("--alibi", slopes, "float32 [Hq]: slope*|p - position of the key| is taken from the scores")
      .type_name("NPY")
      .check(file_name())
      .reads();
  command.add_option("--sinks", sinks, "float32 [Hq]: one more logit of every row, without a value")
      .type_name("NPY")
      .check(file_name())
      .reads();
  command.add_option("--scores", scores, "Write the scores [B, Hq, Lq, Lk]")
      .type_name("NPY")
      .check(output_name())
      .writes();
  command
      .add_option("--scores-at", scores_at,
                  "raw: scale*q*k; capped: behind the soft cap; masked: with all else, -inf where hidden (default)")
      .type_name("raw|capped|masked")
      .check(one_of({"raw", "capped", "masked"}));
}

void ScoreArguments::check_usage() const {
  if (!scores_at.empty() && scores.empty()) throw UsageError("--scores-at goes with --scores");
}

ScoreInputs read_score_inputs(const ScoreArguments& arguments) {
  return {.query_start = read_start(arguments.query_start),
          .key_start = read_start(arguments.key_start),
          .slopes = read_heads(arguments.slopes),
          .sinks = read_heads(arguments.sinks)};
}

void set_score_options(const ScoreArguments& arguments, const ScoreInputs& inputs, AttentionOptions& options) {
  options.query_start = inputs.query_start.start();
  options.key_start = inputs.key_start.start();
  options.softcap = arguments.softcap.value_or(0);
  options.alibi = inputs.slopes.values;
  options.sinks = inputs.sinks.values;
  if (arguments.scores_at == "raw") options.scores_at = ScoreStage::raw;
  if (arguments.scores_at == "capped") options.scores_at = ScoreStage::capped;
}

}  // namespace headlight::program
