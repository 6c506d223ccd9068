// headlight encode, embed, convert and demo on a small random model that the test writes itself.
#include <gtest/gtest.h>
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

#include "headlight/models/encoder.h"
#include "headlight/models/npy.h"
#include "support/sanitizer.h"
#include "tools/expect_npy.h"
#include "tools/program.h"

namespace headlight::test::model_test {

class ModelCommands : public testing::Test {
 protected:
  ModelCommands() : model_(make()) { model_.save(folder_ / "model"); }

  static models::Encoder make() {
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
  models::Encoder model_;
};

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
  const models::Encoder narrow = models::load(folder_ / "model", {.precision = NumberType::bfloat16});
  ASSERT_EQ(run("encode", {"--text", kTexts[0], "--precision", "bfloat16", "-o", folder_ / "h.npy"}).code, 0);
  expect_array("h.npy", narrow.encode(engine_, std::span(kTexts).first(1)).hidden);
  ASSERT_EQ(run("embed", {"--text", kTexts[0], "--precision", "bfloat16", "-o", folder_ / "e.npy"}).code, 0);
  expect_array("e.npy", narrow.embed(engine_, std::span(kTexts).first(1)));
  ASSERT_EQ(run("embed", {"--text", kTexts[0], "--precision", "float32", "-o", folder_ / "e.npy"}).code, 0);
  expect_array("e.npy", model_.embed(engine_, std::span(kTexts).first(1)));
  for (const std::string subcommand : {"encode", "embed"}) {
    expect_error(run(subcommand, {"--text", "a", "--precision", "float64", "-o", folder_ / "x.npy"}),
                 {"--precision is 'float64', expected float32", "bfloat16"}, 2);
  }
}

TEST_F(ModelCommands, ConvertWritesTheModelInAnotherType) {
  for (const char* type : {"float32", "bfloat16", "float16", "int8", "int4"}) {
    SCOPED_TRACE(type);
    const Finished finished = run("convert", {"--type", type, "-o", folder_ / "small", "--overwrite"});
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_TRUE(finished.out.starts_with((folder_ / "small") + ": the model in " + type + ", its weights "))
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
               {"none/config.json"});
  expect_error(run("convert", {"--type", "int8", "-o", "/dev/null/x"}), {"/dev/null/x"});
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

TEST_F(ModelCommands, EmbedTellsWhatIsWrongWithAPipe) {
  const std::string lines = folder_ / "lines";
  ASSERT_EQ(::mkfifo(lines.c_str(), 0600), 0);
  const auto embed = [&](const std::string& input) {
    std::future<Finished> finished = std::async(std::launch::async, [&] { return run("embed", {"--input", lines}); });
    std::ofstream(lines) << input << std::flush;
    return finished.get();
  };
  const Finished bad = embed("it\n\xc0\x80\nit\n");
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.error.find("line 2 is not UTF-8"), std::string::npos) << bad.error;
  EXPECT_EQ(std::count(bad.out.begin(), bad.out.end(), '\n'), 1) << "the line before it is answered: " << bad.out;
  expect_error(embed(""), {"lines", "is empty"});
  const Finished many = embed([] {
    std::string input;
    for (int n = 0; n < 20000; ++n) input += "it it\n";
    return input;
  }());
  EXPECT_EQ(many.code, 0) << many.error;
  EXPECT_EQ(std::count(many.out.begin(), many.out.end(), '\n'), 20000) << "more than one read, and than one block";
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

TEST_F(ModelCommands, WordsThatTheModelDoesNotKnowAreNamed) {
  const std::string known = "Hello, world.";
  for (const std::string subcommand : {"encode", "embed"}) {
    const auto said = [&](const std::string& text) {
      return run(subcommand, {"--text", text, "--text", known, "-o", folder_ / "o.npy"}).error;
    };
    EXPECT_EQ(said(known), "");
    EXPECT_EQ(said("Hello, Marvin"), "headlight: warning: the model does not know 1 word: 'Marvin'\n");
    EXPECT_EQ(said("b c c"), "headlight: warning: the model does not know 2 words: 'b', 'c'\n");
    EXPECT_EQ(said("b c d e f f"), "headlight: warning: the model does not know 5 words: 'b', 'c', 'd', 'e', 'f'\n");
    EXPECT_EQ(said("b c d e f g"), "headlight: warning: the model does not know 6 words: 'b', 'c', 'd', 'e', 'f', …\n");
  }
  const Finished demo = run("demo", {});
  EXPECT_EQ(demo.code, 0);
  EXPECT_TRUE(demo.error.starts_with("headlight: warning: the model does not know ")) << demo.error;
  EXPECT_NE(demo.error.find("'man'"), std::string::npos) << demo.error;
  EXPECT_EQ(run_program({"demo"}).error, "") << "the random network knows its own words";
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

TEST_F(ModelCommands, TextsThatAreCutOrHoldNoWordsAreTold) {
  const std::vector<std::pair<std::string, int>> longest = {{"encode", 16}, {"embed", 8}};
  for (const auto& [subcommand, tokens] : longest) {
    std::string fits = "Hello";  // with [CLS] and [SEP] as many tokens as go in
    for (int word = 3; word < tokens; ++word) fits += " world";
    const auto said = [&, name = subcommand](const std::vector<std::string>& texts) {
      std::vector<std::string> all{"-o", folder_ / "o.npy"};
      for (const std::string& text : texts) all.insert(all.end(), {"--text", text});
      return run(name, all).error;
    };
    EXPECT_EQ(said({fits}), "");
    EXPECT_EQ(said({fits, fits + " world"}), "headlight: warning: 1 text has more than the " +
                                                 std::to_string(tokens - 2) +
                                                 " tokens that the model takes; the rest is left out\n");
    EXPECT_EQ(said({fits, "", " "}), "headlight: warning: 2 texts hold no word: their numbers mean nothing\n");
    EXPECT_EQ(said({""}), "headlight: warning: 1 text holds no word: its numbers mean nothing\n");
    EXPECT_EQ(models::read_npy<float>(folder_ / "o.npy").shape.front(), 1);
    const Finished lines = run(subcommand, {"--input", "-", "-o", folder_ / "o.npy"}, {.input = "\n" + fits + "\n \n"});
    EXPECT_EQ(lines.error, "headlight: warning: 2 texts hold no word: their numbers mean nothing\n");
  }
}

TEST_F(ModelCommands, WrongUsage) {
  expect_error(run_program({"embed", "--text", "a"}), {"--model"}, 2);
  expect_error(run("embed", {}), {"--text", "--input", "--ids"}, 2);
  expect_error(run("embed", {"--text", "a", "--input", "-"}), {"exactly one"}, 2);
  expect_error(run("embed", {"--text", "a", "--attention-mask", "m.npy"}), {"--attention-mask"}, 2);
  expect_error(run("encode", {"--text", "a"}), {"--output is required"}, 2);
  expect_error(run("embed", {"--text", "a", "--json", "-o", "/dev/stdout"}), {"--json", "--output", "one of them"}, 2);
  expect_error(run("demo", {"--seed", "-1"}), {"--seed"}, 2);
  expect_error(run("demo", {"--seed", "18446744073709551616"}), {"--seed", "18446744073709551615"}, 2);
  for (const char* option : {"--input", "--ids", "--attention-mask", "-o"}) {
    expect_error(run("embed", {"--text", "a", option, ""}), {option, "is empty, expected a name"}, 2);
  }
  expect_error(run_program({"embed", "--model", "", "--text", "a"}), {"--model", "is empty"}, 2);
}

TEST_F(ModelCommands, BadInputLeavesNoFile) {
  const std::string out = folder_ / "o.npy";
  for (const std::string subcommand : {"encode", "embed"}) {
    expect_error(run(subcommand, {"--text", "a\xff", "-o", out}), {"--text number 1", "UTF-8"});
    expect_error(run(subcommand, {"--input", "-", "-o", out}, {.input = "a\n\xc0\x80\n"}),
                 {"standard input: line 2", "UTF-8"});
    expect_error(run(subcommand, {"--input", "-", "-o", out}), {"standard input", "empty"});
    expect_error(run(subcommand, {"--input", folder_ / "absent", "-o", out}), {"absent", "No such file"});
    expect_error(run(subcommand, {"--input", folder_ / "model", "-o", out}), {"model", "directory"});
    models::write_npy(folder_ / "ids.npy", std::vector<std::int64_t>{1, 2},
                      std::span<const std::int64_t>(std::vector<std::int64_t>{2, 9}));
    expect_error(run(subcommand, {"--ids", folder_ / "ids.npy", "-o", out}), {"9"});
    models::write_npy(folder_ / "ids.npy", std::vector<std::int64_t>{2},
                      std::span<const std::int64_t>(std::vector<std::int64_t>{2, 3}));
    expect_error(run(subcommand, {"--ids", folder_ / "ids.npy", "-o", out}), {"ids.npy", "[2]", "[B, L]"});
    EXPECT_EQ(folder_.names(), (std::vector<std::string>{"ids.npy", "model"}));
    expect_error(run(subcommand, {"--text", "a", "-o", "/dev/full"}), {"/dev/full", "No space left"});
    expect_error(run(subcommand, {"--text", "a", "-o", folder_ / "no/o.npy"}), {"o.npy"});
    expect_error(run(subcommand, {"--text", "a", "-o", out}, {.file_size = 100}), {"o.npy", "File too large"});
    models::write_npy(folder_ / "ids.npy", std::vector<std::int64_t>{std::int64_t{1} << 59, 0},
                      std::span<const std::int64_t>());
    // Rows without tokens have no hidden states, but a shape that no file holds; and each has a vector.
    expect_error(run(subcommand, {"--ids", folder_ / "ids.npy", "-o", out}),
                 {subcommand == "encode" ? "less than 2⁶³ bytes" : "out of memory"});
    EXPECT_EQ(folder_.names(), (std::vector<std::string>{"ids.npy", "model"}));
  }
  expect_error(run("embed", {"--text", "a"}, {.output = "/dev/full"}), {"standard output"});
}

TEST_F(ModelCommands, AFolderThatIsNoModelIsNamed) {
  for (const std::string subcommand : {"encode", "embed", "demo"}) {
    std::vector<std::string> more{subcommand, "--model", folder_ / "nowhere"};
    if (subcommand != "demo") more.insert(more.end(), {"--text", "a", "-o", folder_ / "o.npy"});
    expect_error(run_program(more), {"nowhere"});
  }
  const auto fails = [&](const std::vector<std::string>& words) { expect_error(run("embed", {"--text", "a"}), words); };
  const std::string config = read("model/config.json");
  write("model/config.json", replaced(config, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2000000000"));
  fails({"model.safetensors", "encoder.layer.2.", "config.json"});
  write("model/config.json", replaced(config, "\"num_attention_heads\": 3", "\"num_attention_heads\": 5"));
  fails({"config.json", "num_attention_heads is 5", "24"});
  write("model/config.json", replaced(config, "\"hidden_size\": 24", "\"hidden_size\": 1000000000000000000"));
  fails({"config.json", "hidden_size is 1000000000000000000"});
  write("model/config.json", config);
  const std::string vocabulary = read("model/vocab.txt");
  write("model/vocab.txt", replaced(vocabulary, "[CLS]", "[CLX]"));
  fails({"vocab.txt", "[CLS]"});
  write("model/vocab.txt", vocabulary);
  EXPECT_EQ(run("embed", {"--text", "a"}).code, 0);
  std::filesystem::resize_file(folder_ / "model/model.safetensors", 100);
  fails({"model.safetensors"});
}

// Rows go into the file as they come: forty times as many leave only themselves behind.
TEST_F(ModelCommands, EmbeddingIntoAFileTakesNoMemory) {
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
    return finished.peak_bytes;
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
