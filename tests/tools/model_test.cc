// headlight encode, embed, convert and demo on a small random model that the test writes itself.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "headlight/models/npy.h"
#include "support/sanitizer.h"
#include "tools/model_commands.h"

namespace headlight::test::model_test {

const std::vector<std::string> kTexts{"Hello, world.", "",
                                      "it it it it it it it it it it it it it it it it it it it it"};

TEST_F(ModelCommands, EncodeGivesTheLibrarysBits) {
  const Finished finished =
      run("encode", {"--text", kTexts[0], "--text", kTexts[1], "--text", kTexts[2], "-o", folder_ / "h.npy"});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.out, (folder_ / "h.npy") + ": [3, 16, 24] float32\n");
  expect_array("h.npy", model_.encode(engine_, kTexts).hidden);
}

TEST_F(ModelCommands, PrecisionIsThatOfTheLibrary) {
  const models::TextEncoder narrow = models::load(folder_ / "model", {.precision = NumberType::bfloat16});
  ASSERT_EQ(run("encode", {"--text", kTexts[0], "--precision", "bfloat16", "-o", folder_ / "h.npy"}).code, 0);
  expect_array("h.npy", narrow.encode(engine_, std::span(kTexts).first(1)).hidden);
  ASSERT_EQ(run("embed", {"--text", kTexts[0], "--precision", "bfloat16", "-o", folder_ / "e.npy"}).code, 0);
  expect_array("e.npy", narrow.embed(engine_, std::span(kTexts).first(1)));
  ASSERT_EQ(run("embed", {"--text", kTexts[0], "--precision", "float32", "-o", folder_ / "e.npy"}).code, 0);
  expect_array("e.npy", model_.embed(engine_, std::span(kTexts).first(1)));
  ASSERT_EQ(run("embed", {"--text", kTexts[0], "--precision", "bf16", "-o", folder_ / "e.npy"}).code, 0);
  expect_array("e.npy", narrow.embed(engine_, std::span(kTexts).first(1)));
  for (const std::string subcommand : {"encode", "embed"}) {
    expect_error(run(subcommand, {"--text", "a", "--precision", "float64", "-o", folder_ / "x.npy"}),
                 {"--precision is 'float64', expected float32", "bfloat16"}, 2);
  }
}

// What the folder says of vectors, and what the command line says in its place.
TEST_F(ModelCommands, PoolingsAndPrompts) {
  const auto embedded = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"--text", kTexts[0], "-o", folder_ / "e.npy"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run("embed", arguments);
  };
  models::LoadModelOptions cls;
  cls.pooling = {models::PoolingMode::cls, models::PoolingMode::mean};
  ASSERT_EQ(embedded({"--pooling", "cls,mean"}).out, (folder_ / "e.npy") + ": [1, 48] float32\n");
  expect_array("e.npy", models::load(folder_ / "model", cls).embed(engine_, std::span(kTexts).first(1)));
  for (const std::string names : {"cls,median", "cls,", ",cls", "cls,,mean", "cls, mean"}) {
    expect_error(embedded({"--pooling", names}), {"--pooling is '" + names + "', expected cls, max, mean"}, 2);
  }
  expect_error(embedded({"--pooling", ""}), {"--pooling is empty, expected cls, max, mean"}, 2);

  write("model/config_sentence_transformers.json",
        R"({"prompts": {"q": "it it "}, "default_prompt_name": "q", "published_by": "nobody"})");
  const Tensor<float, 2> with = model_.embed(engine_, std::vector<std::string>{"it it " + kTexts[0]});
  const Finished finished = embedded({});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.error, "headlight: warning: keys that are not known here are passed over: " +
                                (folder_ / "model/config_sentence_transformers.json") + ": published_by\n");
  expect_array("e.npy", with);
  write("model/config_sentence_transformers.json", R"({"prompts": {"q": "it it "}, "default_prompt_name": "q"})");
  ASSERT_EQ(embedded({"--prompt", "query"}).code, 0);  // which is empty unless a folder says otherwise
  expect_array("e.npy", model_.embed(engine_, std::span(kTexts).first(1)));
  expect_error(embedded({"--prompt", "x"}),
               {"--prompt is 'x', expected the name of one of the model's: document, q, query"}, 2);
  expect_error(run("embed", {"--ids", folder_ / "none.npy", "--prompt", "q", "-o", folder_ / "e.npy"}),
               {"--prompt goes with texts, not with --ids"}, 2);
}

