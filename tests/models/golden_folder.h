// The folders of tests/golden/model_folders.jsonl, and what sentence-transformers makes of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/safetensors.h"
#include "models/scratch_folder.h"
#include "models/tiny_bert.h"
#include "support/golden.h"
#include "support/random.h"

namespace headlight::test {

struct GoldenFolder {
  std::string name;
  std::map<std::string, nlohmann::json> files;         // a text where the file is no JSON
  std::string prompt;                                  // the name of one; none where it is empty
  std::vector<std::vector<std::int64_t>> ids;          // of each text
  std::shared_ptr<const Tensor<double, 2>> vectors{};  // [texts, width]

  // Writes the folder; returns its path.
  [[nodiscard]] std::string write(const ScratchFolder& folder) const {
    const std::string root = folder.path("folder");
    std::filesystem::remove_all(root);
    for (const auto& [file, content] : files) {
      folder.write("folder/" + file, content.is_string() ? content.get<std::string>() : content.dump());
    }
    const std::string network = files.contains("0_Transformer/config.json") ? "/0_Transformer" : "";
    const nlohmann::json& config = files.at(network.empty() ? "config.json" : "0_Transformer/config.json");
    const TinyBert bert(config.at("vocab_size"), config.at("max_position_embeddings"));
    models::write_safetensors(root + network + "/model.safetensors", bert.weights());
    write_modules(root);
    return root;
  }

 private:
  // The same draws as those of tests/golden/model_folders.py.
  void write_modules(const std::string& root) const {
    Random random(77);
    for (const auto& [file, content] : files) {
      if (!content.is_object()) continue;
      std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<float>>> tensors;
      const auto draw = [&](const std::string& tensor, const std::vector<std::int64_t>& shape, float around = 0) {
        std::int64_t count = 1;
        for (const std::int64_t extent : shape) count *= extent;
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) {
          const float drawn = 0.25f * random.normal();
          value = around + drawn;
        }
        tensors.emplace(tensor, std::pair(shape, values));
      };
      if (content.contains("in_features")) {
        draw("linear.weight", {content.at("out_features"), content.at("in_features")});
        if (content.at("bias").get<bool>()) draw("linear.bias", {content.at("out_features")});
      } else if (content.contains("dimension")) {
        draw("norm.weight", {content.at("dimension")}, 1);
        draw("norm.bias", {content.at("dimension")});
      } else {
        continue;
      }
      Weights weights;
      for (const auto& [key, tensor] : tensors) weights.emplace(key, WeightView{tensor.first, tensor.second});
      const std::string folder = file.substr(0, file.rfind('/'));
      models::write_safetensors(root + "/" + folder + "/model.safetensors", weights);
    }
  }
};

struct GoldenFolders {
  std::vector<std::string> texts;
  std::vector<GoldenFolder> folders;

  [[nodiscard]] const GoldenFolder& named(const std::string& name) const {
    return *std::find_if(folders.begin(), folders.end(), [&](const auto& folder) { return folder.name == name; });
  }
};

// All of them; read once.
inline const GoldenFolders& golden_folders() {
  static const GoldenFolders all = [] {
    GoldenFolders read;
    GoldenNumbers numbers("model_folders.npy");
    nlohmann::json base;
    for (const std::string& line : golden_lines("model_folders.jsonl")) {
      const nlohmann::json one = nlohmann::json::parse(line);
      if (one.contains("base")) {
        base = one.at("base");
        read.texts = one.at("texts").get<std::vector<std::string>>();
        continue;
      }
      GoldenFolder& folder = read.folders.emplace_back();
      folder.name = one.at("name").get<std::string>();
      folder.prompt = one.at("prompt").get<std::string>();
      folder.ids = one.at("ids").get<std::vector<std::vector<std::int64_t>>>();
      for (const auto& [file, content] : base.items()) folder.files[file] = content;
      for (const auto& [file, content] : one.at("files").items()) folder.files[file] = content;
      for (const auto& file : one.at("without")) folder.files.erase(file.get<std::string>());
      folder.vectors = std::make_shared<const Tensor<double, 2>>(
          numbers.next<2>({static_cast<std::int64_t>(read.texts.size()), one.at("width").get<std::int64_t>()}));
    }
    if (!numbers.at_end()) throw std::runtime_error("model_folders.npy holds more than its cases");
    return read;
  }();
  return all;
}

}  // namespace headlight::test
