// headlight presets: the table and the document say what the engine counts.
#include "headlight/analysis/presets.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/program.h"

namespace headlight::test::presets_test {

TEST(PresetsCommand, TheTableHoldsEveryModelsSum) {
  const Finished finished = run_program({"presets"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  for (const char* words : {"BERT-base", "GPT-2 medium", "MiniLM-L6", "109,482,240", "335,141,888", "124,439,808",
                            "354,823,168", "22,713,216", "49,152", "147,456", "1,769,472", "589,824", "2,359,296",
                            "over 512 tokens", "Terms", "  W_O    ", "  FLOP   ", "  kept for backward "}) {
    EXPECT_NE(finished.out.find(words), std::string::npos) << words << " in " << finished.out;
  }
  EXPECT_EQ(finished.out.find("was trained for"), std::string::npos);
  EXPECT_NE(run_program({"presets", "--length", "1000"}).out.find("BERT-large was trained for 512"), std::string::npos);
}

TEST(PresetsCommand, TheDocumentHoldsTheSame) {
  const Finished finished = run_program({"presets", "--json", "--length", "1000"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  const nlohmann::json document = nlohmann::json::parse(finished.out);
  EXPECT_EQ(document.at("length"), 1000);
  ASSERT_EQ(document.at("presets").size(), analysis::presets().size());
  for (std::size_t n = 0; n < analysis::presets().size(); ++n) {
    const analysis::Preset& preset = analysis::presets()[n];
    const nlohmann::json& entry = document.at("presets").at(n);
    EXPECT_EQ(entry.at("name"), preset.name);
    std::int64_t sum = 0;
    for (const auto& part : entry.at("parameters").items()) sum += part.value().get<std::int64_t>();
    EXPECT_EQ(sum, preset.published_parameters);
    EXPECT_EQ(entry.at("parameter_count"), entry.at("published_parameter_count"));
    EXPECT_EQ(entry.at("weight_bytes").at("float32"), 4 * preset.published_parameters);
    for (const NumberType type : kNumberTypes) {
      EXPECT_EQ(entry.at("weight_bytes").at(std::string(name(type))), analysis::weight_bytes(preset.shape, type));
    }
    EXPECT_EQ(entry.at("attention_weights").at("all"), entry.at("attention_weights").at("all_with_one_head"));
    EXPECT_EQ(entry.at("flops").at("all").get<double>(), analysis::forward_flops(preset.shape, 1000).all());
    ASSERT_EQ(entry.at("merges").size(), 6u);
    EXPECT_EQ(entry.at("merges").at(0).at("weights"), entry.at("attention_weights").at("output"));
    EXPECT_EQ(entry.at("merges").at(3).at("merge"), "weighted-by-input");
    EXPECT_EQ(entry.at("attention_bytes").at("scores"), 4 * preset.shape.heads * 1000 * 1000);
  }
}

TEST(PresetsCommand, LengthsThatMakeNoSense) {
  for (const char* length : {"0", "-1", "many", "1.5", "", "1073741825", "9223372036854775808"}) {
    expect_error(run_program({"presets", "--length", length}), {"--length"}, 2);
  }
  EXPECT_EQ(run_program({"presets", "--length", "1073741824", "--json"}).code, 0);
}

}  // namespace headlight::test::presets_test