TEST_F(ModelCommands, ConvertWritesTheModelInAnotherType) {
  for (const char* type : {"float32", "bfloat16", "float16", "int8", "int4", "fp16"}) {
    SCOPED_TRACE(type);
    const Finished finished = run("convert", {"--type", type, "-o", folder_ / "small", "--overwrite"});
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_TRUE(finished.out.starts_with((folder_ / "small") + ": the model in " +
                                         std::string(name(*parse_number_type(type))) + ", its weights "))
        << finished.out;
    model_.save(folder_ / "expected", *parse_number_type(type));
    EXPECT_EQ(read("small/model.safetensors"), read("expected/model.safetensors"));
    EXPECT_EQ(read("small/vocab.txt"), read("model/vocab.txt"));
  }
  expect_error(run("convert", {"--type", "int8", "-o", folder_ / "small"}),
               {"small: holds a model (model.safetensors): give another folder, or --overwrite to replace it"});
  // Onto itself: it is read where the file is mapped while the new one is written beside.
  ASSERT_EQ(run("convert", {"--type", "bfloat16", "-o", folder_ / "model", "--overwrite"}).code, 0);
  model_.save(folder_ / "expected", NumberType::bfloat16);
  EXPECT_EQ(read("model/model.safetensors"), read("expected/model.safetensors"));
  expect_error(run("convert", {"--type", "int2", "-o", folder_ / "x"}), {"--type is 'int2', expected float32"}, 2);
  expect_error(run_program({"convert", "--model", "none", "--type", "int8", "-o", folder_ / "x"}),
               {"none: is not there"});
  expect_error(run("convert", {"--type", "int8", "-o", "/dev/null/x"}), {"/dev/null/x"});
}

// The first numbers of vectors: as the folder says, and what the command line says in its place.
TEST_F(ModelCommands, TruncateDim) {
  const auto embedded = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"--text", kTexts[0], "-o", folder_ / "e.npy"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run("embed", arguments);
  };
  const auto expected = [&](std::int64_t kept) {
    Tensor<float, 2> vectors({1, kept});
    model_.embed(engine_, std::span(kTexts).first(1), vectors, {.truncate_dim = kept});
    return vectors;
  };
  ASSERT_EQ(embedded({"--truncate-dim", "7"}).out, (folder_ / "e.npy") + ": [1, 7] float32\n");
  expect_array("e.npy", expected(7));
  write("model/config_sentence_transformers.json", R"({"truncate_dim": 5})");
  ASSERT_EQ(embedded({}).code, 0);
  expect_array("e.npy", expected(5));
  const auto line = run("embed", {"--input", "-", "--truncate-dim", "3"}, {.input = kTexts[0]}).out;
  EXPECT_EQ(nlohmann::json::parse(line).at("embedding").size(), 3u);
  const std::vector<std::int64_t> ids{2, 4, 3};
  models::write_npy(folder_ / "ids.npy", std::vector<std::int64_t>{1, 3}, std::span(ids));
  ASSERT_EQ(run("embed", {"--ids", folder_ / "ids.npy", "--truncate-dim", "0", "-o", folder_ / "e.npy"}).code, 0);
  expect_array("e.npy", model_.embed(engine_, View<const std::int64_t, 2>(ids.data(), {1, 3})));
  expect_error(embedded({"--truncate-dim", "25"}),
               {"--truncate-dim is 25, expected at most the width of the model's vectors, 24"}, 2);
  expect_error(embedded({"--truncate-dim", "-1"}), {"--truncate-dim is -1, expected"}, 2);
}

