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

// Averages and weighted sums are as wide as a head.
bool merges_to_one_head(Merge merge) {
  return merge == Merge::average || merge == Merge::weighted || merge == Merge::weighted_by_input;
}

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
  std::vector<View<float, 2>> outputs;        // a layer: [tokens, E]
  std::vector<View<float, 2>> merged;         // a layer: [tokens, E] or [tokens, D], what its last product takes

  void run(Engine& engine, const models::TextEncoder& model, const TextBatch& batch) {
    find_words(batch);
    if (words.empty()) return;
    const EncoderOptions& options = model.options().encoder;
    const auto count = static_cast<std::int64_t>(words.size());
    const auto layers = static_cast<std::size_t>(options.layers);
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
      probabilities.push_back(in_memory<4>(weights_[layer], {1, options.heads, count, batch.longest}));
      outputs.push_back(in_memory<2>(tokens_[layer], {batch.tokens, options.width}));
      wanted.push_back({number, {.per_head = probabilities.back(), .rows = words, .own_keys = true}});
      heads.push_back({.layer = number, .outputs = outputs.back()});
      // Heads side by side are what they are merged to.
      const bool joins = options.merge == Merge::concatenate;
      merged.push_back(joins ? outputs.back() : in_memory<2>(merged_[layer], {batch.tokens, options.width}));
      if (!joins) heads.back().scaled_outputs = merged.back();
    }
    const models::TokenBatch packed = batch.packed();
    const View<float, 2> hidden = in_memory<2>(hidden_, {batch.tokens, options.width});
    model.network().forward(engine, packed.input(options.token_types > 0), hidden, wanted, heads);
    if (merges_to_one_head(options.merge)) {
      for (View<float, 2>& of_layer : merged) of_layer = sum_of_heads(of_layer, options.heads);
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
      for (std::int64_t position = 1; position + 1 < length; ++position) {
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
  HeadsRun(Engine& engine, const models::TextEncoder& model)
      : engine_(engine), model_(model), options_(model.options().encoder), cka_(options_.layers * options_.heads) {
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
      attention_.emplace_back(options_.heads);
      covariance_.emplace_back(merges_to_one_head(options_.merge) ? 1 : options_.heads,
                               options_.width / options_.heads);
    }
    report_.layers = options_.layers;
    report_.heads = options_.heads;
    report_.head_dim = options_.width / options_.heads;
    report_.merged_width = merges_to_one_head(options_.merge) ? report_.head_dim : options_.width;
    report_.longest = model.options().max_length;
  }

  void add(const TextBatch& batch) {
    report_.texts += static_cast<std::int64_t>(batch.texts.size());
    report_.tokens += batch.tokens;
    report_.cut += batch.cut;
    found_.run(engine_, model_, batch);
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
    const Weights weights = model_.network().weights();
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
      if (task % 2 == 0) return add_attention(ends, found, layer);
      covariance_[layer].add(engine_, found.merged[layer], found.words);
    };
    constexpr std::int64_t kTasksOfThread = 2;
    const std::int64_t tasks = 2 * options_.layers;
    if (tasks >= kTasksOfThread * engine_.threads()) {
      return runtime::parallel_for_or_throw(engine_, tasks, engine_.threads(), measure);
    }
    for (std::int64_t task = 0; task < tasks; ++task) measure(task, 0);
  }

  // ends: the last token of each text.
  void add_attention(std::span<const std::int64_t> ends, const Activations& found, std::size_t layer) {
    const View<float, 4>& all = found.probabilities[layer];
    std::vector<AttentionText> texts;
    std::int64_t row = 0;
    for (std::size_t number = 0; number < ends.size(); ++number) {
      const std::int64_t length = ends[number] + 1;
      const std::int64_t rows = std::max<std::int64_t>(0, length - 2);
      if (rows == 0) continue;
      texts.push_back(
          {{&all(0, 0, row, 0), {options_.heads, rows, length}, {all.stride(1), all.stride(2), 1}},
           std::span(found.positions).subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(rows)),
           ends.subspan(number, 1)});
      row += rows;
    }
    attention_[layer].add(engine_, texts);
  }

  void add_similarities(const Activations& found) {
    std::vector<View<const float, 2>> heads;
    for (const View<float, 2>& outputs : found.outputs) {
      for (std::int64_t head = 0; head < options_.heads; ++head) {
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
      const std::int64_t rows = std::max<std::int64_t>(0, length - 2);
      const bool better = report_.example.rows == 0 || distance(length) < distance(example_length_);
      if (rows > 0 && better) {
        example_length_ = length;
        report_.example = example(text, row, found);
      }
      row += rows;
    }
  }

  // A text whose words have the rows from `row` on.
  [[nodiscard]] HeadsExample example(const models::Sequence& text, std::int64_t row, const Activations& found) const {
    HeadsExample picture;
    const std::int64_t tokens = std::min(static_cast<std::int64_t>(text.size()), kMostExampleTokens);
    picture.rows = std::min(static_cast<std::int64_t>(text.size()) - 2, kMostExampleTokens - 1);
    for (std::int64_t token = 0; token < tokens; ++token) {
      picture.tokens.push_back(model_.tokenizer().token(text[static_cast<std::size_t>(token)].id));
    }
    for (const View<float, 4>& all : found.probabilities) {
      for (std::int64_t head = 0; head < options_.heads; ++head) {
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
    const WeightView& projections = weights.at("layers." + std::to_string(layer) + ".self_attn.in_proj_weight");
    const std::int64_t width = options_.width;
    const View<const float, 2> query(projections.values.data(), {width, width});
    const View<const float, 2> key(projections.values.data() + width * width, {width, width});
    found.query_overlap = analysis::subspace_overlaps(engine_, query, report_.heads);
    found.key_overlap = analysis::subspace_overlaps(engine_, key, report_.heads);
    found.query_orthogonality = analysis::orthogonality_penalty(query, report_.heads);
    found.key_orthogonality = analysis::orthogonality_penalty(key, report_.heads);
    return found;
  }

  Engine& engine_;
  const models::TextEncoder& model_;
  EncoderOptions options_;
  std::vector<analysis::AttentionMeasures> attention_;
  std::vector<analysis::HeadCovariance> covariance_;
  analysis::MinibatchCka cka_;
  Activations found_;
  HeadsReport report_;
  std::int64_t example_length_ = 0;
};

}  // namespace

HeadsReport run_heads(Engine& engine, const models::TextEncoder& model, TextSource& texts, const Advance& advance) {
  HeadsRun run(engine, model);
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
