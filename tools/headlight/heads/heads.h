// What `headlight heads` finds out, apart from how it shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headlight/analysis.h"
#include "headlight/engine.h"
#include "headlight/models/text_encoder.h"
#include "tools/headlight/demonstration/default_model.h"
#include "tools/headlight/support/model_network.h"
#include "tools/headlight/support/text_source.h"

namespace headlight::program {

// A head by its layer and its number there, both from 0; written "3.7".
struct HeadName {
  std::int64_t layer = 0;
  std::int64_t head = 0;

  [[nodiscard]] std::string text() const { return std::to_string(layer) + "." + std::to_string(head); }
  friend auto operator<=>(const HeadName&, const HeadName&) = default;
};

// Two heads of a layer whose outputs say the same.
struct HeadPair {
  std::int64_t layer = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;
  double cka = 0;
};

// Of the heads of one layer among themselves, [H, H] each.
struct LayerReport {
  std::vector<analysis::Measure> divergence;
  std::vector<analysis::Measure> query_overlap;
  std::vector<analysis::Measure> key_overlap;
  analysis::Measure effective_rank;  // of what the last product takes, merged_width directions at most
  analysis::Measure query_orthogonality;
  analysis::Measure key_orthogonality;
};

// One text and what the heads see in it, for a picture.
struct HeadsExample {
  std::vector<std::string> tokens;
  std::int64_t rows = 0;  // the words among them: those behind what stands before a text
  // [layers · heads][rows · tokens]
  std::vector<std::vector<float>> weights;
};

// How much each head looks along one relation, over every place where the model finds it.
struct RelationLooks {
  demonstration::Relation relation{};
  std::vector<double> weights;  // [layers · heads]: the mean weight from a word to the one at the other end
};

struct HeadsReport {
  std::int64_t layers = 0, heads = 0, head_dim = 0;
  std::int64_t merged_width = 0;                   // H · D, or D where heads are averaged or summed with weights
  std::int64_t texts = 0, tokens = 0, rows = 0;    // rows: tokens that are words
  std::int64_t cut = 0;                            // texts that were longer than the model takes
  std::int64_t longest = 0;                        // the most tokens that it takes
  std::vector<analysis::HeadAttention> attention;  // [layers · heads]
  std::vector<analysis::Measure> cka;              // [layers · heads, layers · heads]
  std::vector<LayerReport> by_layer;
  std::vector<analysis::Measure> importance;  // [layers · heads], where it was asked for
  std::vector<RelationLooks> relations;       // of a model that knows some: those that the texts have
  HeadsExample example;

  [[nodiscard]] std::int64_t all_heads() const { return layers * heads; }
  [[nodiscard]] HeadName name(std::int64_t number) const { return {number / heads, number % heads}; }
  [[nodiscard]] const analysis::Measure& cka_of(std::int64_t a, std::int64_t b) const {
    return cka[static_cast<std::size_t>(a * all_heads() + b)];
  }
};

// What the output loses without some heads, over the same texts.
struct PruningReport {
  std::vector<HeadName> silenced;
  // ‖h' − h‖ / ‖h‖ of the last hidden states of all tokens.
  analysis::Measure change;
  // Cosine of the sentence vectors (means of the hidden states) before and after: the mean, the least, and its text.
  analysis::Measure mean_cosine, least_cosine;
  std::size_t least_text = 0;
};

using Advance = std::function<void(std::size_t texts)>;

// Runs all texts through the model, some at a time, and measures every head on the way. `advance` is called as texts
// are done. Memory beyond the report: a few tens of MiB, and layers · heads · L² floats where a text of L
// tokens needs more.
[[nodiscard]] HeadsReport run_heads(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network,
                                    TextSource& texts, const Advance& advance);

[[nodiscard]] PruningReport run_without(Engine& engine, const models::TextEncoder& model, const ModelNetwork& network,
                                        TextSource& texts, const std::vector<HeadName>& silenced,
                                        const Advance& advance);

// The importance of each head (Michel et al. 2019) for a sum that looks at the sentence vector s, the mean of the
// hidden states at length 1, in a random direction v of each text, drawn from the seed: the mean of |∂(v · s) / ∂ξ|, ξ
// = 1 a factor of the head's output. Some four times as much work as run_heads(), and memory for the gradients of all
// parameters.
[[nodiscard]] std::vector<analysis::Measure> run_importance(Engine& engine, const models::TextEncoder& model,
                                                            const ModelNetwork& network, TextSource& texts,
                                                            std::uint64_t seed, const Advance& advance);

// The relations that a demonstration model finds in the texts, and which heads look along them; none for other models.
[[nodiscard]] std::vector<RelationLooks> run_relations(Engine& engine, const demonstration::LoadedModel& model,
                                                       TextSource& texts, const Advance& advance);

// Pairs of heads of one layer with a CKA of at least `threshold`, the most alike first.
[[nodiscard]] std::vector<HeadPair> alike(const HeadsReport& report, double threshold);

// The head of the same layer that is most like this one; its own number where there is none.
[[nodiscard]] std::int64_t closest_in_layer(const HeadsReport& report, std::int64_t number);

// "previous token", "local" and "no-op"; none where it is nothing in particular.
[[nodiscard]] std::vector<std::string> kind_names(const analysis::HeadKinds& kinds);

// A mean weight from which a head is called after a relation.
constexpr double kAlongRelation = 0.5;
// The kinds of a head, and the relations along which it looks: "coreference".
[[nodiscard]] std::vector<std::string> names_of(const HeadsReport& report, std::int64_t number);

// A CKA from which heads of a layer are called redundant.
constexpr double kRedundant = 0.9;

// The report as words for a terminal, as a JSON document, as a page.
[[nodiscard]] std::string heads_summary(const std::string& model, const HeadsReport& report,
                                        const PruningReport* pruning);
[[nodiscard]] std::string heads_json(const std::string& model, const HeadsReport& report, const PruningReport* pruning);
[[nodiscard]] std::string heads_page(const std::string& model, const HeadsReport& report, const PruningReport* pruning);

}  // namespace headlight::program
