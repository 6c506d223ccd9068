#include "tools/headlight/heads/heads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/throwing_tasks.h"
#include "tools/headlight/heads/texts.h"

namespace headlight::program {
namespace {

using analysis::AttentionText;
using analysis::Measure;

// A picture of about so many tokens shows something and stays small.
constexpr std::int64_t kExampleTokens = 14;
constexpr std::int64_t kMostExampleTokens = 32;

// Memory that is kept from batch to batch: to get it anew would take time.
template <int Rank>
View<float, Rank> in_memory(std::vector<float>& memory, const typename View<float, Rank>::Shape& shape) {
  const View<float, Rank> view(nullptr, shape);
  if (static_cast<std::int64_t>(memory.size()) < view.size()) memory.resize(static_cast<std::size_t>(view.size()));
  return {memory.data(), shape};
}

// What the network gives for one batch: of all heads, for the tokens that are words.
class Activations {
 public:
  std::vector<std::int64_t> words;            // tokens of the batch, ascending
  std::vector<std::int64_t> positions;        // of those within their texts
  std::vector<View<float, 4>> probabilities;  // a layer: [1, H, words, longest]
  std::vector<View<float, 2>> outputs;        // a layer: [tokens, H · D]
  std::vector<View<float, 2>> merged;         // a layer: [tokens, merged_width()], what its last product takes

  void run(Engine& engine, const ModelNetwork& network, const TextBatch& batch) {
    find_words(batch);
    if (words.empty()) return;
    const NetworkSizes& sizes = network.sizes();
    const auto count = static_cast<std::int64_t>(words.size());
    const auto layers = static_cast<std::size_t>(sizes.layers);
    weights_.resize(layers);
    tokens_.resize(layers);
    merged_.resize(layers);
    std::vector<LayerProbabilities> wanted;
    std::vector<LayerHeads> heads;
    probabilities.clear();
    outputs.clear();
    merged.clear();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const auto number = static_cast<std::int64_t>(layer);
      probabilities.push_back(in_memory<4>(weights_[layer], {1, sizes.heads, count, batch.longest}));
      outputs.push_back(in_memory<2>(tokens_[layer], {batch.tokens, sizes.columns()}));
      wanted.push_back({number, {.per_head = probabilities.back(), .rows = words, .own_keys = true}});
      heads.push_back({.layer = number, .outputs = outputs.back()});
      // Heads side by side are what they are merged to.
      const bool joins = sizes.merge == Merge::concatenate;
      merged.push_back(joins ? outputs.back() : in_memory<2>(merged_[layer], {batch.tokens, sizes.columns()}));
      if (!joins) heads.back().scaled_outputs = merged.back();
    }
    const models::TokenBatch packed = batch.packed();
    const View<float, 2> hidden = in_memory<2>(hidden_, {batch.tokens, sizes.width});
    network.forward(engine, packed.input_by_place(network.has_token_types(), packed.sequences()), hidden, wanted,
                    heads);
    if (sizes.merges_to_one_head()) {
      for (View<float, 2>& of_layer : merged) of_layer = sum_of_heads(of_layer, sizes.heads);
    }
  }

 private:
  // Into the columns of the first.
  static View<float, 2> sum_of_heads(const View<float, 2>& scaled, std::int64_t heads) {
    const std::int64_t head_dim = scaled.extent(1) / heads;
    for (std::int64_t token = 0; token < scaled.extent(0); ++token) {
      float* const sum = &scaled(token, 0);
      for (std::int64_t column = head_dim; column < scaled.extent(1); ++column) {
        sum[column % head_dim] += sum[column];
      }
    }
    return {scaled.data, {scaled.extent(0), head_dim}, scaled.strides};
  }

  void find_words(const TextBatch& batch) {
    words.clear();
    positions.clear();
    std::int64_t token = 0;
    for (const models::Sequence& text : batch.texts) {
      const auto length = static_cast<std::int64_t>(text.size());
      for (std::int64_t position = batch.around.before; position + batch.around.behind < length; ++position) {
        words.push_back(token + position);
        positions.push_back(position);
      }
      token += length;
    }
  }

  std::vector<std::vector<float>> weights_, tokens_, merged_;
  std::vector<float> hidden_;
};

class HeadsRun {
 public:
  HeadsRun(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network)
      : engine_(engine), model_(model), network_(network), sizes_(network.sizes()), cka_(sizes_.layers * sizes_.heads) {
    for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
      attention_.emplace_back(sizes_.heads);
      covariance_.emplace_back(sizes_.merges_to_one_head() ? 1 : sizes_.heads, sizes_.head_dim);
    }
    report_.layers = sizes_.layers;
    report_.heads = sizes_.heads;
    report_.head_dim = sizes_.head_dim;
    report_.merged_width = sizes_.merged_width();
    report_.longest = model.options().max_length;
  }

