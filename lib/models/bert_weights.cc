#include "models/bert_weights.h"

#include <array>
#include <set>
#include <utility>

#include "headlight/models/errors.h"
#include "models/describe.h"
#include "models/tensor_files/stored_weight.h"

namespace headlight::models {
namespace {

using Shape = std::vector<std::int64_t>;

// One tensor: its name in BERT files, and its name in headlight::Encoder. `part` 0, 1, 2: that third of our in_proj
// tensors, which hold query, key and value one after another.
struct Pair {
  std::string bert;
  std::string ours;
  Shape shape;
  int part = -1;
};

constexpr std::array<const char*, 3> kProjections{"query", "key", "value"};

void append_linear(std::vector<Pair>& list, const std::string& bert, const std::string& ours, std::int64_t out,
                   std::int64_t in) {
  list.push_back({bert + ".weight", ours + ".weight", {out, in}});
  list.push_back({bert + ".bias", ours + ".bias", {out}});
}

void append_norm(std::vector<Pair>& list, const std::string& bert, const std::string& ours, std::int64_t width) {
  list.push_back({bert + ".LayerNorm.weight", ours + ".weight", {width}});
  list.push_back({bert + ".LayerNorm.bias", ours + ".bias", {width}});
}

// What puts heads together: BERT's dense layer behind them, and what our further ways have beside it, which published
// files do not know and whose names are our own.
void append_merge(std::vector<Pair>& list, const std::string& bert, const std::string& ours,
                  const EncoderOptions& options) {
  const std::int64_t width = options.width, heads = options.heads;
  const auto append = [&](const char* name, Shape shape) {
    list.push_back({bert + "." + name, ours + "." + name, std::move(shape)});
  };
  switch (options.merge) {
    case Merge::average:
      return append_linear(list, bert + ".dense", ours + ".out_proj", width, width / heads);
    case Merge::weighted:
      append("merge_logits", {heads});
      return append_linear(list, bert + ".dense", ours + ".out_proj", width, width / heads);
    case Merge::weighted_by_input:
      append("merge_proj.weight", {heads, width});
      return append_linear(list, bert + ".dense", ours + ".out_proj", width, width / heads);
    case Merge::gated_by_head:
      append("gate_proj.weight", {heads, width});
      break;
    case Merge::gated_by_element:
      append("gate_proj.weight", {width, width});
      break;
    case Merge::concatenate:
      break;
  }
  append_linear(list, bert + ".dense", ours + ".out_proj", width, width);
}

void append_layer(std::vector<Pair>& list, std::int64_t number, const EncoderOptions& options) {
  const std::int64_t width = options.width;
  const std::string bert = "encoder.layer." + std::to_string(number) + ".";
  const std::string ours = "layers." + std::to_string(number) + ".";
  for (int part = 0; part < 3; ++part) {
    const std::string projection = bert + "attention.self." + kProjections[static_cast<std::size_t>(part)];
    list.push_back({projection + ".weight", ours + "self_attn.in_proj_weight", {width, width}, part});
    list.push_back({projection + ".bias", ours + "self_attn.in_proj_bias", {width}, part});
  }
  append_merge(list, bert + "attention.output", ours + "self_attn", options);
  append_norm(list, bert + "attention.output", ours + "norm1", width);
  append_linear(list, bert + "intermediate.dense", ours + "linear1", options.feed_forward_width, width);
  append_linear(list, bert + "output.dense", ours + "linear2", width, options.feed_forward_width);
  append_norm(list, bert + "output", ours + "norm2", width);
}

std::vector<Pair> embedding_pairs(const EncoderOptions& options) {
  std::vector<Pair> list;
  const auto table = [&](const std::string& name, std::int64_t rows) {
    list.push_back({"embeddings." + name + ".weight", name + ".weight", {rows, options.width}});
  };
  table("word_embeddings", options.vocabulary);
  table("position_embeddings", options.max_positions);
  if (options.token_types > 0) table("token_type_embeddings", options.token_types);
  append_norm(list, "embeddings", "norm", options.width);
  return list;
}

// The name in the file: behind `prefix`, LayerNorm's weight and bias also as gamma and beta.
std::string name_in_file(const SafetensorsFile& file, const std::string& prefix, const std::string& bert) {
  const std::string name = prefix + bert;
  if (file.find(name) != nullptr) return name;
  for (const auto& [now, before] :
       {std::pair{".LayerNorm.weight", ".LayerNorm.gamma"}, {".LayerNorm.bias", ".LayerNorm.beta"}}) {
    if (!name.ends_with(now)) continue;
    const std::string old = name.substr(0, name.size() - std::string_view(now).size()) + before;
    if (file.find(old) != nullptr) return old;
  }
  throw FileError(file.path(), "lacks the tensor " + in_quotes(name) + ", which config.json asks for");
}

// What belongs to the encoder but to none of its tensors: a sign that configuration and weights are of two models.
void check_no_extra(const SafetensorsFile& file, const std::string& prefix, const std::set<std::string>& used) {
  for (const SafetensorsEntry& entry : file.tensors()) {
    constexpr std::string_view kPrefix = "bert.";
    const bool has_prefix = entry.name.starts_with(kPrefix);
    for (const std::string& twin :
         {std::string(kPrefix) + entry.name, has_prefix ? entry.name.substr(kPrefix.size()) : std::string()}) {
      if (used.contains(twin)) refuse_twin(file.path(), entry.name, twin);
    }
    if (!entry.name.starts_with(prefix) || used.contains(entry.name) || belongs_to_another(file, entry)) continue;
    const std::string name = entry.name.substr(prefix.size());
    const bool is_buffer = name == "embeddings.position_ids" || name == "embeddings.token_type_ids";
    if (!is_buffer && (name.starts_with("embeddings.") || name.starts_with("encoder."))) {
      throw FileError(file.path(),
                      "holds the tensor " + in_quotes(entry.name) + ", which config.json does not ask for");
    }
  }
}

// Our attention takes one bias [3E]: BERT's three, joined.
void join_biases(EncoderWeights& found, std::string name, const std::array<WeightView, 3>& parts) {
  std::vector<float>& bias = found.joined.emplace_back();
  for (const WeightView& part : parts) bias.insert(bias.end(), part.values.begin(), part.values.end());
  found.weights.emplace(std::move(name), WeightView{{static_cast<std::int64_t>(bias.size())}, bias});
}

class Finder {
 public:
  Finder(SafetensorsFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  // The tensors of `pairs`, checked.
  void find(const std::vector<Pair>& pairs) {
    std::array<WeightView, 3> biases;
    for (const Pair& pair : pairs) {
      const std::string name = name_in_file(file_, prefix_, pair.bert);
      const SafetensorsEntry& entry = *file_.find(name);
      const std::vector<std::int64_t> shape = shape_in(file_, entry);
      if (shape != pair.shape) {
        throw FileError(file_.path(), "tensor " + in_quotes(name) + " has shape " + describe(shape) +
                                          ", but config.json says " + describe(pair.shape));
      }
      used_.insert(name);
      const WeightView view = pair.shape.size() > 1 ? file_.stored(name) : file_.float32(name);
      if (pair.part < 0) {
        found_.weights.emplace(pair.ours, view);
      } else if (pair.shape.size() == 2) {  // layers take separate projections as nn.MultiheadAttention names them
        const std::string_view in_proj = "in_proj_weight";
        const char* separate[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
        found_.weights.emplace(pair.ours.substr(0, pair.ours.size() - in_proj.size()) + separate[pair.part], view);
      } else {
        biases[static_cast<std::size_t>(pair.part)] = view;
        if (pair.part == 2) join_biases(found_, pair.ours, biases);
      }
    }
  }

  EncoderWeights finish() {
    check_no_extra(file_, prefix_, used_);
    found_.prefix = prefix_;
    return std::move(found_);
  }

 private:
  SafetensorsFile& file_;
  std::string prefix_;
  std::set<std::string> used_;
  EncoderWeights found_;
};

}  // namespace

EncoderWeights find_bert_weights(SafetensorsFile& file, const EncoderOptions& options) {
  const bool prefixed = file.find("bert.embeddings.word_embeddings.weight") != nullptr;
  Finder finder(file, prefixed ? "bert." : "");
  finder.find(embedding_pairs(options));
  // One layer at a time: however many the configuration claims, the first that is missing ends it.
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    std::vector<Pair> pairs;
    append_layer(pairs, layer, options);
    finder.find(pairs);
  }
  return finder.finish();
}

Weights name_as_bert(const headlight::Encoder& network, const std::string& prefix) {
  constexpr std::array<const char*, 3> kSeparate{"q_proj_weight", "k_proj_weight", "v_proj_weight"};
  const EncoderOptions& options = network.options();
  std::vector<Pair> pairs = embedding_pairs(options);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) append_layer(pairs, layer, options);
  // Queries, keys and values by themselves, as they were lent.
  Weights like;
  for (Pair& pair : pairs) {
    if (pair.part < 0 || pair.shape.size() < 2) continue;
    pair.ours.replace(pair.ours.rfind('.') + 1, std::string::npos, kSeparate[static_cast<std::size_t>(pair.part)]);
    pair.part = -1;
    like.emplace(pair.ours, WeightView());
  }
  const Weights ours = network.weights_as_stored(like);
  Weights named;
  for (const Pair& pair : pairs) {
    WeightView view = ours.find(pair.ours)->second;
    if (pair.part >= 0) {
      const std::size_t third = view.values.size() / 3;
      view.values = view.values.subspan(third * static_cast<std::size_t>(pair.part), third);
    }
    view.shape = pair.shape;
    named.emplace(prefix + pair.bert, std::move(view));
  }
  return named;
}

}  // namespace headlight::models
