// Folders of small models of every family, as tests/golden/families.py describes them, and what Transformers makes of
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/safetensors.h"
#include "support/golden.h"
#include "support/random.h"

namespace headlight::test {

struct GoldenFamily {
  std::string name;
  nlohmann::json described;
  // Of hidden states: [B, L, E] and [B, E]. Of scores: [pairs, labels].
  std::shared_ptr<const Tensor<double, 3>> hidden{};
  std::shared_ptr<const Tensor<double, 2>> vectors{}, scores{};

  using Tensors = std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>>;

  // The same draws as those of families.py.
  [[nodiscard]] Tensors tensors() const {
    Random random(31);
    Tensors drawn;
    for (const auto& one : described.at("tensors")) {
      const auto shape = one.at(1).get<std::vector<std::int64_t>>();
      const auto scale = one.at(2).get<float>(), around = one.at(3).get<float>();
      std::size_t count = 1;
      for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
      std::vector<float> values(count);
      for (float& value : values) {
        const float number = scale * random.normal();
        value = around + number;
      }
      drawn.emplace(one.at(0).get<std::string>(), std::pair(shape, std::move(values)));
    }
    return drawn;
  }

  [[nodiscard]] static Weights views(const Tensors& tensors) {
    Weights weights;
    for (const auto& [name, tensor] : tensors) weights.emplace(name, WeightView{tensor.first, tensor.second});
    return weights;
  }

  [[nodiscard]] nlohmann::json tokenizer_json() const {
    std::ifstream stream(golden_path("tokenizers/" + described.at("tokenizer").at("file").get<std::string>()));
    std::string line;
    std::getline(stream, line);
    nlohmann::json tokenizer = nlohmann::json::parse(line).at("tokenizer");
    for (const auto& [key, value] : described.at("tokenizer").at("changes").items()) tokenizer[key] = value;
    return tokenizer;
  }

  // Writes the folder, with another config.json or other weights where they are given; returns its path.
  [[nodiscard]] std::string write(const std::string& root, const nlohmann::json& config = {},
                                  const Weights& weights = {}) const {
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(root);
    std::ofstream(root + "/config.json") << (config.is_null() ? described.at("config") : config).dump();
    std::ofstream(root + "/tokenizer.json") << tokenizer_json().dump();
    // The tokenizers are none that the class of their family would make.
    const bool is_bert = described.at("tokenizer").at("file") == "word_piece.jsonl" && name != "mpnet";
    if (!is_bert && !described.at("config").contains("tokenizer_class")) {
      std::ofstream(root + "/tokenizer_config.json") << R"({"tokenizer_class": "PreTrainedTokenizerFast"})";
    }
    if (weights.empty()) {
      const Tensors drawn = tensors();
      models::write_safetensors(root + "/model.safetensors", views(drawn));
    } else {
      models::write_safetensors(root + "/model.safetensors", weights);
    }
    return root;
  }
};

// All of them; read once.
inline const std::vector<GoldenFamily>& golden_families() {
  static const std::vector<GoldenFamily> all = [] {
    std::vector<GoldenFamily> read;
    GoldenNumbers numbers("families.npy");
    for (const std::string& line : golden_lines("families.jsonl")) {
      GoldenFamily& family = read.emplace_back();
      family.described = nlohmann::json::parse(line);
      family.name = family.described.at("name").get<std::string>();
      const auto extent = [](const nlohmann::json& list) { return static_cast<std::int64_t>(list.size()); };
      if (family.described.contains("pairs")) {
        family.scores = std::make_shared<const Tensor<double, 2>>(
            numbers.next<2>({extent(family.described.at("pairs")), family.described.at("labels").get<std::int64_t>()}));
        continue;
      }
      const nlohmann::json& ids = family.described.at("ids");
      constexpr std::int64_t kWidth = 32;
      family.hidden =
          std::make_shared<const Tensor<double, 3>>(numbers.next<3>({extent(ids), extent(ids.at(0)), kWidth}));
      family.vectors = std::make_shared<const Tensor<double, 2>>(numbers.next<2>({extent(ids), kWidth}));
    }
    if (!numbers.at_end()) throw std::runtime_error("families.npy holds more than its cases");
    return read;
  }();
  return all;
}

inline std::vector<const GoldenFamily*> families_of_hidden_states() {
  std::vector<const GoldenFamily*> found;
  for (const GoldenFamily& family : golden_families()) {
    if (family.hidden) found.push_back(&family);
  }
  return found;
}

inline const GoldenFamily& golden_family(const std::string& name) {
  for (const GoldenFamily& family : golden_families()) {
    if (family.name == name && family.hidden) return family;
  }
  throw std::runtime_error("no family " + name);
}

}  // namespace headlight::test