// Texts go through block by block, and the longest may come last.
TEST_F(ModelCommands, EncodeStreamsManyTexts) {
  std::vector<std::string> texts;
  std::string input;
  for (std::size_t n = 0; n < 150; ++n) {
    texts.emplace_back(n % 7 == 3 ? "" : n < 140 ? "hello, world" : "it it it hello world it it");
    input += texts.back() + "\n";
  }
  const Finished finished = run("encode", {"--input", "-", "-o", folder_ / "h.npy"}, {.input = input});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.error, "headlight: warning: 21 texts hold no word: their numbers mean nothing\n");
  expect_array("h.npy", model_.encode(engine_, texts).hidden);
}

TEST_F(ModelCommands, EmbedWritesAFileOrLinesOrADocument) {
  const Tensor<float, 2> expected = model_.embed(engine_, kTexts);
  const std::string input = kTexts[0] + "\r\n" + kTexts[1] + "\n" + kTexts[2];
  const Finished finished = run("embed", {"--input", "-", "-o", folder_ / "e.npy"}, {.input = input});
  ASSERT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.out, (folder_ / "e.npy") + ": [3, 24] float32\n");
  expect_array("e.npy", expected);
  const std::string file = read("e.npy");
  EXPECT_EQ(run("embed", {"--input", "-", "-o", "/dev/stdout"}, {.input = input}).out, file) << "and nothing beside";

  const auto check = [&](std::size_t row, const nlohmann::json& entry) {
    EXPECT_EQ(entry.at("text"), kTexts[row]);
    const auto numbers = entry.at("embedding").get<std::vector<float>>();
    ASSERT_EQ(numbers.size(), 24u);
    EXPECT_EQ(std::memcmp(numbers.data(), &expected(static_cast<std::int64_t>(row), 0), 24 * sizeof(float)), 0);
  };
  std::istringstream lines(run("embed", {"--input", "-"}, {.input = input}).out);
  std::size_t row = 0;
  for (std::string line; std::getline(lines, line); ++row) check(row, nlohmann::json::parse(line));
  EXPECT_EQ(row, kTexts.size());

  std::filesystem::remove(folder_ / "e.npy");
  const nlohmann::json document =
      nlohmann::json::parse(run("embed", {"--input", "-", "--json", "-o", folder_ / "e.npy"}, {.input = input}).out);
  EXPECT_EQ(read("e.npy"), file);
  ASSERT_EQ(document.size(), kTexts.size());
  for (row = 0; row < kTexts.size(); ++row) check(row, document[row]);
}

// What a pipe gives is answered while it stays open: the test waits for an answer before it writes on.
TEST_F(ModelCommands, EmbedAnswersAPipeAsLinesCome) {
  const std::string out = folder_ / "answers";
  const std::string lines = folder_ / "lines";
  ASSERT_EQ(::mkfifo(lines.c_str(), 0600), 0);
  std::future<Finished> finished = std::async(std::launch::async, [&] {
    return run("embed", {"--input", lines}, {.output = out});
  });
  std::ofstream pipe(lines);
  const auto count = [&] {
    std::ifstream answers(out);
    return std::count(std::istreambuf_iterator<char>(answers), {}, '\n');
  };
  // A minute is for a program that waits for the end of its input, and so fails.
  const auto waits_for = [&](std::ptrdiff_t answers) {
    for (int n = 0; n < 6000 && count() < answers; ++n) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return count();
  };
  pipe << kTexts[0] << "\r\n" << kTexts[1] << "\n" << std::flush;
  EXPECT_EQ(waits_for(2), 2);
  pipe << kTexts[2] << std::flush;
  pipe.close();
  EXPECT_EQ(finished.get().code, 0);
  std::string input;
  for (const std::string& text : kTexts) input += text + "\n";
  std::ifstream answers(out);
  EXPECT_EQ((std::ostringstream() << answers.rdbuf()).str(), run("embed", {"--input", "-"}, {.input = input}).out);
}

