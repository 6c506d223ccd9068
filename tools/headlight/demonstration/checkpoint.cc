#include "tools/headlight/demonstration/checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "headlight/models/errors.h"
#include "headlight/models/safetensors.h"
#include "tools/headlight/support/json.h"

namespace headlight::demonstration {
namespace {

using models::FileError;
using models::SafetensorsFile;
using program::Json;

constexpr const char* kKind = "headlight training checkpoint 3";
// The batch of such a run had one shard, and says nothing of it.
constexpr const char* kKindWithoutShards = "headlight training checkpoint 2";

std::string vocabulary_text() {
  std::string text;
  for (const std::string& word : Grammar::vocabulary()) text += word + "\n";
  return text;
}

Json json_of(const TrainingOptions& options) {
  const EncoderOptions& encoder = options.encoder;
  return {{"steps", options.steps},
          {"batch", options.batch},
          {"shards", options.shards},
          {"activations", name(options.activations)},
          {"learning_rate", options.learning_rate},
          {"weight_decay", options.weight_decay},
          {"max_norm", options.max_norm},
          {"seed", options.seed},
          {"layers", encoder.layers},
          {"width", encoder.width},
          {"heads", encoder.heads},
          {"feed_forward_width", encoder.feed_forward_width},
          {"merge", name(encoder.merge)},
          {"dropout", static_cast<double>(encoder.dropout)}};
}

std::string metadata(const SafetensorsFile& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) throw FileError(file.path(), std::string("lacks the entry '") + key + "'");
  return found->second;
}

// A number of the options; what the file says is not to be trusted.
template <class Number>
Number number(const SafetensorsFile& file, const Json& options, const char* key, Number least, Number most) {
  const Json* const found = options.find(key);
  const std::optional<Number> value = found == nullptr ? std::nullopt : found->number<Number>();
  if (!value || !(*value >= least && *value <= most)) {
    throw FileError(file.path(), std::string("option '") + key + "' is missing or out of range");
  }
  return *value;
}

bool is_without_shards(const SafetensorsFile& file) { return metadata(file, "kind") == kKindWithoutShards; }

// Float32, where a run of an earlier version says nothing of it.
NumberType activations_of(const SafetensorsFile& file, const Json& options) {
  const Json* const found = options.find("activations");
  if (found == nullptr) return NumberType::float32;
  const auto known = found->text() != nullptr ? parse_number_type(*found->text()) : std::nullopt;
  if (known != NumberType::float32 && known != NumberType::bfloat16) {
    throw FileError(file.path(), "option 'activations' is neither float32 nor bfloat16");
  }
  return *known;
}

TrainingOptions options_of(const SafetensorsFile& file) {
  const std::optional<Json> parsed = Json::parse(metadata(file, "options"));
  if (!parsed || !parsed->is_object()) throw FileError(file.path(), "the entry 'options' is no JSON object");
  const Json& json = *parsed;
  constexpr std::int64_t kMost = 1 << 20;
  TrainingOptions options;
  options.steps = number<std::int64_t>(file, json, "steps", 1, INT64_MAX);
  options.batch = number<std::int64_t>(file, json, "batch", 1, kMost);
  if (!is_without_shards(file)) options.shards = number<std::int64_t>(file, json, "shards", 1, options.batch);
  if (options.batch % options.shards != 0) throw FileError(file.path(), "option 'shards' does not divide 'batch'");
  options.activations = activations_of(file, json);
  options.learning_rate = number(file, json, "learning_rate", 0.0, 1e300);
  options.weight_decay = number(file, json, "weight_decay", 0.0, 1e300);
  options.max_norm = number(file, json, "max_norm", 0.0, 1e300);
  options.seed = number<std::uint64_t>(file, json, "seed", 0, UINT64_MAX);
  options.encoder.layers = number<std::int64_t>(file, json, "layers", 1, 64);
  options.encoder.width = number<std::int64_t>(file, json, "width", 1, 4096);
  options.encoder.heads = number<std::int64_t>(file, json, "heads", 1, options.encoder.width);
  options.encoder.feed_forward_width = number<std::int64_t>(file, json, "feed_forward_width", 1, 4 * 4096);
  options.encoder.dropout = static_cast<float>(number(file, json, "dropout", 0.0, 0.999));
  const Json* const merge = json.find("merge");
  const auto known = merge != nullptr && merge->text() != nullptr ? parse_merge(*merge->text()) : std::nullopt;
  if (!known) throw FileError(file.path(), "option 'merge' is missing or unknown");
  options.encoder.merge = *known;
  if (options.encoder.width % options.encoder.heads != 0) {
    throw FileError(file.path(), "option 'heads' does not divide 'width'");
  }
  return options;
}

std::int64_t steps_taken(const SafetensorsFile& file, std::int64_t most) {
  const std::optional<Json> parsed = Json::parse(metadata(file, "steps_taken"));
  const std::int64_t steps = parsed ? parsed->number<std::int64_t>().value_or(-1) : -1;
  if (steps < 0 || steps > most) {
    throw FileError(file.path(), "the entry 'steps_taken' is no number of steps of this run");
  }
  return steps;
}

void check_kind(const SafetensorsFile& file) {
  const auto kind = file.metadata().find("kind");
  if (kind == file.metadata().end() || (kind->second != kKind && kind->second != kKindWithoutShards)) {
    throw FileError(file.path(), std::string("is no checkpoint of headlight train, expected '") + kKind + "'");
  }
  if (metadata(file, "vocabulary") != vocabulary_text()) {
    throw FileError(file.path(), "is a checkpoint for another vocabulary; train anew");
  }
}

// Those of the parameters, and their moments.
void check_tensors(const SafetensorsFile& file, std::span<const Parameter> parameters) {
  constexpr std::array<const char*, 3> kPrefixes = {"", "first_moment.", "second_moment."};
  if (file.tensors().size() != kPrefixes.size() * parameters.size()) {
    throw FileError(file.path(), "has " + std::to_string(file.tensors().size()) + " tensors, expected " +
                                     std::to_string(kPrefixes.size() * parameters.size()));
  }
  for (const char* const prefix : kPrefixes) {
    for (const Parameter& parameter : parameters) {
      const std::string name = prefix + parameter.name;
      const models::SafetensorsEntry* const entry = file.find(name);
      if (entry == nullptr || entry->shape != parameter.shape) {
        throw FileError(file.path(),
                        "lacks the tensor " + models::in_quotes(name) + " in the shape that the options say");
      }
    }
  }
}

}  // namespace

