// What Encoder::forward() refuses, all of it before the first number is written.
#include <array>
#include <string_view>

#include "headlight/layers/encoder.h"
#include "layers/layer_names.h"
#include "layers/layer_outputs.h"
#include "ops/check.h"

namespace headlight {

namespace {

class HeadsOfEncoder final : public layers::HeadShapes {
 public:
  explicit HeadsOfEncoder(const EncoderOptions& options) noexcept : options_(options) {}
  [[nodiscard]] std::int64_t layers() const noexcept override { return options_.layers; }
  [[nodiscard]] layers::HeadShape at(std::int64_t) const noexcept override {
    return {options_.heads, options_.width / options_.heads};
  }

 private:
  const EncoderOptions& options_;
};

}  // namespace

void Encoder::check(const EncoderInput& input, const View<float, 2>& hidden,
                    std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  ops::check_view(layers::kEncoderName, "hidden", hidden);
  const auto tokens = static_cast<std::int64_t>(input.ids.size());
  const std::array<std::int64_t, 2> expected = {tokens, options_.width};
  ops::check_shape(layers::kEncoderName, "hidden", hidden.shape, expected, "[N, E]");
  const auto check_count = [&](std::string_view name, std::span<const std::int64_t> values, bool wanted) {
    const std::size_t count = wanted ? input.ids.size() : 0;
    if (values.size() != count) {
      ops::fail(layers::kEncoderName, name, " has ", values.size(), " entries, expected ", count,
                (wanted ? " (one for each id)" : " (there is no such table)"));
    }
  };
  check_count("positions", input.positions, true);
  check_count("token_types", input.token_types, options_.token_types > 0);
  layers::check_layer_outputs(layers::kEncoderName, HeadsOfEncoder(options_), input, hidden, probabilities, heads);
}

}  // namespace headlight