TEST_F(ModelCommands, IdsAndMasks) {
  const std::vector<std::int64_t> ids{2, 4, 5, 3, 2, 6, 3, 0};
  const std::vector<std::int64_t> mask{1, 1, 1, 1, 1, 1, 1, 0};
  models::write_npy(folder_ / "ids.npy", std::vector<std::int64_t>{2, 4}, std::span(ids));
  models::write_npy(folder_ / "mask.npy", std::vector<std::int64_t>{2, 4}, std::span(mask));
  const View<const std::int64_t, 2> id_view(ids.data(), {2, 4});
  const View<const std::int64_t, 2> mask_view(mask.data(), {2, 4});
  const std::vector<std::string> options{"--ids", folder_ / "ids.npy", "--attention-mask", folder_ / "mask.npy"};
  const auto with_output = [&](const std::string& name) {
    std::vector<std::string> all = options;
    all.insert(all.end(), {"-o", folder_ / name});
    return all;
  };
  EXPECT_EQ(run("encode", with_output("h.npy")).out, (folder_ / "h.npy") + ": [2, 4, 24] float32\n");
  expect_array("h.npy", model_.encode(engine_, id_view, mask_view));
  ASSERT_EQ(run("embed", with_output("e.npy")).code, 0);
  expect_array("e.npy", model_.embed(engine_, id_view, mask_view));
  EXPECT_EQ(nlohmann::json::parse(run("embed", {"--ids", folder_ / "ids.npy", "--json"}).out).size(), 2u);
}

TEST_F(ModelCommands, TheDemonstrationMultipliesInTheTypeAskedFor) {
  const auto shown = [&](const std::string& type) {
    const Finished finished = run("demo", {"--json", "--precision", type});
    EXPECT_EQ(finished.code, 0) << finished.error;
    return nlohmann::json::parse(finished.out);
  };
  const auto similarity = [](const nlohmann::json& document) {
    return document.at("similarity").at(0).at(1).get<float>();
  };
  const nlohmann::json wide = shown("float32");
  EXPECT_EQ(wide.at("precision"), "float32");
  EXPECT_EQ(shown("fp16").at("precision"), "float16");
  for (const NumberType type : {NumberType::bfloat16, NumberType::int4}) {
    const nlohmann::json document = shown(std::string(name(type)));
    EXPECT_EQ(document.at("precision"), name(type));
    const auto sentences = document.at("sentences").get<std::vector<std::string>>();
    const Tensor<float, 2> vectors = models::load(folder_ / "model", {.precision = type}).embed(engine_, sentences);
    float cosine = 0;
    for (std::int64_t e = 0; e < vectors.shape()[1]; ++e) cosine += vectors(0, e) * vectors(1, e);
    EXPECT_NEAR(similarity(document), cosine, 1e-5f);
    EXPECT_NE(similarity(document), similarity(wide));
  }
  EXPECT_NE(run("demo", {"--precision", "int8"}).out.find("; products in int8\n"), std::string::npos);
}

// However many texts there are, what stands beside their vectors stays small.
TEST_F(ModelCommands, FULL_ManyTextsTakeNoMemory) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  const auto peak = [&](int texts, const std::string& json) {
    std::string input;
    for (int n = 0; n < texts; ++n) {
      input += "hello, world";
      for (int word = 0; word < 4; ++word) input += " w" + std::to_string(4 * n + word);
      input += "\n";
    }
    write("many", input);
    std::filesystem::remove(folder_ / "out");
    std::vector<std::string> options{"--input", folder_ / "many", "-t", "1"};
    if (!json.empty()) options.push_back(json);
    const Finished finished = run("embed", options, {.output = folder_ / "out"});
    EXPECT_EQ(finished.code, 0) << finished.error;
    const bool counted = 3 * texts <= 65'536;  // words before the eighth token
    EXPECT_EQ(finished.error.find("words and more: 'w0', 'w1', 'w2'") == std::string::npos, counted) << finished.error;
    const std::string out = read("out");
    EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), texts) << "a line a text";
    EXPECT_EQ(json.empty() || nlohmann::json::accept(out), true);
    EXPECT_GT(finished.own_peak_bytes, 0);
    return finished.own_peak_bytes;
  };
  peak(10'000, "");
  // Lines, and a document that is printed whole: many would be 12 MB. All words that are counted are there both times.
  for (const char* const json : {"", "--json"}) {
    EXPECT_LT(peak(42'000, json), peak(22'000, json) + (std::int64_t{3} << 20)) << json;
  }
}

