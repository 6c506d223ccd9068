// A small random model in a folder, and the commands that take one.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/models/text_encoder.h"
#include "tools/expect_npy.h"
#include "tools/program.h"

namespace headlight::test {

class ModelCommands : public testing::Test {
 protected:
  ModelCommands() : model_(make()) { model_.save(folder_ / "model"); }

  static models::TextEncoder make() {
    models::ModelOptions options;
    options.encoder = {.max_positions = 16, .token_types = 2, .width = 24, .heads = 3, .layers = 2};
    options.embed_max_length = 8;
    models::Tokenizer tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "world", "it", ",", "."});
    return models::make_random(options, std::move(tokenizer), 3);
  }

  [[nodiscard]] Finished run(const std::string& subcommand, const std::vector<std::string>& more,
                             const Surroundings& surroundings = {}) const {
    std::vector<std::string> all{subcommand, "--model", folder_ / "model"};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all, surroundings);
  }

  [[nodiscard]] std::string read(const std::string& name) const {
    return (std::ostringstream() << std::ifstream(folder_ / name, std::ios::binary).rdbuf()).str();
  }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    return at == std::string::npos ? "no " + from : text.replace(at, from.size(), to);
  }

  template <int Rank>
  void expect_array(const std::string& name, const Tensor<float, Rank>& expected) const {
    expect_npy(folder_ / name, expected);
  }

  ScratchFolder folder_;
  Engine engine_;
  models::TextEncoder model_;
};

}  // namespace headlight::test