  void add(const TextBatch& batch) {
    report_.texts += static_cast<std::int64_t>(batch.texts.size());
    report_.tokens += batch.tokens;
    report_.cut += batch.cut;
    found_.run(engine_, network_, batch);
    if (found_.words.empty()) return;
    report_.rows += static_cast<std::int64_t>(found_.words.size());
    add_layers(batch, found_);
    add_similarities(found_);
    keep_example(batch, found_);
  }

  [[nodiscard]] HeadsReport finish() {
    for (std::int64_t number = 0; number < report_.all_heads(); ++number) {
      const HeadName name = report_.name(number);
      report_.attention.push_back(attention_[static_cast<std::size_t>(name.layer)].head(name.head));
      for (std::int64_t other = 0; other < report_.all_heads(); ++other) {
        report_.cka.push_back(cka_.cka(number, other));
      }
    }
    // Eigenvalues take a thread a while, and a layer needs none of another.
    const Weights weights = network_.weights();
    report_.by_layer.resize(covariance_.size());
    runtime::parallel_for_or_throw(engine_, report_.layers, engine_.threads(), [&](std::int64_t layer, int) {
      report_.by_layer[static_cast<std::size_t>(layer)] = of_layer(layer, weights);
    });
    return std::move(report_);
  }

 private:
  // What is measured on one layer by itself. With enough of that a thread takes one thing after the other, and nobody
  // waits for the end of each; else they share in each.
  void add_layers(const TextBatch& batch, const Activations& found) {
    std::vector<std::int64_t> ends;
    for (const models::Sequence& text : batch.texts) ends.push_back(static_cast<std::int64_t>(text.size()) - 1);
    const auto measure = [&](std::int64_t task, int) {
      const auto layer = static_cast<std::size_t>(task / 2);
      if (task % 2 == 0) return add_attention(batch, ends, found, layer);
      covariance_[layer].add(engine_, found.merged[layer], found.words);
    };
    constexpr std::int64_t kTasksOfThread = 2;
    const std::int64_t tasks = 2 * sizes_.layers;
    if (tasks >= kTasksOfThread * engine_.threads()) {
      return runtime::parallel_for_or_throw(engine_, tasks, engine_.threads(), measure);
    }
    for (std::int64_t task = 0; task < tasks; ++task) measure(task, 0);
  }

