// What every subcommand keeps: exit codes, one line of error, standard output that may fail.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "headlight/models/encoder.h"
#include "support/quick.h"
#include "tools/program.h"

namespace headlight::test {
namespace {

const std::vector<std::string> kSubcommands{"info",  "attend",  "encode", "embed", "demo", "beams",
                                            "heads", "presets", "study",  "train", "speed"};

TEST(Habits, HelpShowsAnExample) {
  EXPECT_EQ(run_program({"--help"}).code, 0);
  for (const std::string& subcommand : kSubcommands) {
    const Finished finished = run_program({subcommand, "--help"});
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_EQ(finished.error, "");
    EXPECT_NE(finished.out.find("\n  build/release/headlight " + subcommand), std::string::npos) << finished.out;
    EXPECT_EQ(finished.out.find("-h,"), std::string::npos) << "only -o and -t are short: " << finished.out;
  }
}

// Runs a command as pasted at the project's top, but in a folder where the project only seems to lie, so that what the
// command writes goes away with it. A small random model stands where tools/run puts the published one. The commands
// that train, measure or go over hundreds of texts are left to builds that are fast: minutes under a sanitizer, and
// tested there in small.
void expect_runs(const std::string& command) {
  const auto is = [&](const char* subcommand) {
    return command.find(std::string("/headlight ") + subcommand) != std::string::npos;
  };
  if (quick() && (is("train") || is("speed") || is("heads") || is("study"))) return;
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "downloads");
  models::ModelOptions options;
  options.encoder = {.max_positions = 16, .width = 8, .heads = 2, .layers = 1};
  models::make_random(options, models::Tokenizer({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "it"}), 1)
      .save(folder / "downloads/all-MiniLM-L6-v2");
  std::filesystem::create_directories(folder / "build/release");
  std::filesystem::create_directories(folder / "docs");
  std::filesystem::create_symlink(HEADLIGHT_PROGRAM, folder / "build/release/headlight");
  std::filesystem::create_directory_symlink(HEADLIGHT_SOURCE "/tests", folder / "tests");
  std::filesystem::create_symlink(HEADLIGHT_SOURCE "/README.md", folder / "README.md");
  const std::string there = "cd '" + (folder / "") + "' && {\n" + command + "\n} >out 2>&1";
  EXPECT_EQ(std::system(there.c_str()), 0)  // NOLINT(concurrency-mt-unsafe)
      << there << '\n'
      << std::ifstream(folder / "out").rdbuf();
}

TEST(Habits, TheHelpsExampleWorksAsPasted) {
  for (const std::string& subcommand : kSubcommands) {
    const std::string help = run_program({subcommand, "--help"}).out;
    const std::string example = help.substr(help.find("\n  build/release/headlight "));
    expect_runs(example.substr(3, example.find_last_not_of('\n') - 2));
  }
}

TEST(Habits, TheReadmesCommandsWorkAsPasted) {
  std::ifstream readme(HEADLIGHT_SOURCE "/README.md");
  int commands = 0;
  for (std::string line; std::getline(readme, line);) {
    if (!line.starts_with("build/release/headlight ")) continue;
    expect_runs(line);
    ++commands;
  }
  EXPECT_GE(commands, 5);
}

TEST(Habits, TheVersionIsKnown) { EXPECT_EQ(run_program({"--version"}).out, "headlight 0.1.0\n"); }

TEST(Habits, WrongUsageIsExitCodeTwo) {
  expect_error(run_program({}), {"subcommand", "see headlight --help"}, 2);
  expect_error(run_program({"encode", "--text", "a", "-o", "b.npy"}), {"--model", "see headlight encode --help"}, 2);
  expect_error(run_program({"shine"}), {"shine", "headlight --help"}, 2);
  expect_error(run_program({"study", "shine"}), {"shine", "headlight study --help"}, 2);
  for (const std::string& subcommand : kSubcommands) {
    expect_error(run_program({subcommand, "--no-such-option"}), {"--no-such-option"}, 2);
    for (const char* threads : {"0", "-1", "4097", "two", "1.5", ""}) {
      expect_error(run_program({subcommand, "--threads", threads}), {"--threads"}, 2);
    }
  }
}

TEST(Habits, ErrorsHoldNoControlCharacters) {
  const Finished finished = run_program({"info", "--isa", "\x1b[31m\nred\r\t\x7f"});
  expect_error(finished, {"[31m", "red"}, 2);
  EXPECT_EQ(finished.error.find_first_of("\x1b\r\t\x7f"), std::string::npos);
}

TEST(Habits, StandardOutputThatFailsIsAnError) {
  expect_error(run_program({"info"}, {.output = "/dev/full"}), {"standard output", "No space left"});
  expect_error(run_program({"info", "--json"}, {.output = "closed"}), {"standard output"});
  expect_error(run_program({"info"}, {.output = "broken"}), {"standard output", "Broken pipe"});
  expect_error(run_program({"--help"}, {.output = "/dev/full"}), {"standard output"});
}

}  // namespace
}  // namespace headlight::test
