#include "models/text_vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "headlight/gemm.h"
#include "headlight/normalization.h"
#include "models/module_files.h"

namespace headlight::models {
namespace {

constexpr std::array<std::pair<std::string_view, PoolingMode>, 6> kPoolingNames{{
    {"cls", PoolingMode::cls},
    {"max", PoolingMode::max},
    {"mean", PoolingMode::mean},
    {"mean_sqrt_len_tokens", PoolingMode::mean_sqrt_len},
    {"weightedmean", PoolingMode::weighted_mean},
    {"lasttoken", PoolingMode::last_token},
}};

// The tokens of one sequence that count.
struct Rows {
  View<const float, 2> hidden;
  std::int64_t first, end;                  // of the sequence
  std::int64_t counted;                     // the first that counts
  std::span<const std::int64_t> positions;  // of all tokens of the call
};

// out += weight · row
void add_row(const float* row, float weight, std::span<float> out) {
  for (std::size_t e = 0; e < out.size(); ++e) out[e] += weight * row[e];
}

void multiply(std::span<float> out, float factor) {
  for (float& number : out) number *= factor;
}

// Zeros where nothing counts.
void pool(PoolingMode mode, const Rows& rows, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const std::int64_t count = rows.end - rows.counted;
  const auto row = [&](std::int64_t token) { return &rows.hidden(token, 0); };
  // The first token stands for a text of which nothing else counts, as it does in sentence-transformers.
  if (mode == PoolingMode::cls && rows.end > rows.first) {
    return add_row(row(count > 0 ? rows.counted : rows.first), 1.0f, out);
  }
  if (count <= 0) return;
  switch (mode) {
    case PoolingMode::last_token:
      return add_row(row(rows.end - 1), 1.0f, out);
    case PoolingMode::max:
      std::copy_n(row(rows.counted), out.size(), out.begin());
      for (std::int64_t token = rows.counted + 1; token < rows.end; ++token) {
        // A NaN stays, as in PyTorch.
        for (std::size_t e = 0; e < out.size(); ++e) {
          const float number = row(token)[e];
          if (!(number <= out[e]) && !std::isnan(out[e])) out[e] = number;
        }
      }
      return;
    case PoolingMode::weighted_mean: {
      const std::int64_t before = rows.positions[static_cast<std::size_t>(rows.first)] - 1;
      double sum = 0;
      for (std::int64_t token = rows.counted; token < rows.end; ++token) {
        const std::int64_t weight = rows.positions[static_cast<std::size_t>(token)] - before;
        add_row(row(token), static_cast<float>(weight), out);
        sum += static_cast<double>(weight);
      }
      return multiply(out, static_cast<float>(1 / sum));
    }
    default:
      for (std::int64_t token = rows.counted; token < rows.end; ++token) add_row(row(token), 1.0f, out);
      const auto n = static_cast<double>(count);
      return multiply(out, static_cast<float>(1 / (mode == PoolingMode::mean ? n : std::sqrt(n))));
  }
}

void normalize_rows(View<float, 2> rows) {
  for (std::int64_t n = 0; n < rows.extent(0); ++n) {
    double squares = 0;
    const std::span<float> row(rows.data + n * rows.stride(0), static_cast<std::size_t>(rows.extent(1)));
    for (const float number : row) squares += static_cast<double>(number) * number;
    const double length = std::max(std::sqrt(squares), 1e-12);
    for (float& number : row) number = static_cast<float>(number / length);
  }
}

// The first numbers of each vector.
void copy_first(View<const float, 2> vectors, View<float, 2> out) {
  for (std::int64_t n = 0; n < out.extent(0); ++n) {
    std::copy_n(vectors.data + n * vectors.stride(0), out.extent(1), out.data + n * out.stride(0));
  }
}

// By the formulas of torch.nn, in float64: these are a few numbers a text.
float apply(VectorLayer::Function function, float number) {
  const double x = number;
  switch (function) {
    case VectorLayer::Function::tanh:
      return static_cast<float>(std::tanh(x));
    case VectorLayer::Function::relu:
      return x <= 0 ? 0.0f : number;
    case VectorLayer::Function::gelu:
      return static_cast<float>(x * 0.5 * std::erfc(-x * std::sqrt(0.5)));
    case VectorLayer::Function::silu:
      return static_cast<float>(x / (1 + std::exp(-x)));
    case VectorLayer::Function::sigmoid:
      return static_cast<float>(1 / (1 + std::exp(-x)));
    default:
      return number;
  }
}

void dense(Engine& engine, const VectorLayer& layer, View<const float, 2> in, View<float, 2> out) {
  const View<const float, 2> weight(layer.weight.data(), {layer.width, in.extent(1)});
  gemm(engine, in, weight, out, {.transpose_b = Transpose::yes, .bias = layer.bias});
  apply_function(layer.function, out);
}

std::int64_t widest(const ModelOptions& options) {
  std::int64_t width = options.encoder.width * static_cast<std::int64_t>(options.pooling.size());
  for (const VectorLayer& layer : options.vector_layers) width = std::max(width, layer.width);
  return width;
}

// The mean and its length alone, which a kernel takes.
bool is_mean(const ModelOptions& options) {
  return options.pooling.size() == 1 && options.pooling[0] == PoolingMode::mean &&
         std::all_of(options.vector_layers.begin(), options.vector_layers.end(),
                     [](const VectorLayer& layer) { return layer.kind == VectorLayer::Kind::normalize; });
}

}  // namespace

void apply_function(VectorLayer::Function function, View<float, 2> rows) noexcept {
  if (function == VectorLayer::Function::identity) return;
  for (std::int64_t n = 0; n < rows.extent(0); ++n) {
    for (std::int64_t e = 0; e < rows.extent(1); ++e) rows(n, e) = apply(function, rows(n, e));
  }
}

std::string_view name(PoolingMode mode) noexcept {
  const auto* const known =
      std::find_if(kPoolingNames.begin(), kPoolingNames.end(), [&](const auto& one) { return one.second == mode; });
  return known == kPoolingNames.end() ? "" : known->first;
}

std::optional<PoolingMode> parse_pooling_mode(std::string_view name) noexcept {
  for (const auto& [known, mode] : kPoolingNames) {
    if (known == name) return mode;
  }
  return std::nullopt;
}

View<float, 2> VectorScratch::rows(int part, std::int64_t rows, std::int64_t width) {
  Tensor<float, 1>& memory = memory_[part];
  if (rows * width > memory.size()) {
    memory = {};
    memory = Tensor<float, 1>({rows * width});
  }
  return {memory.data(), {rows, width}};
}

void VectorScratch::reserve_tokens(Engine& engine, std::span<const VectorLayer> layers, std::int64_t width,
                                   std::int64_t tokens) {
  int part = 2;
  for (const VectorLayer& layer : layers) {
    static_cast<void>(rows(part, tokens, layer.width));
    headlight::reserve(engine, {.m = tokens, .n = layer.width, .k = width});
    width = layer.width;
    part = 5 - part;
  }
}

View<const float, 2> through_layers(Engine& engine, std::span<const VectorLayer> layers, View<const float, 2> hidden,
                                    VectorScratch& scratch) {
  int part = 2;
  for (const VectorLayer& layer : layers) {
    const View<float, 2> behind = scratch.rows(part, hidden.extent(0), layer.width);
    dense(engine, layer, hidden, behind);
    hidden = behind;
    part = 5 - part;
  }
  return hidden;
}

void VectorScratch::reserve(Engine& engine, const ModelOptions& options, std::int64_t texts) {
  if (is_mean(options) && options.pool_prompt) {
    // Of vectors that are divided by the length of all their numbers, and cut then.
    if (!options.vector_layers.empty()) static_cast<void>(rows(0, texts, options.encoder.width));
    return;
  }
  for (const int half : {0, 1}) static_cast<void>(rows(half, texts, widest(options)));
  std::int64_t before = options.encoder.width * static_cast<std::int64_t>(options.pooling.size());
  for (const VectorLayer& layer : options.vector_layers) {
    if (layer.kind != VectorLayer::Kind::dense) continue;
    headlight::reserve(engine, {.m = texts, .n = layer.width, .k = before});
    before = layer.width;
  }
}

void make_vectors(Engine& engine, const ModelOptions& options, std::int64_t prompt_tokens, bool normalize,
                  const EncoderInput& input, View<const float, 2> hidden, View<float, 2> out, VectorScratch& scratch,
                  std::int64_t padding) {
  if (options.pool_prompt) prompt_tokens = 0;
  const std::int64_t texts = out.extent(0), width = options.encoder.width;
  if (is_mean(options) && prompt_tokens == 0) {
    const bool has_length = !options.vector_layers.empty();
    // Where a vector is normalised at last, its length before does not matter; otherwise that of all its numbers does.
    if (out.extent(1) < width && has_length && !normalize) {
      const View<float, 2> whole = scratch.rows(0, texts, width);
      mean_pool(engine, hidden, input.offsets, whole, true);
      return copy_first(whole, out);
    }
    const View<const float, 2> kept(hidden.data, {hidden.extent(0), out.extent(1)}, hidden.strides);
    return mean_pool(engine, kept, input.offsets, out, normalize || has_length);
  }
  View<float, 2> vectors = scratch.rows(0, texts, width * static_cast<std::int64_t>(options.pooling.size()));
  for (std::int64_t text = 0; text < texts; ++text) {
    const std::int64_t first = input.offsets[static_cast<std::size_t>(text)];
    std::int64_t end = input.offsets[static_cast<std::size_t>(text) + 1];
    while (padding >= 0 && end - 1 > first && input.ids[static_cast<std::size_t>(end) - 1] == padding) --end;
    Rows rows{hidden, first, end, first, input.positions};
    const auto position = [&](std::int64_t token) { return input.positions[static_cast<std::size_t>(token)]; };
    while (rows.counted < end && position(rows.counted) - position(first) < prompt_tokens) ++rows.counted;
    float* place = vectors.data + text * vectors.stride(0);
    for (const PoolingMode mode : options.pooling) {
      pool(mode, rows, {place, static_cast<std::size_t>(width)});
      place += width;
    }
  }
  int half = 0;
  for (const VectorLayer& layer : options.vector_layers) {
    switch (layer.kind) {
      case VectorLayer::Kind::normalize:
        normalize_rows(vectors);
        break;
      case VectorLayer::Kind::layer_norm:
        layer_norm(engine, vectors, vectors, {.weight = layer.weight, .bias = layer.bias, .epsilon = layer.epsilon});
        break;
      case VectorLayer::Kind::dense: {
        half = 1 - half;
        const View<float, 2> behind = scratch.rows(half, texts, layer.width);
        dense(engine, layer, vectors, behind);
        vectors = behind;
        break;
      }
    }
  }
  copy_first(vectors, out);
  if (normalize) normalize_rows(out);
}

}  // namespace headlight::models
