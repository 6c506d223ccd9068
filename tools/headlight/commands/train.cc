// headlight train: the demonstration model, from nothing, in a minute.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headlight/models/errors.h"
#include "models/model_folder.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/demonstration/checkpoint.h"
#include "tools/headlight/demonstration/evaluation.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/model_arguments.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/output.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight/support/stop_signal.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace train_command {
namespace {

using demonstration::CheckpointedRun;
using demonstration::Relation;
using demonstration::Trainer;
using demonstration::TrainingOptions;

constexpr std::int64_t kStepsBetweenCheckpoints = 500;
constexpr std::size_t kHeldOutSentences = 2000;
constexpr std::uint64_t kHeldOutSeed = 20;
// An accuracy from which a relation counts as learned.
constexpr double kLearned = 0.99;

struct Arguments {
  EngineArguments engine;
  std::string out;
  TrainingOptions training;
  std::string merge, activations;
  std::int64_t stop_at = -1;  // never
  bool resume = false, overwrite = false;
  std::shared_ptr<TrainingRanks> ranks;  // null: this process alone
};

std::vector<std::string> merge_names() {
  std::vector<std::string> names;
  for (auto merge = Merge::concatenate; merge <= Merge::gated_by_element;
       merge = static_cast<Merge>(static_cast<int>(merge) + 1)) {
    names.emplace_back(name(merge));
  }
  return names;
}

std::string checkpoint_of(const std::string& folder) {
  return (std::filesystem::path(folder) / "checkpoint.safetensors").string();
}

// What makes the same model again.
std::string command_of(const TrainingOptions& options) {
  const TrainingOptions usual;
  std::string command =
      "headlight train --steps " + std::to_string(options.steps) + " --seed " + std::to_string(options.seed);
  if (options.encoder.heads != usual.encoder.heads) command += " --heads " + std::to_string(options.encoder.heads);
  if (options.encoder.merge != usual.encoder.merge) command += " --merge " + std::string(name(options.encoder.merge));
  if (options.shards != usual.shards) command += " --shards " + std::to_string(options.shards);
  if (options.activations != usual.activations) {
    command += " --activations " + std::string(name(options.activations));
  }
  if (options.learning_rate != usual.learning_rate) {
    char rate[64];
    std::snprintf(rate, sizeof rate, " --learning-rate %.17g", options.learning_rate);
    command += rate;
  }
  return command;
}

// The run that lies in the folder; what the command line says has to be the same, but that one which has come to its
// end is given more steps: its command then tells of both.
CheckpointedRun resumed(const Command& command, const Arguments& arguments) {
  const std::string path = checkpoint_of(arguments.out);
  if (!std::filesystem::exists(path)) {
    throw models::FileError(path, "is not there: no run of headlight train was stopped, or ended, in this folder");
  }
  CheckpointedRun run = demonstration::read_checkpoint(path);
  TrainingOptions& options = run.options;
  const TrainingOptions& asked = arguments.training;
  const auto check = [&](const char* option, bool same) {
    if (command.given(option) && !same) {
      throw UsageError(std::string(option) + " differs from that of the run to resume, " + run.command);
    }
  };
  check("--heads", asked.encoder.heads == options.encoder.heads);
  check("--merge", asked.encoder.merge == options.encoder.merge);
  check("--seed", asked.seed == options.seed);
  check("--shards", asked.shards == options.shards);
  check("--activations", asked.activations == options.activations);
  check("--learning-rate", asked.learning_rate == options.learning_rate);
  if (!run.ended()) {
    check("--steps", asked.steps == options.steps);
    return run;
  }
  if (!command.given("--steps") || asked.steps <= run.steps_taken) {
    const std::string given = command.given("--steps") ? std::to_string(asked.steps) : "not given";
    throw UsageError("--steps is " + given + ", expected more than the " + std::to_string(run.steps_taken) +
                     " after which the run to resume has ended");
  }
  options.steps = asked.steps;
  run.command += " && headlight train --resume --steps " + std::to_string(asked.steps);
  return run;
}

// A folder holds one run or one model: neither is lost by a name that was taken.
void check_free(const std::string& folder) {
  const std::string path = checkpoint_of(folder);
  const bool has_run = std::filesystem::exists(path);
  if (has_run && !demonstration::read_checkpoint(path).ended()) {
    throw models::FileError(path, "is a run that was stopped: go on with --resume, or begin anew with --overwrite");
  }
  if (has_run) {
    throw models::FileError(folder,
                            "holds a trained model and its run: give another folder, --overwrite to replace them, or "
                            "--resume with more --steps to train on");
  }
  check_no_model(folder);
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw models::FileError(folder, "cannot make the folder: " + error.message());
}

// The run's folder and its first checkpoint: in place of that of a run that is overwritten, which nobody shall resume,
// or that is lengthened; and whatever ends this run, even before its first step, it can be resumed. Where that cannot
// be written, a folder that was not there before does not stay.
void begin(const std::string& folder, Trainer& trainer, const std::string& command) {
  const bool was_there = std::filesystem::exists(folder);
  if (trainer.writes()) make_folder(folder);
  try {
    demonstration::save_checkpoint(checkpoint_of(folder), trainer, command);
  } catch (...) {
    std::error_code ignored;
    if (!was_there && trainer.writes()) std::filesystem::remove(folder, ignored);
    throw;
  }
}

// All steps, or as many as there are before somebody asks to stop. Returns whether all are done.
bool run(Engine& engine, const Arguments& arguments, Trainer& trainer, const std::string& command) {
  const std::string path = checkpoint_of(arguments.out);
  const StopSignal stop;
  Progress progress(static_cast<std::size_t>(trainer.options().steps));
  progress.advance(static_cast<std::size_t>(trainer.steps_taken()));
  while (!trainer.done()) {
    const bool asked = stop.asked() || trainer.steps_taken() == arguments.stop_at;
    if (arguments.ranks ? arguments.ranks->any(asked) : asked) {
      demonstration::save_checkpoint(path, trainer, command);
      return false;
    }
    const demonstration::TrainingReport report = trainer.step(engine);
    if (!report.step.taken()) {
      throw std::runtime_error("step " + std::to_string(trainer.steps_taken()) + " was not taken: the gradient of " +
                               std::string(report.step.non_finite) +
                               " is not finite; a lower --learning-rate may help");
    }
    // That of the last step is written behind the model.
    if (trainer.steps_taken() % kStepsBetweenCheckpoints == 0 && !trainer.done()) {
      demonstration::save_checkpoint(path, trainer, command);
    }
    progress.advance(1);
  }
  return true;
}

std::string summary(Engine& engine, const demonstration::Model& model) {
  const std::vector<demonstration::Sentence> unseen =
      demonstration::sentences(kHeldOutSeed, kHeldOutSentences, demonstration::Part::held_out);
  const demonstration::Evaluation evaluation = demonstration::evaluate(engine, model, unseen);
  const auto heads = demonstration::heads_of_relations(engine, model, std::span(unseen).first(kHeldOutSentences / 4));
  std::string text = "of " + grouped(kHeldOutSentences) +
                     " sentences with combinations of words never seen, the right word at the other end of\n";
  for (std::size_t n = 0; n < demonstration::kRelations; ++n) {
    const demonstration::RelationHead& head = heads[n].front();
    char line[160];
    std::snprintf(line, sizeof line,
                  "  %-12s %-26s %6.2f %%   layer %lld, head %lld looks there with %.0f %% of its attention\n",
                  std::string(name(static_cast<Relation>(n))).c_str(),
                  std::string(demonstration::meaning(static_cast<Relation>(n))).c_str(), 100 * evaluation.accuracy[n],
                  static_cast<long long>(head.layer), static_cast<long long>(head.head), 100 * head.weight);
    text += line;
  }
  const double worst = *std::min_element(evaluation.accuracy.begin(), evaluation.accuracy.end());
  if (worst < kLearned) {
    text +=
        "not all is learned yet (under " + percent_text(kLearned) + "): --resume with more --steps trains on; " +
        counted(TrainingOptions().steps, "step") +
        " are usual.\nThe learning rate then follows the new total: the weights will not be those of a run that had it "
        "from the start.\n";
  }
  return text;
}

CheckpointedRun planned_run(const Command& app, const Arguments& arguments) {
  if (arguments.resume && arguments.overwrite) {
    throw UsageError("--resume goes on and --overwrite begins anew, expected one of them");
  }
  CheckpointedRun planned = arguments.resume ? resumed(app, arguments)
                                             : CheckpointedRun{arguments.training, 0, command_of(arguments.training)};
  const EncoderOptions& encoder = planned.options.encoder;
  if (encoder.width % encoder.heads != 0) {
    throw UsageError("--heads is " + std::to_string(encoder.heads) + ", expected a divisor of the width " +
                     std::to_string(encoder.width));
  }
  if (planned.options.batch % planned.options.shards != 0) {
    throw UsageError("--shards is " + std::to_string(planned.options.shards) + ", expected a divisor of the " +
                     std::to_string(planned.options.batch) + " sentences of a step");
  }
  if (!arguments.resume && !arguments.overwrite) check_free(arguments.out);
  return planned;
}

Trainer make_trainer(const Arguments& arguments, const TrainingOptions& options) {
  if (!arguments.ranks) return Trainer(options);
  return Trainer(options, [&](std::vector<Parameter> parameters) {
    return arguments.ranks->make_steps(std::move(parameters), options);
  });
}

// Of the weights that each has read for itself.
std::string digest_of(Trainer& trainer) {
  std::size_t digest = 0;
  for (const Parameter& parameter : trainer.model().parameters()) {
    const auto bytes = std::as_bytes(std::span<const float>(parameter.values));
    digest = digest * 31 + std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return std::to_string(digest);
}

void train(const Command& app, Arguments& arguments) {
  const std::string path = checkpoint_of(arguments.out);
  const CheckpointedRun planned = planned_run(app, arguments);
  const TrainingOptions& options = planned.options;
  if (arguments.ranks) arguments.ranks->agree({{"the run", planned.command}});
  Engine engine(arguments.engine.options());
  Trainer trainer = make_trainer(arguments, options);
  if (arguments.resume) demonstration::restore_checkpoint(path, trainer);
  if (arguments.ranks) {
    arguments.ranks->agree({{"steps taken", std::to_string(trainer.steps_taken())}, {"weights", digest_of(trainer)}});
  }
  // Resumed, --steps may be a new total, which is to be known from now on.
  if (!arguments.resume || app.given("--steps")) begin(arguments.out, trainer, planned.command);
  const bool ended = run(engine, arguments, trainer, planned.command);
  if (ended) {
    // The checkpoint that says that the run has ended comes last: who finds it finds the model of the same step.
    if (trainer.writes()) {
      trainer.model().save(arguments.out, {{"command", planned.command}, {"seed", std::to_string(options.seed)}});
    }
    demonstration::save_checkpoint(path, trainer, planned.command);
  }
  if (arguments.ranks) arguments.ranks->agree({});
  if (!trainer.writes()) return;
  if (!ended) {
    print(models::printable(path) + ": stopped after " + std::to_string(trainer.steps_taken()) + " of " +
          std::to_string(options.steps) + " steps; --resume goes on\n");
    return;
  }
  const demonstration::Model model = std::move(trainer).finish();
  const std::string what = std::to_string(options.encoder.layers) + " layers of " +
                           counted(options.encoder.heads, "head") + ", " + grouped(model.parameter_count()) +
                           " parameters, " + counted(options.steps, "step");
  print_report(std::vector<WrittenFile>{{arguments.out, what}}, summary(engine, model));
}

// What one cannot do, all hear of.
void train_together(const Command& app, Arguments& arguments) {
  if (!arguments.ranks) return train(app, arguments);
  arguments.ranks->begin();
  try {
    train(app, arguments);
  } catch (const std::exception& error) {
    arguments.ranks->give_up(error);
    throw;
  }
}

// What is trained, and how.
void add_training_options(Command& command, Arguments& arguments) {
  TrainingOptions& training = arguments.training;
  command
      .add_option("--steps", training.steps, "Steps of 64 sentences (default: " + std::to_string(training.steps) + ")")
      .type_name("N")
      .check(at_least(1));
  command
      .add_option("--heads", training.encoder.heads,
                  "Heads of a layer (default: " + std::to_string(training.encoder.heads) + ")")
      .type_name("H")
      .check(between(1, training.encoder.width));
  command
      .add_option("--merge", arguments.merge,
                  "How heads are put together (default: " + std::string(name(training.encoder.merge)) + ")")
      .type_name(alternatives(merge_names()))
      .check(one_of(merge_names()));
  command
      .add_option("--learning-rate", training.learning_rate,
                  format("The highest of the schedule (default: %g)", training.learning_rate))
      .type_name("R")
      .check(between_real(0, 1e300));
  constexpr NumberType kActivations[] = {NumberType::float32, NumberType::bfloat16};
  take_number_type(
      command.add_option("--activations", arguments.activations,
                         "What lies between the passes, and what products multiply; weights stay float32 (default: " +
                             std::string(name(kActivations[0])) + ")"),
      kActivations);
  command
      .add_option("--seed", training.seed,
                  "Of the first weights, the sentences and dropout (default: " + std::to_string(training.seed) + ")")
      .type_name("N");
  command
      .add_option("--shards", training.shards,
                  "Parts of a step's sentences that are computed by themselves, and by as many ranks of headlight-mpi "
                  "as there are: a part of what the weights depend on (default: " +
                      std::to_string(training.shards) + ")")
      .type_name("N")
      .check(between(1, training.batch));
}

}  // namespace
}  // namespace train_command