  // ends: the last token of each text, which is no word where one stands behind those.
  void add_attention(const TextBatch& batch, std::span<const std::int64_t> ends, const Activations& found,
                     std::size_t layer) {
    const View<float, 4>& all = found.probabilities[layer];
    std::vector<AttentionText> texts;
    std::int64_t row = 0;
    for (std::size_t number = 0; number < ends.size(); ++number) {
      const std::int64_t length = ends[number] + 1;
      const std::int64_t rows = batch.words_of(length);
      if (rows == 0) continue;
      texts.push_back(
          {{&all(0, 0, row, 0), {sizes_.heads, rows, length}, {all.stride(1), all.stride(2), 1}},
           std::span(found.positions).subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(rows)),
           ends.subspan(number, batch.around.behind > 0 ? 1 : 0)});
      row += rows;
    }
    attention_[layer].add(engine_, texts);
  }

  void add_similarities(const Activations& found) {
    std::vector<View<const float, 2>> heads;
    for (const View<float, 2>& outputs : found.outputs) {
      for (std::int64_t head = 0; head < sizes_.heads; ++head) {
        heads.push_back({&outputs(0, head * report_.head_dim), {outputs.extent(0), report_.head_dim}, outputs.strides});
      }
    }
    cka_.add(engine_, heads, found.words);
  }

  // The text whose length is nearest to that of a good picture.
  void keep_example(const TextBatch& batch, const Activations& found) {
    const auto distance = [](std::int64_t tokens) { return std::abs(tokens - kExampleTokens); };
    std::int64_t row = 0;
    for (const models::Sequence& text : batch.texts) {
      const auto length = static_cast<std::int64_t>(text.size());
      const std::int64_t rows = batch.words_of(length);
      const bool better = report_.example.rows == 0 || distance(length) < distance(example_length_);
      if (rows > 0 && better) {
        example_length_ = length;
        report_.example = example(text, batch.around, row, found);
      }
      row += rows;
    }
  }

  // A text whose words have the rows from `row` on.
  [[nodiscard]] HeadsExample example(const models::Sequence& text, const TokensAround& around, std::int64_t row,
                                     const Activations& found) const {
    HeadsExample picture;
    const std::int64_t tokens = std::min(static_cast<std::int64_t>(text.size()), kMostExampleTokens);
    picture.rows =
        std::min(static_cast<std::int64_t>(text.size()) - around.count(), kMostExampleTokens - around.before);
    for (std::int64_t token = 0; token < tokens; ++token) {
      picture.tokens.emplace_back(*model_.token(text[static_cast<std::size_t>(token)].id));
    }
    for (const View<float, 4>& all : found.probabilities) {
      for (std::int64_t head = 0; head < sizes_.heads; ++head) {
        std::vector<float>& weights = picture.weights.emplace_back();
        for (std::int64_t r = row; r < row + picture.rows; ++r) {
          weights.insert(weights.end(), &all(0, head, r, 0), &all(0, head, r, 0) + tokens);
        }
      }
    }
    return picture;
  }

  [[nodiscard]] LayerReport of_layer(std::int64_t layer, const Weights& weights) const {
    LayerReport found;
    found.effective_rank = covariance_[static_cast<std::size_t>(layer)].effective_rank();
    const auto& attention = attention_[static_cast<std::size_t>(layer)];
    for (std::int64_t a = 0; a < report_.heads; ++a) {
      for (std::int64_t b = 0; b < report_.heads; ++b) found.divergence.push_back(attention.jensen_shannon(a, b));
    }
    const auto [query, key, output] = network_.projections(weights, layer);
    found.query_overlap = analysis::subspace_overlaps(engine_, query, report_.heads);
    found.key_overlap = of_all_heads(analysis::subspace_overlaps(engine_, key, sizes_.key_value_heads));
    found.query_orthogonality = analysis::orthogonality_penalty(query, report_.heads);
    found.key_orthogonality = analysis::orthogonality_penalty(key, sizes_.key_value_heads);
    return found;
  }

  // Of those that share keys, the same.
  [[nodiscard]] std::vector<Measure> of_all_heads(const std::vector<Measure>& of_groups) const {
    const std::int64_t group = sizes_.heads / sizes_.key_value_heads;
    std::vector<Measure> all;
    for (std::int64_t a = 0; a < sizes_.heads; ++a) {
      for (std::int64_t b = 0; b < sizes_.heads; ++b) {
        all.push_back(of_groups[static_cast<std::size_t>(a / group * sizes_.key_value_heads + b / group)]);
      }
    }
    return all;
  }

  Engine& engine_;
  const models::TextEncoder& model_;
  const ModelNetwork& network_;
  NetworkSizes sizes_;
  std::vector<analysis::AttentionMeasures> attention_;
  std::vector<analysis::HeadCovariance> covariance_;
  analysis::MinibatchCka cka_;
  Activations found_;
  HeadsReport report_;
  std::int64_t example_length_ = 0;
};

}  // namespace

HeadsReport run_heads(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network, TextSource& texts,
                      const Advance& advance) {
  HeadsRun run(engine, model, network);
  TextBatches batches(model, texts);
  for (TextBatch batch; batches.next(batch);) {
    run.add(batch);
    advance(batch.texts.size());
  }
  return run.finish();
}

std::vector<HeadPair> alike(const HeadsReport& report, double threshold) {
  std::vector<HeadPair> pairs;
  for (std::int64_t layer = 0; layer < report.layers; ++layer) {
    for (std::int64_t a = 0; a < report.heads; ++a) {
      for (std::int64_t b = a + 1; b < report.heads; ++b) {
        const Measure& cka = report.cka_of(layer * report.heads + a, layer * report.heads + b);
        if (cka.has_value() && cka.value() >= threshold) pairs.push_back({layer, a, b, cka.value()});
      }
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const HeadPair& x, const HeadPair& y) { return x.cka > y.cka; });
  return pairs;
}

std::int64_t closest_in_layer(const HeadsReport& report, std::int64_t number) {
  const std::int64_t first = number / report.heads * report.heads;
  std::int64_t closest = number;
  double most = -2;  // a CKA is at least about −1
  for (std::int64_t other = first; other < first + report.heads; ++other) {
    const double cka = other == number ? -2 : report.cka_of(number, other).value_or(-2);
    if (cka > most) {
      most = cka;
      closest = other;
    }
  }
  return closest;
}

std::vector<std::string> kind_names(const analysis::HeadKinds& kinds) {
  std::vector<std::string> names;
  for (const auto& [is, name] : {std::pair{kinds.previous_token, "previous token"},
                                 {kinds.next_token, "next token"},
                                 {kinds.first_token, "first token"},
                                 {kinds.separator, "separator"},
                                 {kinds.local, "local"},
                                 {kinds.no_op, "no-op"}}) {
    if (is) names.emplace_back(name);
  }
  return names;
}

}  // namespace headlight::program