// Rows go into the file as they come: forty times as many leave only themselves behind.
TEST_F(ModelCommands, FULL_EmbeddingIntoAFileTakesNoMemory) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  constexpr std::int64_t kWidth = 1024;
  models::ModelOptions options;
  options.encoder = {.max_positions = 4, .width = kWidth, .heads = 8, .feed_forward_width = 8, .layers = 0};
  models::make_random(options, models::Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "it"}), 1).save(folder_ / "wide");
  const auto peak = [&](int texts) {
    std::string input;
    for (int n = 0; n < texts; ++n) input += "it\n";
    const Finished finished = run_program(
        {"embed", "--model", folder_ / "wide", "--input", "-", "-t", "1", "-o", folder_ / "e.npy"}, {.input = input});
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(std::filesystem::file_size(folder_ / "e.npy"), 128 + 4u * kWidth * static_cast<unsigned>(texts));
    EXPECT_GT(finished.own_peak_bytes, 0);
    return finished.own_peak_bytes;
  };
  constexpr int kFew = 200, kMany = 40 * kFew;
  EXPECT_LT(peak(kMany), peak(kFew) + 4 * kWidth * (kMany - kFew) / 4);
}

// What a vocabulary without the word leaves of the demonstration.
TEST_F(ModelCommands, DemoGoesOnWithoutItsWord) {
  models::ModelOptions options;
  options.encoder = {.max_positions = 16, .width = 24, .heads = 3, .layers = 1};
  models::make_random(options, models::Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello"}), 3)
      .save(folder_ / "model");
  const Finished text = run("demo", {});
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_NE(text.out.find("How close the sentences are"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("looks at most"), std::string::npos) << text.out;
  EXPECT_NE(
      text.error.find("headlight: warning: the model has no token 'it' in 'The animal didn't cross the street "
                      "because it was too tired.', so what it looks at is left out; a model of English has one\n"),
      std::string::npos)
      << text.error;
  EXPECT_FALSE(nlohmann::json::parse(run("demo", {"--json"}).out).contains("weights"));
}

TEST_F(ModelCommands, DemoShowsThreeThings) {
  const Finished text = run_program({"demo", "--seed", "18446744073709551615"});
  ASSERT_EQ(text.code, 0) << text.error;
  for (const char* words : {"mean nothing", "How close the sentences are", "GFLOP/s", "What \"it\" looks at most"}) {
    EXPECT_NE(text.out.find(words), std::string::npos) << words << " in " << text.out;
  }
  EXPECT_EQ(text.out.find('\033'), std::string::npos) << "colours without a terminal";

  const Finished json = run("demo", {"--json"});
  ASSERT_EQ(json.code, 0) << json.error;
  const nlohmann::json found = nlohmann::json::parse(json.out);
  EXPECT_EQ(found.at("layers").size(), 2u);
  EXPECT_EQ(found.at("tokens").at(found.at("from").get<std::size_t>()), "it");
  ASSERT_EQ(found.at("weights").size(), 2u);
  for (const nlohmann::json& heads : found.at("weights")) {
    ASSERT_EQ(heads.size(), 3u);
    for (const nlohmann::json& weights : heads) {
      double sum = 0;
      for (const nlohmann::json& weight : weights) sum += weight.get<double>();
      EXPECT_NEAR(sum, 1.0, 1e-5);
    }
  }
  const std::size_t count = found.at("sentences").size();
  for (std::size_t n = 0; n < count; ++n) EXPECT_NEAR(found.at("similarity")[n][n].get<double>(), 1.0, 1e-5);
}

}  // namespace headlight::test::model_test