void save_checkpoint(const std::string& path, Trainer& trainer, const std::string& command) {
  const std::vector<Parameter> state = trainer.state();
  if (!trainer.writes()) return;
  Weights weights;
  for (const Parameter& tensor : state) weights.emplace(tensor.name, WeightView{tensor.shape, tensor.values});
  models::write_safetensors(path, weights,
                            {{"kind", kKind},
                             {"command", command},
                             {"options", json_of(trainer.options()).dump()},
                             {"steps_taken", std::to_string(trainer.steps_taken())},
                             {"vocabulary", vocabulary_text()}});
}

CheckpointedRun read_checkpoint(const std::string& path) {
  const SafetensorsFile file(path);
  check_kind(file);
  CheckpointedRun run{options_of(file), 0, metadata(file, "command")};
  run.steps_taken = steps_taken(file, run.options.steps);
  return run;
}

void restore_checkpoint(const std::string& path, Trainer& trainer) {
  SafetensorsFile file(path);
  check_kind(file);
  const std::int64_t steps = steps_taken(file, trainer.options().steps);
  const std::vector<Parameter> parameters = trainer.model().parameters();
  const std::vector<Steps::Moment> moments = trainer.own_moments();
  check_tensors(file, parameters);
  for (const Parameter& tensor : parameters) {
    const WeightView values = file.float32(tensor.name);
    std::copy(values.values.begin(), values.values.end(), tensor.values.begin());
  }
  for (const Steps::Moment& moment : moments) {
    const WeightView values = file.float32(moment.name);
    std::copy_n(values.values.begin() + moment.first, moment.values.size(), moment.values.begin());
  }
  trainer.set_steps_taken(steps);
}

}  // namespace headlight::demonstration
