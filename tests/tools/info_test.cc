#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "headlight/engine.h"
#include "headlight/system.h"
#include "tools/program.h"

namespace headlight::test::info_test {

nlohmann::json info(const std::vector<std::string>& more, const Surroundings& surroundings = {}) {
  std::vector<std::string> arguments{"info", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = run_program(arguments, surroundings);
  EXPECT_EQ(finished.code, 0) << finished.error;
  return nlohmann::json::parse(finished.out);
}

InstructionFeatures features_of_engine(Isa isa) {
  EngineOptions options;
  options.isa = isa;
  return Engine(options).features();
}

TEST(Info, SaysWhatTheEngineSays) {
  const Engine engine;
  const nlohmann::json found = info({});
  EXPECT_EQ(found.at("isa"), name(engine.isa()));
  EXPECT_EQ(found.at("threads"), engine.threads());
  EXPECT_EQ(found.at("simd"), simd_library());
  EXPECT_EQ(found.at("available_isas").size(), available_isas().size());
  std::vector<std::string> types;
  for (const NumberType type : available_types()) types.emplace_back(name(type));
  EXPECT_EQ(found.at("types").get<std::vector<std::string>>(), types);
  std::vector<std::string> features;
  for (const InstructionFeature feature : engine.features().list()) features.emplace_back(name(feature));
  EXPECT_EQ(found.at("features").get<std::vector<std::string>>(), features);
  EXPECT_EQ(found.at("compiler"), system_info().compiler);
  EXPECT_EQ(found.at("version"), system_info().version);
  EXPECT_EQ(found.at("cores"), system_info().cores);
  EXPECT_EQ(found.at("caches").at("l1d"), system_info().l1_data_bytes);
}

TEST(Info, NamesFeaturesBesideTheirInstructionSet) {
  for (const Isa isa : available_isas()) {
    std::string expected = "instruction set   " + std::string(name(isa));
    for (const InstructionFeature feature : features_of_engine(isa).list()) {
      expected.append(expected.find(" with ") == std::string::npos ? " with " : " and ").append(name(feature));
    }
    const Finished finished = run_program({"info", "--isa", std::string(name(isa))});
    EXPECT_NE(finished.out.find(expected + " (available: "), std::string::npos) << finished.out;
  }
}

TEST(Info, SaysWhichFeaturesWantFastNumerics) {
  for (const Isa isa : available_isas()) {
    const std::string set(name(isa));
    std::vector<std::string> fast;
    for (const InstructionFeature feature : available_features(isa, Numerics::fast).list()) {
      if (!available_features(isa).has(feature)) fast.emplace_back(name(feature));
    }
    for (const char* numerics : {"reproducible", "fast"}) {
      const nlohmann::json found = info({"--isa", set, "--numerics", numerics});
      EXPECT_EQ(found.at("numerics"), numerics);
      EXPECT_EQ(found.at("fast_features").get<std::vector<std::string>>(), fast);
    }
    const Finished finished = run_program({"info", "--isa", set});
    EXPECT_NE(finished.out.find("numerics          reproducible (--numerics fast adds: "), std::string::npos)
        << finished.out;
  }
  expect_error(run_program({"info", "--numerics", "exact"}), {"--numerics", "exact", "reproducible or fast"}, 2);
}

TEST(Info, SaysWhatEachTypeIsMultipliedWith) {
  for (const Isa isa : available_isas()) {
    const std::string set(name(isa));
    const InstructionFeatures features = features_of_engine(isa);
    const bool has_pairs = features.has(InstructionFeature::avx512_bf16);
    const std::string pairs = has_pairs ? "avx512_bf16" : "widened to float32 on " + set;
    const std::string bfloat16 = features.has(InstructionFeature::amx_bf16) ? "amx_bf16" : pairs;
    const std::string bytes = features.has(InstructionFeature::avx512_vnni)    ? "avx512_vnni"
                              : features.has(InstructionFeature::avx_vnni)     ? "avx_vnni"
                              : features.has(InstructionFeature::neon_i8mm)    ? "neon_i8mm"
                              : features.has(InstructionFeature::neon_dotprod) ? "neon_dotprod"
                                                                               : "widened to 16 bits on " + set;
    const std::string int8 = features.has(InstructionFeature::amx_int8) ? "amx_int8" : bytes;
    const nlohmann::json products = info({"--isa", set}).at("products");
    EXPECT_EQ(products.at("float32"), set);
    EXPECT_EQ(products.at("bfloat16"), bfloat16);
    EXPECT_EQ(products.at("float16"), "widened to float32 on " + set);
    EXPECT_EQ(products.at("int8"), int8);
    EXPECT_EQ(products.at("int4"), int8);
    const std::string line = "products          float32: " + set + "; bfloat16: " + bfloat16 +
                             "; float16: widened to float32 on " + set + "; int8: " + int8 + "; int4: " + int8 + "\n";
    const nlohmann::json attention = info({"--isa", set}).at("attention");
    EXPECT_EQ(attention.at("bfloat16"), bfloat16);
    EXPECT_EQ(attention.at("int8"), "widened to float32 on " + set);
    EXPECT_EQ(attention.size(), 4u);
    const std::string of_attention = "attention         float32: " + set + "; bfloat16: " + bfloat16 +
                                     "; float16: widened to float32 on " + set +
                                     "; int8 (keys and values): widened to float32 on " + set + "\n";
    EXPECT_NE(run_program({"info", "--isa", set}).out.find(line + of_attention), std::string::npos);
  }
}

TEST(Info, EveryAvailableInstructionSetCanBeForced) {
  for (const Isa isa : available_isas()) {
    const std::string wanted(name(isa));
    EXPECT_EQ(info({"--isa", wanted}).at("isa"), wanted);
    EXPECT_EQ(info({}, {.environment = {{"HEADLIGHT_ISA", wanted}}}).at("isa"), wanted);
    // The option wins over the environment.
    EXPECT_EQ(info({"--isa", wanted}, {.environment = {{"HEADLIGHT_ISA", "scalar"}}}).at("isa"), wanted);
  }
}

TEST(Info, ThreadsAreThoseAskedFor) {
  EXPECT_EQ(info({"-t", "3"}).at("threads"), 3);
  EXPECT_EQ(info({"--threads=2"}, {.environment = {{"HEADLIGHT_NUM_THREADS", "5"}}}).at("threads"), 2);
  EXPECT_EQ(info({}, {.environment = {{"HEADLIGHT_NUM_THREADS", "5"}}}).at("threads"), 5);
}

TEST(Info, InstructionSetsAreNamedInLettersOfAnyCase) {
  EXPECT_EQ(info({"--isa", "SCALAR"}).at("isa"), "scalar");
  EXPECT_EQ(info({}, {.environment = {{"HEADLIGHT_ISA", "Scalar"}}}).at("isa"), "scalar");
}

TEST(Info, UnknownOrAbsentInstructionSetsAreErrors) {
  expect_error(run_program({"info", "--isa", "avx1024"}), {"--isa", "avx1024"}, 2);
  expect_error(run_program({"info"}, {.environment = {{"HEADLIGHT_ISA", "avx1024"}}}), {"HEADLIGHT_ISA", "avx1024"});
#if defined(__x86_64__)
  expect_error(run_program({"info", "--isa", "neon"}),
               {"error: --isa is 'neon', expected one that this build and CPU have: scalar"});
#else
  expect_error(run_program({"info", "--isa", "avx2"}), {"avx2"});
#endif
}

// Those of models/demonstration, which an installed program does not have as a file.
TEST(Info, WordsAreThoseThatTheDemonstrationModelKnows) {
  const auto known = info({"--words"}).at("words").get<std::vector<std::string>>();
  std::ifstream vocabulary(HEADLIGHT_SOURCE "/models/demonstration/vocab.txt");
  std::vector<std::string> expected;
  for (std::string word; std::getline(vocabulary, word);) {
    if (!word.starts_with('[')) expected.push_back(word);
  }
  EXPECT_EQ(known, expected);
  std::istringstream text(run_program({"info", "--words"}).out);
  std::vector<std::string> listed;
  for (std::string word; text >> word;) listed.push_back(word);
  EXPECT_EQ(listed, expected);
  EXPECT_FALSE(info({}).contains("words"));
}

TEST(Info, TextNamesTheSameThings) {
  const Finished finished = run_program({"info", "--isa", "scalar", "-t", "1"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_NE(finished.out.find("instruction set   scalar (available: scalar"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("threads           1 (cores granted: "), std::string::npos) << finished.out;
}

}  // namespace headlight::test::info_test
