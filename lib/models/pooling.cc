#include "models/pooling.h"

#include <optional>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

constexpr const char* kPoolingFile = "1_Pooling/config.json";
constexpr const char* kDenseFile = "2_Dense/config.json";
constexpr std::string_view kMode = "pooling_mode";  // newer files: the name of the one way
constexpr std::string_view kMean = "pooling_mode_mean_tokens";

}  // namespace

std::string unread_pooling(const ModelFolder& folder) {
  const auto refused = [&](const char* file, std::string_view key, const std::string& is) {
    return folder.path(file) + ": " + printable(key) + " is " + is + ", expected the mean of all tokens";
  };
  if (folder.has(kDenseFile)) return folder.path(kDenseFile) + ": a layer behind the mean, expected none";
  if (!folder.has(kPoolingFile)) return {};
  const JsonScalars config = folder.json(kPoolingFile);
  for (const std::string& key : config.keys()) {
    if (!key.starts_with(kMode)) continue;
    if (key == kMode) {
      const std::string name = config.string(key).value_or("mean");
      if (name != "mean") return refused(kPoolingFile, key, in_quotes(name));
    } else if (config.boolean(key).value_or(key == kMean) != (key == kMean)) {
      return refused(kPoolingFile, key, key == kMean ? "false" : "true");
    }
  }
  return {};
}

}  // namespace headlight::models
