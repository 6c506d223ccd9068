#include "tools/headlight/demonstration/default_model.h"

#include "headlight/models/safetensors.h"
#include "models/gguf/load_gguf.h"
#include "models/model_folder.h"
#include "models/sentence_modules.h"
#include "tools/headlight/support/unknown_keys.h"

namespace headlight::demonstration {

LoadedModel load(const std::string& folder, NumberType precision) {
  const models::LoadModelOptions options{.precision = precision};
  const models::ModelFolder files =
      folder.empty() ? models::ModelFolder(kDefaultModel, default_model_files()) : models::ModelFolder(folder);
  models::TextEncoder encoder =
      folder.empty() ? models::load(kDefaultModel, default_model_files(), options) : models::load(folder, options);
  program::warn_of_unknown_keys(encoder.options().unknown_keys);
  if (!folder.empty() && models::gguf_path(folder)) return {std::move(encoder), std::nullopt};
  std::vector<std::string> unknown;  // which the encoder has told
  const models::ModelFolder network = models::transformer_folder(files, models::read_modules(files, unknown));
  models::SafetensorsFile weights = network.safetensors(models::kWeightsFile);
  std::optional<Readout> readout = find_readout(encoder, weights);
  return {std::move(encoder), std::move(readout)};
}

}  // namespace headlight::demonstration
