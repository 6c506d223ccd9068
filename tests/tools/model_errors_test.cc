// What headlight encode, embed and demo say of what is wrong, or may be meant otherwise.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/npy.h"
#include "tools/model_commands.h"

namespace headlight::test::model_errors_test {

using ModelErrors = ModelCommands;

TEST_F(ModelErrors, EmbedTellsWhatIsWrongWithAPipe) {
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

TEST_F(ModelErrors, WordsThatTheModelDoesNotKnowAreNamed) {
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

TEST_F(ModelErrors, TextsThatAreCutOrHoldNoWordsAreTold) {
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

TEST_F(ModelErrors, WrongUsage) {
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

TEST_F(ModelErrors, BadInputLeavesNoFile) {
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

TEST_F(ModelErrors, AFolderThatIsNoModelIsNamed) {
  for (const std::string subcommand : {"encode", "embed", "demo"}) {
    std::vector<std::string> more{subcommand, "--model", folder_ / "nowhere"};
    if (subcommand != "demo") more.insert(more.end(), {"--text", "a", "-o", folder_ / "o.npy"});
    expect_error(run_program(more), {"nowhere: is not there, expected a model's folder ", "; nothing is downloaded"});
    more[2] = folder_ / "model/model.safetensors";
    expect_error(run_program(more), {"model.safetensors: is a file, expected a model's folder ", " or a .gguf file"});
  }
  const auto fails = [&](const std::vector<std::string>& words) { expect_error(run("embed", {"--text", "a"}), words); };
  const std::string config = read("model/config.json");
  write("model/config.json", replaced(config, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2000000000"));
  fails({"config.json", "num_hidden_layers is 2000000000", "model.safetensors"});
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

}  // namespace headlight::test::model_errors_test
