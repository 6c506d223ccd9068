// What a picture of `headlight beams` holds, read as a browser reads it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "headlight/tensor.h"

namespace headlight::test {

inline std::string contents(const std::string& path) {
  return (std::ostringstream() << std::ifstream(path, std::ios::binary).rdbuf()).str();
}

inline std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string::npos) return {};
  return text.substr(begin + before.size(), text.find(after, begin + before.size()) - begin - before.size());
}

// The page's JSON. It is found as a browser finds it: up to the first end of a script.
inline nlohmann::json data_of(const std::string& page) {
  return nlohmann::json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script"));
}

inline std::vector<std::uint8_t> from_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text.substr(0, text.find('='))) {
    bits = bits << 6 | static_cast<std::uint32_t>(letters.find(letter));
    if ((count += 6) >= 8) bytes.push_back(static_cast<std::uint8_t>(bits >> (count -= 8)));
  }
  return bytes;
}

// [H, L, L] of one layer, 0 where there is no beam.
inline Tensor<float, 3> beams_of(const nlohmann::json& data, std::size_t layer) {
  const auto heads = data.at("heads").get<std::int64_t>();
  const auto length = static_cast<std::int64_t>(data.at("words").size());
  const std::vector<std::uint8_t> bytes = from_base64(data.at("layers").at(layer).at("beams"));
  std::size_t at = 0;
  const auto next = [&] {
    at += 2;
    return bytes.at(at - 2) | bytes.at(at - 1) << 8;
  };
  Tensor<float, 3> weights({heads, length, length});
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < length; ++i) {
      for (int left = next(); left > 0; --left) {
        const std::int64_t to = next();
        weights(head, i, to) = static_cast<float>(next()) / 65535.0f;
      }
    }
  }
  EXPECT_EQ(at, bytes.size());
  return weights;
}

}  // namespace headlight::test
