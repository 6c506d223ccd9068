#include "models/load_gguf.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "models/gguf_metadata.h"
#include "models/gguf_network.h"
#include "models/gguf_tokenizer.h"
#include "models/load_network.h"
#include "models/model_folder.h"
#include "models/score_head.h"
#include "models/text_network.h"
#include "models/text_tokenizer.h"

namespace headlight::models {

std::optional<std::string> gguf_path(const std::string& path) {
  constexpr std::string_view kExtension = ".gguf";
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return path.ends_with(kExtension) ? std::optional(path) : std::nullopt;
  }
  if (std::filesystem::exists(path_in(path, kConfigFile), error)) return std::nullopt;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(kExtension)) found.push_back(name);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    std::sort(found.begin(), found.end());
    throw FileError(path, "holds several GGUF files, " + in_quotes(found[0]) + " and " + in_quotes(found[1]) +
                              " among them, expected one, or the path of a file");
  }
  return path_in(path, found.front());
}

TextEncoder load_gguf(GgufFile file, const LoadModelOptions& wanted) {
  const GgufMetadata metadata(file);
  if (metadata.size("split.count", 1, 1) != 1) metadata.fail("split.count", "is not 1, expected one file");
  const GgufNetwork network = read_gguf_network(metadata, file);
  ModelOptions options;
  options.model_type = network.model_type;
  options.encoder = sizes_of(network.config);
  read_gguf_vectors(metadata, file, options);
  if (wanted.pooling) {
    options.pooling = *wanted.pooling;
    options.unread_pooling.clear();
  }
  std::unique_ptr<TextTokenizer> tokenizer = read_gguf_tokenizer(metadata, options.encoder.vocabulary);
  if (const std::int64_t around = tokenizer->tokens_around(false); around > options.encoder.max_positions) {
    metadata.fail("context_length", "is less than the tokens around a text, " + std::to_string(around));
  }
  options.max_length = options.embed_max_length = options.encoder.max_positions;
  options.unknown_keys = metadata.unread();
  const Weights found = find_gguf_weights(file, network, parameters_of(network.config.network, file.path()));
  return {options, std::move(tokenizer), load_network(network.config, found, wanted.precision)};
}

}  // namespace headlight::models
