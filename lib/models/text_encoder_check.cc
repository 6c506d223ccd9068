#include "models/text_encoder_check.h"

#include <cstdint>
#include <stdexcept>

#include "models/describe.h"
#include "models/module_files.h"

namespace headlight::models {

void fail_call(const std::string& message) { throw std::invalid_argument("models::TextEncoder: " + message); }

namespace {

// That none is left out between others of its row.
void check_no_holes(View<const std::int64_t, 2> mask) {
  for (std::int64_t row = 0; mask && row < mask.extent(0); ++row) {
    bool begun = false, ended = false;
    for (std::int64_t column = 0; column < mask.extent(1); ++column) {
      const bool seen = mask(row, column) != 0;
      if (seen && ended) {
        fail_call("the attention mask leaves out tokens of row " + std::to_string(row) + " before its column " +
                  std::to_string(column) +
                  ", expected none between others for a network with windows or biases by distance");
      }
      ended = begun && !seen;
      begun = begun || seen;
    }
  }
}

}  // namespace

void check_vector_options(const ModelOptions& options) {
  if (options.pooling.empty() || options.pooling.size() > kMostModules) {
    fail_call("pooling has " + std::to_string(options.pooling.size()) + " entries, expected 1 to " +
              std::to_string(kMostModules));
  }
  std::int64_t width = options.encoder.width * static_cast<std::int64_t>(options.pooling.size());
  for (const VectorLayer& layer : options.vector_layers) {
    const bool dense = layer.kind == VectorLayer::Kind::dense, plain = layer.kind == VectorLayer::Kind::normalize;
    const std::int64_t behind = dense ? layer.width : width;
    const auto weights = static_cast<std::int64_t>(layer.weight.size());
    const auto biases = static_cast<std::int64_t>(layer.bias.size());
    const std::int64_t rows = dense ? behind : plain ? 0 : 1;
    const bool fits = behind >= 1 && behind <= INT32_MAX && (layer.width == 0 || layer.width == behind) &&
                      weights % width == 0 && weights / width == rows && (biases == 0 || (!plain && biases == behind));
    if (!fits)
      fail_call("vector_layers has a layer whose numbers do not fit the width before it, " + std::to_string(width));
    width = behind;
  }
  if (options.truncate_dim < 0 || options.truncate_dim > width) {
    fail_call("truncate_dim is " + std::to_string(options.truncate_dim) + ", expected 0 to the width of a vector, " +
              std::to_string(width));
  }
  if (!options.default_prompt.empty() && !options.prompts.contains(options.default_prompt)) {
    fail_call("default_prompt is '" + options.default_prompt + "', expected the name of one of prompts");
  }
}

void check_ids(const EncoderOptions& options, View<const std::int64_t, 2> ids, View<const std::int64_t, 2> mask,
               bool counts_distances) {
  if (ids.extent(0) < 0 || ids.extent(1) < 0) {
    fail_call("ids have shape " + describe(ids.shape) + ", expected no negative extent");
  }
  if (ids.size() > 0 && !ids) fail_call("ids of shape " + describe(ids.shape) + " have no memory (a null pointer)");
  if (ids.extent(1) > options.max_positions) {
    fail_call("ids have shape " + describe(ids.shape) + ", expected at most " + std::to_string(options.max_positions) +
              " columns");
  }
  if (mask && mask.shape != ids.shape) {
    fail_call("the attention mask has shape " + describe(mask.shape) + ", expected that of ids, " +
              describe(ids.shape));
  }
  if (ids.size() == 0) return;
  for (std::int64_t row = 0; row < ids.extent(0); ++row) {
    for (std::int64_t column = 0; column < ids.extent(1); ++column) {
      if (mask && mask(row, column) == 0) continue;
      const std::int64_t id = ids(row, column);
      if (id < 0 || id >= options.vocabulary) {
        fail_call("the id at row " + std::to_string(row) + ", column " + std::to_string(column) + " is " +
                  std::to_string(id) + ", expected 0 to " + std::to_string(options.vocabulary - 1));
      }
    }
  }
  if (counts_distances) check_no_holes(mask);
}

}  // namespace headlight::models
