// A BERT folder small enough to be made in every test: seeded weights, the same as tests/golden/bert.py draws.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/safetensors.h"
#include "models/scratch_folder.h"
#include "support/random.h"

namespace headlight::test {

struct TinyBert {
  static constexpr std::int64_t kWidth = 24;
  static constexpr std::int64_t kHeads = 3;
  static constexpr std::int64_t kInner = 40;
  static constexpr std::int64_t kLayers = 2;
  static constexpr std::int64_t kPositions = 12;
  static constexpr std::int64_t kTypes = 2;
  static constexpr std::int64_t kVocabulary = 31;

  explicit TinyBert(std::int64_t vocabulary = kVocabulary, std::int64_t positions = kPositions) {
    draw("embeddings.word_embeddings.weight", {vocabulary, kWidth}, 0.5f);
    draw("embeddings.position_embeddings.weight", {positions, kWidth}, 0.5f);
    draw("embeddings.token_type_embeddings.weight", {kTypes, kWidth}, 0.5f);
    norm("embeddings");
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = "encoder.layer." + std::to_string(layer) + ".";
      for (const char* part : {"query", "key", "value"}) linear(prefix + "attention.self." + part, kWidth, kWidth);
      linear(prefix + "attention.output.dense", kWidth, kWidth);
      norm(prefix + "attention.output");
      linear(prefix + "intermediate.dense", kInner, kWidth);
      linear(prefix + "output.dense", kWidth, kInner);
      norm(prefix + "output");
    }
  }

  [[nodiscard]] Weights weights() const {
    Weights views;
    for (const auto& [name, tensor] : tensors) views.emplace(name, WeightView{tensor.shape, tensor.values});
    return views;
  }

  // Tensors under other names: `rename` gives the new one.
  template <class Rename>
  [[nodiscard]] Weights renamed(Rename rename) const {
    Weights views;
    for (const auto& [name, tensor] : tensors) views.emplace(rename(name), WeightView{tensor.shape, tensor.values});
    return views;
  }

  // What config.json says; change() replaces or adds one member, an empty value takes it away.
  std::map<std::string, std::string> config{
      {"model_type", "\"bert\""},      {"vocab_size", "31"},
      {"hidden_size", "24"},           {"num_hidden_layers", "2"},
      {"num_attention_heads", "3"},    {"intermediate_size", "40"},
      {"hidden_act", "\"gelu\""},      {"max_position_embeddings", "12"},
      {"type_vocab_size", "2"},        {"layer_norm_eps", "1e-5"},
      {"hidden_dropout_prob", "0.1"},  {"position_embedding_type", "\"absolute\""},
      {"id2label", "{\"0\": [\"a\"]}"}};

  [[nodiscard]] std::string config_text() const {
    std::string text = "{";
    for (const auto& [key, value] : config) {
      if (value.empty()) continue;
      text.append(text.size() > 1 ? ", \"" : "\"").append(key).append("\": ").append(value);
    }
    return text + "}";
  }

  [[nodiscard]] static std::string vocabulary_text() {
    std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) text.append(1, letter).append("\n");
    return text;
  }

  // Writes the folder; returns its path.
  std::string write(const ScratchFolder& folder) const {
    folder.write("bert/config.json", config_text());
    folder.write("bert/vocab.txt", vocabulary_text());
    models::write_safetensors(folder.path("bert/model.safetensors"), weights());
    return folder.path("bert");
  }

  struct Tensor {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Tensor> tensors;

 private:
  void draw(const std::string& name, std::vector<std::int64_t> shape, float scale, float around = 0.0f) {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    std::vector<float> values(count);
    for (float& value : values) {
      const float drawn = scale * random_.normal();
      value = around + drawn;
    }
    tensors.insert_or_assign(name, Tensor{std::move(shape), std::move(values)});
  }

  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    draw(name + ".weight", {out, in}, 0.25f);
    draw(name + ".bias", {out}, 0.25f);
  }

  void norm(const std::string& name) {
    draw(name + ".LayerNorm.weight", {kWidth}, 0.25f, 1.0f);
    draw(name + ".LayerNorm.bias", {kWidth}, 0.25f);
  }

  Random random_{2024};
};

}  // namespace headlight::test