void add_train(Command& program, const std::shared_ptr<TrainingRanks>& ranks) {
  using namespace train_command;
  Command command =
      program.add_subcommand("train", "Train the small demonstration model, which finds out what `it` stands for");
  const auto arguments = std::make_shared<Arguments>();
  arguments->ranks = ranks;
  command.add_option("-o,--output", arguments->out, "The folder for the model and the checkpoint to go on from")
      .type_name("DIR")
      .check(file_name())
      .required();
  add_training_options(command, *arguments);
  command.add_flag("--resume", arguments->resume,
                   "Go on with the run that was stopped in this folder; or, with more --steps, that ended");
  command.add_flag("--overwrite", arguments->overwrite, "Replace the model, or the run, that lies in this folder");
  command.add_option("--stop-at", arguments->stop_at, "Stop at this step, as SIGINT and SIGTERM do")
      .type_name("N")
      .check(at_least(1));
  arguments->engine.add_to(command);
  if (ranks) ranks->add_to(command);
  command.example(
      "--steps 300 -o my-model",
      "The same options give the same weights to the bit, on any number of threads, stopped and resumed or "
      "not. Stopped by SIGINT or SIGTERM it finishes the step, writes DIR/checkpoint.safetensors and exits "
      "with 0.\nA run that ended is lengthened by --resume with more --steps: the learning rate then follows the new "
      "total, and the weights will not be those of a run that had it from the start.");
  command.callback([command, arguments] {
    if (!arguments->merge.empty()) arguments->training.encoder.merge = *parse_merge(arguments->merge);
    if (!arguments->activations.empty()) arguments->training.activations = *parse_number_type(arguments->activations);
    train_together(command, *arguments);
  });
}

}  // namespace headlight::program
