#include "tools/headlight/demonstration/default_model.h"

#include "headlight/models/safetensors.h"
#include "models/model_folder.h"

namespace headlight::demonstration {

LoadedModel load(const std::string& folder, NumberType precision) {
  const models::LoadModelOptions options{.precision = precision};
  const models::ModelFolder files =
      folder.empty() ? models::ModelFolder(kDefaultModel, default_model_files()) : models::ModelFolder(folder);
  models::TextEncoder encoder =
      folder.empty() ? models::load(kDefaultModel, default_model_files(), options) : models::load(folder, options);
  models::SafetensorsFile weights = files.safetensors(models::kWeightsFile);
  std::optional<Readout> readout = find_readout(encoder, weights);
  return {std::move(encoder), std::move(readout)};
}

}  // namespace headlight::demonstration
