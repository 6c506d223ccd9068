#include "tools/headlight/support/model_arguments.h"

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/number_type.h"
#include "models/model_folder.h"
#include "tools/headlight/support/arrays.h"
#include "tools/headlight/support/byte_count.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_parse.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/unknown_keys.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {

void ModelArguments::add_to(Command& command, Inputs accepted) {
  inputs = accepted;
  const bool optional = accepted == Inputs::texts;
  command
      .add_option(
          "--model", model,
          std::string("Folder with config.json, model.safetensors, vocab.txt or tokenizer.json, or a GGUF file") +
              (optional ? "; default: the demonstration model" : ""))
      .type_name("DIR")
      .check(file_name())
      .required(!optional);
  command.add_option("--text", texts, "A text; may be given again and again").type_name("TEXT").one_at_a_time();
  command.add_option("--input", input, "A file with one text a line; - is standard input")
      .type_name("FILE")
      .check(file_name())
      .reads();
  if (accepted == Inputs::texts_or_ids) {
    command.add_option("--ids", ids, "int64 [B, L]: token ids instead of texts")
        .type_name("NPY")
        .check(file_name())
        .reads();
    command.add_option("--attention-mask", attention_mask, "[B, L]: 0 for tokens of --ids to leave out")
        .type_name("NPY")
        .check(file_name())
        .reads();
  }
  add_precision(command, precision);
  engine.add_to(command);
}

void ModelArguments::add_memory_to(Command& command, const std::string& more) {
  command
      .add_option("--memory", memory,
                  "What the run may hold at most beside the model's weights, whatever the number of texts: fewer at a "
                  "time" +
                      more)
      .type_name("BYTES")
      .check(expected_bytes);
}

TextMemory ModelArguments::memory_of(Engine& running, const models::TextEncoder& loaded, std::int64_t tokens,
                                     std::int64_t result) const {
  if (memory.empty()) return {};
  return {*parse_bytes(memory), loaded.call_bytes(running, tokens), result};
}

std::string name_of_model(std::string folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder.substr(folder.rfind('/') + 1);
}

void add_precision(Command& command, std::string& precision) {
  take_number_type(
      command.add_option("--precision", precision,
                         "What products multiply in: weights and, but for float16, activations (default: float32)"),
      kNumberTypes);
}

namespace {

// Nothing for what is no list of them.
std::optional<std::vector<models::PoolingMode>> pooling_modes(const std::string& names) {
  std::vector<models::PoolingMode> modes;
  for (const std::string& name : parts_of(names, ",")) {
    const auto mode = models::parse_pooling_mode(name);
    if (!mode) return std::nullopt;
    modes.push_back(*mode);
  }
  return modes;
}

}  // namespace

std::string expected_poolings(const std::string& names) {
  return pooling_modes(names) ? ""
                              : "cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, or some of them with "
                                "commas between";
}

void ModelArguments::check() const {
  const int sources = (texts.empty() ? 0 : 1) + (input.empty() ? 0 : 1) + (ids.empty() ? 0 : 1);
  if (sources != 1) {
    throw UsageError(inputs == Inputs::texts ? "exactly one of --text and --input can be given"
                     : inputs == Inputs::texts_of_model
                         ? "exactly one of --text and --input is needed"
                         : "with --model, exactly one of --text, --input and --ids is needed");
  }
  if (!attention_mask.empty() && ids.empty()) throw UsageError("--attention-mask goes with --ids");
  if (!memory.empty() && !ids.empty()) throw UsageError("--memory goes with texts, not with --ids");
}

models::TextEncoder ModelArguments::load() const {
  models::LoadModelOptions options{.precision = *parse_number_type(precision)};
  if (!pooling.empty()) options.pooling = pooling_modes(pooling);
  models::TextEncoder loaded = models::load(model, options);
  warn_of_unknown_keys(loaded.options().unknown_keys);
  return loaded;
}

View<const std::int64_t, 2> TokenIds::mask_view() const {
  return mask.shape.empty() ? View<const std::int64_t, 2>() : mask.view<2>();
}

TextSource open_texts(const ModelArguments& arguments, const TextMemory& memory) {
  if (!arguments.input.empty()) return TextSource::lines_of(arguments.input, memory);
  for (std::size_t n = 0; n < arguments.texts.size(); ++n) {
    if (is_utf8(arguments.texts[n])) continue;
    throw std::invalid_argument("--text number " + std::to_string(n + 1) +
                                " is not UTF-8: " + models::printable(arguments.texts[n]));
  }
  return TextSource(arguments.texts);
}

void check_no_model(const std::string& folder) {
  for (const char* name : {models::kWeightsFile, models::kConfigFile, models::kVocabularyFile}) {
    if (!std::filesystem::exists(models::path_in(folder, name))) continue;
    throw models::FileError(
        folder, std::string("holds a model (") + name + "): give another folder, or --overwrite to replace it");
  }
}

TokenIds read_ids(const ModelArguments& arguments) {
  TokenIds tokens;
  tokens.ids = read_array<std::int64_t>(arguments.ids, 2, "[B, L]");
  if (!arguments.attention_mask.empty()) {
    tokens.mask = read_array<std::int64_t>(arguments.attention_mask, 2, "[B, L]");
  }
  return tokens;
}

}  // namespace headlight::program
