// The tokenizers of tests/golden/tokenizers, and texts of their cases.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/golden.h"

namespace headlight::test {

struct GoldenTokenizer {
  nlohmann::json described;
  std::vector<std::string> texts;
};

inline std::vector<GoldenTokenizer> golden_tokenizers() {
  std::vector<GoldenTokenizer> all;
  for (const auto& file : std::filesystem::directory_iterator(golden_path("tokenizers"))) {
    std::ifstream stream(file.path());
    for (std::string line; std::getline(stream, line);) {
      const nlohmann::json one = nlohmann::json::parse(line);
      if (one.is_object()) {
        all.push_back({one.at("tokenizer"), {}});
      } else {
        all.back().texts.push_back(one[0].get<std::string>());
      }
    }
  }
  return all;
}

}  // namespace headlight::test
