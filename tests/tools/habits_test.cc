// What every subcommand keeps: exit codes, one line of error, standard output that may fail.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "headlight/models/text_encoder.h"
#include "models/golden_family.h"
#include "support/quick.h"
#include "support/sanitizer.h"
#include "tools/program.h"

namespace headlight::test::habits_test {

const std::vector<std::string> kSubcommands{"info",    "attend", "encode", "embed", "demo",    "beams",    "heads",
                                            "presets", "study",  "train",  "speed", "convert", "tokenize", "rerank"};

TEST(Habits, HelpShowsAnExample) {
  EXPECT_EQ(run_program({"--help"}).code, 0);
  for (const std::string& subcommand : kSubcommands) {
    // As it was called: by a path from the source's folder, or by a name that the shell has found.
    for (const std::string name : {"build/release/headlight", "headlight"}) {
      const Finished finished = run_program({subcommand, "--help"}, {.name = name});
      EXPECT_EQ(finished.code, 0) << finished.error;
      EXPECT_EQ(finished.error, "");
      EXPECT_NE(finished.out.find("\nExample:\n  " + name + " " + subcommand), std::string::npos) << finished.out;
      EXPECT_NE(finished.out.find("Usage: " + name + " " + subcommand), std::string::npos) << finished.out;
      EXPECT_TRUE(name != "headlight" || finished.out.find("build/") == std::string::npos) << finished.out;
      EXPECT_EQ(finished.out.find("-h,"), std::string::npos) << "only -o and -t are short: " << finished.out;
      EXPECT_EQ(run_program({"help", subcommand}, {.name = name}).out, finished.out);
      EXPECT_EQ(run_program({subcommand, "-h"}, {.name = name}).out, finished.out);
    }
  }
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"-h"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"study", "memory", "-h"}).out, run_program({"study", "memory", "--help"}).out);
  EXPECT_EQ(run_program({"help", "study", "memory"}).out, run_program({"study", "memory", "--help"}).out);
  expect_error(run_program({"help", "shine"}), {"'shine' is no subcommand, expected one of info, "}, 2);
}

// What has a default says it.
TEST(Habits, StudiesSayTheirDefaults) {
  for (const char* study : {"memory", "chunk", "depth", "heads", "merge", "diversity", "relations", "activations"}) {
    std::istringstream help(run_program({"study", study, "--help"}).out);
    int numbers = 0;
    for (std::string line; std::getline(help, line);) {
      for (const char* type : {" N ", " H ", " D ", " E ", " BYTES "}) {
        const std::size_t at = line.find(type);
        if (!line.starts_with("  -") || at == std::string::npos || at > 28) continue;
        EXPECT_NE(line.find("(default: "), std::string::npos) << study << ": " << line;
        ++numbers;
      }
    }
    EXPECT_GE(numbers, 3) << study;
  }
  const std::string relations = run_program({"study", "relations", "--help"}).out;
  EXPECT_NE(relations.find("1 to 12 (default: 1)"), std::string::npos) << relations;
}

TEST(Habits, AMistypedSubcommandOrOptionIsGuessed) {
  const Surroundings found{.name = "headlight"};
  expect_error(run_program({"stduy", "memory"}, found),
               {"'stduy' is no subcommand (did you mean study?); see headlight --help"}, 2);
  expect_error(run_program({"beam"}, found), {"(did you mean beams?)"}, 2);
  expect_error(run_program({"attend", "--casual", "top-left"}, found), {"'--casual'", "(did you mean --causal?)"}, 2);
  expect_error(run_program({"speed", "--thread=1"}, found), {"'--thread=1'", "(did you mean --threads?)"}, 2);
  expect_error(run_program({"study", "memroy", "--quick"}, found),
               {"'memroy' is no subcommand (did you mean memory?); see headlight study --help"}, 2);
  for (const char* far : {"dome", "illuminate", ""}) {
    const Finished finished = run_program({far});
    EXPECT_EQ(finished.code, 2);
    EXPECT_EQ(finished.error.find("mean"), std::string::npos) << finished.error;
  }
}

// A file that is read is not replaced by what is made of it, whatever it is called.
TEST(Habits, NoInputIsReplaced) {
  const ScratchFolder folder;
  const std::string file = folder / "x", link = folder / "link";
  std::ofstream(file) << "it\n";
  std::filesystem::create_symlink(file, link);
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& output,
                           const std::string& by) {
    expect_error(run_program(arguments), {output + " is '", "expected another file than that of " + by}, 2);
    EXPECT_EQ((std::ostringstream() << std::ifstream(file).rdbuf()).str(), "it\n");
  };
  refused({"heads", "--input", file, "--html", file}, "--html", "--input");
  refused({"heads", "--input", file, "--json", link}, "--json", "--input");
  refused({"embed", "--model", "m", "--input", link, "-o", folder / "./x"}, "--output", "--input");
  refused({"encode", "--model", "m", "--ids", file, "-o", file}, "--output", "--ids");
  refused({"encode", "--model", "m", "--ids", "i", "--attention-mask", file, "-o", file}, "--output",
          "--attention-mask");
  refused({"beams", "--words", "a", "--attention", file, "--format", "svg", "-o", file}, "--output", "--attention");
  refused({"study", "chunk", "--model", "m", "--input", file, "--svg", file}, "--svg", "--input");
  for (const char* input : {"--query", "--key", "--value", "--mask", "--bias", "--query-lengths", "--grad-out"}) {
    std::vector<std::string> all{"attend", "-o", file};
    for (const char* needed : {"--query", "--key", "--value"}) {
      if (needed != std::string(input)) all.insert(all.end(), {needed, "other"});
    }
    all.insert(all.end(), {input, file});
    refused(all, "--output", input);
  }
}

// Nothing opens a chart that is called a photograph.
TEST(Habits, APictureHasTheEndingOfItsFormat) {
  const ScratchFolder folder;
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words) {
    expect_error(run_program(arguments), {words}, 2);
  };
  for (const std::string ending : {".png", ".PNG", ".jpg", ".pdf", ".html", ".json"}) {
    refused({"study", "memory", "--svg", folder / ("x" + ending)},
            "expected a name that ends in .svg: what is written is an SVG picture");
  }
  refused({"study", "memory", "--json", folder / "x.svg"}, "a name that ends in .json: what is written is a JSON");
  refused({"heads", "--html", folder / "x.svg"}, "a name that ends in .html: what is written is a page in HTML");
  for (const std::string name : {"x.svg", "X.SVG", "x", "x.picture"}) {
    EXPECT_EQ(run_program({"study", "memory", "--svg", folder / name}).code, 0);
  }
}

TEST(Habits, AFolderThatIsNotThereIsNamed) {
  const ScratchFolder folder;
  const std::string none = folder / "none/", words = "cannot write: there is no folder " + none;
  expect_error(run_program({"study", "memory", "--svg", none + "x.svg"}), {words});
  expect_error(run_program({"beams", "--text", "it", "-o", none + "x.html"}), {words});
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
  std::vector<std::string> words{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "it"};
  if (is("tokenize")) {  // with the published ids that it decodes
    for (std::size_t id = words.size(); id <= 7592; ++id) words.push_back("[unused" + std::to_string(id) + "]");
    std::swap(words[2], words[101]);
    std::swap(words[3], words[102]);
    words[7592] = "hello";
  }
  models::make_random(options, models::Tokenizer(std::move(words)), 1).save(folder / "downloads/all-MiniLM-L6-v2");
  if (is("rerank")) {
    for (const GoldenFamily& family : golden_families()) {
      if (family.scores && family.name == "roberta") {
        static_cast<void>(family.write(folder / "downloads/ms-marco-MiniLM-L6-v2"));
      }
    }
  }
  std::filesystem::create_directories(folder / "build/release");
  std::filesystem::create_directories(folder / "docs");
  std::filesystem::create_symlink(program_path, folder / "build/release/headlight");
  std::filesystem::create_directory_symlink(HEADLIGHT_SOURCE "/tests", folder / "tests");
  std::filesystem::create_symlink(HEADLIGHT_SOURCE "/README.md", folder / "README.md");
  const std::string there = "cd '" + (folder / "") + "' && {\n" + command + "\n} >out 2>&1";
  EXPECT_EQ(std::system(there.c_str()), 0)  // NOLINT(concurrency-mt-unsafe)
      << there << '\n'
      << std::ifstream(folder / "out").rdbuf();
}

TEST(Habits, TheHelpsExampleWorksAsPasted) {
  for (const std::string& subcommand : kSubcommands) {
    const std::string help = run_program({subcommand, "--help"}, {.name = "build/release/headlight"}).out;
    const std::string example = help.substr(help.find("\n  build/release/headlight "));
    expect_runs(example.substr(3, example.find_last_not_of('\n') - 2));
  }
}

// Runs the program's commands that a page shows, one a line; a line that ends with \ goes on in the next. Returns how
// many there are.
int run_commands(const std::filesystem::path& page) {
  std::ifstream file(page);
  int commands = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("build/release/headlight ")) continue;
    for (std::string next; line.ends_with('\\') && std::getline(file, next);) line += '\n' + next;
    expect_runs(line);
    ++commands;
  }
  return commands;
}

TEST(Habits, TheDocumentsCommandsWorkAsPasted) {
  int commands = run_commands(HEADLIGHT_SOURCE "/README.md");
  for (const auto& page : std::filesystem::directory_iterator(HEADLIGHT_SOURCE "/docs")) {
    if (page.path().extension() == ".md") commands += run_commands(page.path());
  }
  EXPECT_GE(commands, 15);
}

TEST(Habits, TheVersionIsKnown) { EXPECT_EQ(run_program({"--version"}).out, "headlight 0.1.0\n"); }

TEST(Habits, WrongUsageIsExitCodeTwo) {
  const Surroundings found{.name = "headlight"};
  expect_error(run_program({}, found), {"a subcommand is missing, expected one of ", "info, ", "see headlight --help"},
               2);
  expect_error(run_program({"study"}, found),
               {"a subcommand is missing, expected one of ", "memory, ", "see headlight study --help"}, 2);
  expect_error(run_program({"encode", "--text", "a", "-o", "b.npy"}, found), {"--model", "see headlight encode --help"},
               2);
  expect_error(run_program({"shine"}, found),
               {"'shine' is no subcommand, expected one of info, ", "; see headlight --help"}, 2);
  expect_error(run_program({"study", "shine"}, found),
               {"'shine' is no subcommand, expected one of memory, ", "; see headlight study --help"}, 2);
  expect_error(run_program({"shine", "info"}, found),
               {"'shine' is no subcommand, expected one of info, ", "; see headlight --help"}, 2);
  expect_error(run_program({"info", "-x"}, found), {"'-x' was not expected; see headlight info --help"}, 2);
  expect_error(run_program({"info", "--threads"}, found), {"--threads lacks its value; see headlight info --help"}, 2);
  for (const std::string& subcommand : kSubcommands) {
    expect_error(run_program({subcommand, "--no-such-option"}, found),
                 {"'--no-such-option' was not expected; see headlight " + subcommand + " --help"}, 2);
  }
}

// Whatever is wrong with a value by itself is said in the same words before anything is done, and so is a number that
// the model does not have: exit code 2.
TEST(Habits, FULL_WrongValuesAreSaidInTheSameWords) {
  const ScratchFolder folder;
  const auto said = [&](std::vector<std::string> arguments, const std::string& message) {
    for (std::string& argument : arguments) {
      if (argument == "x.html") argument = folder / "x.html";
    }
    const Finished finished = run_program(arguments);
    EXPECT_EQ(finished.code, 2) << finished.error;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(finished.error, "headlight: error: " + message + "\n");
  };
  for (const std::string& subcommand : kSubcommands) {
    if (subcommand == "presets" || subcommand == "convert" || subcommand == "tokenize") continue;  // compute nothing
    if (subcommand == "study") continue;  // its subcommands have
    for (const char* threads : {"0", "-1", "4097", "1.5", "99999999999999999999"}) {
      said({subcommand, "--threads", threads}, std::string("--threads is ") + threads + ", expected 1 to 4096");
    }
    said({subcommand, "-t", "two"}, "--threads is 'two', expected 1 to 4096");
    said({subcommand, "--threads", "0x4"}, "--threads is '0x4', expected 1 to 4096");
    said({subcommand, "--threads", ""}, "--threads is empty, expected 1 to 4096");
    said({subcommand, "-t", "1", "--threads", "2"}, "--threads is given 2 times, expected once");
    said({subcommand, "--isa", "mmx"}, "--isa is 'mmx', expected scalar, sse4, avx2, avx512 or neon");
  }
  const std::vector<std::string> beams{"beams", "--text", "it", "-o", "x.html"}, heads{"heads", "--text", "it"};
  const struct {
    std::vector<std::string> arguments;
    std::string option, value, expected;
  } table[] = {
      {{"info"}, "--json", "maybe", "'maybe', expected no value"},
      {{"presets"}, "--length", "0", "0, expected 1 to 1073741824"},
      {{"demo"}, "--seed", "-1", "-1, expected 0 to 18446744073709551615"},
      {{"heads"}, "--seed", "18446744073709551616", "18446744073709551616, expected 0 to 18446744073709551615"},
      {{"attend"}, "--scale", "wide", "'wide', expected a finite number that float32 holds"},
      {{"attend"}, "--scale", "inf", "'inf', expected a finite number that float32 holds"},
      {{"attend"}, "--scale", "1e39", "1e39, expected a finite number that float32 holds"},
      {{"attend"}, "--dropout", "1", "1, expected a number from 0 to less than 1"},
      {{"attend"}, "--window", "3", "3, expected LEFT,RIGHT: two whole numbers, each at least -1"},
      {{"attend"}, "--causal", "left", "'left', expected top-left or bottom-right"},
      {{"attend"}, "--seed", "1e3", "1e3, expected 0 to 18446744073709551615"},
      {{"attend"},
       "--window",
       "99999999999999999999,0",
       "'99999999999999999999,0', expected LEFT,RIGHT: two whole numbers, each at most 9223372036854775807"},
      {{"attend"}, "--chunk", "9223372036854775808", "9223372036854775808, expected at most 9223372036854775807"},
      {{"attend"},
       "--query-start",
       "99999999999999999999",
       "99999999999999999999, expected 0 to 2^60, or the name of a file"},
      {{"attend"},
       "--key-start",
       "-99999999999999999999",
       "-99999999999999999999, expected 0 to 2^60, or the name of a file"},
      {beams, "--heads", "0,99999999999999999999",
       "'0,99999999999999999999', expected numbers from 0 on such as 0,3,7, each at most 9223372036854775807"},
      {heads, "--mask", "0.99999999999999999999",
       "0.99999999999999999999, expected heads as LAYER.HEAD, such as 3.2,3.7, each at most 9223372036854775807"},
      {{"train"}, "--steps", "99999999999999999999", "99999999999999999999, expected at most 9223372036854775807"},
      {{"train"}, "--steps", "-99999999999999999999", "-99999999999999999999, expected a whole number, at least 1"},
      {{"train"}, "--steps", "0", "0, expected a whole number, at least 1"},
      {{"attend"}, "--chunk", "0", "0, expected a whole number, at least 1"},
      {{"train"}, "--learning-rate", "-1", "-1, expected a number from 0 to 1e+300"},
      {{"train"}, "--learning-rate", "nan", "'nan', expected a number from 0 to 1e+300"},
      {{"study", "depth"}, "--seed", "x", "'x', expected 0 to 18446744073709551615"},
      {{"study", "relations"}, "--width", "33", "33, expected 8, 16, 32, 64 or 128"},
      {{"study", "memory"}, "--heads", "1025", "1025, expected 1 to 1024"},
      {{"study", "memory"}, "--budget", "1GB", "'1GB', expected 1MiB to 64TiB, such as 1GiB or 300MiB"},
      {beams, "--layer", "-1", "-1, expected a whole number, at least 0"},
      {beams, "--top", "0", "0, expected a whole number, at least 1"},
      {beams, "--heads", "0,x", "'0,x', expected numbers from 0 on such as 0,3,7"},
      {beams, "--format", "png", "'png', expected html or svg"},
      {heads, "--mask", "one", "'one', expected heads as LAYER.HEAD, such as 3.2,3.7"},
  };
  for (const auto& [arguments, option, value, expected] : table) {
    std::vector<std::string> all = arguments;
    all.push_back(option + "=" + value);
    said(all, option + " is " + expected);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{});

  const auto refused = [&](std::vector<std::string> arguments, const std::string& option, const std::string& value,
                           const std::string& message) {
    arguments.insert(arguments.end(), {option, value});
    said(arguments, message);
  };
  refused(beams, "--heads", "7", "--heads is 7, expected heads of the model, 0 to 3");
  refused(beams, "--layer", "2", "--layer is 2, expected 0 to 1");
  refused(heads, "--mask", "0.7", "--mask is 0.7, expected layers 0 to 1 with heads 0 to 3");
}

// As help says: "--text TEXT", again and again.
TEST(Habits, ListsTakeOneValueEachTime) {
  for (const char* subcommand : {"embed", "heads"}) {
    expect_error(run_program({subcommand, "--text", "one", "two", "--model", "x"}),
                 {"'two' was not expected, for options begin with --; see"}, 2);
    const std::string help = run_program({subcommand, "--help"}).out;
    EXPECT_NE(help.find("--text TEXT  "), std::string::npos) << help;
  }
  expect_error(run_program({"heads", "--mask", "0.0", "0.1"}), {"'0.1' was not expected"}, 2);
  EXPECT_EQ(run_program({"heads", "--text", "the robot", "--text", "it", "--mask", "0.0,0.1", "--mask", "1.0"}).code,
            0);
}

TEST(Habits, ErrorsHoldNoControlCharacters) {
  const Finished finished = run_program({"info", "--isa", "\x1b[31m\nred\r\t\x7f"});
  expect_error(finished, {"[31m", "red"}, 2);
  EXPECT_EQ(finished.error.find_first_of("\x1b\r\t\x7f"), std::string::npos);
}

TEST(Habits, StandardOutputThatFailsIsAnError) {
  expect_error(run_program({"info"}, {.output = "/dev/full"}), {"standard output", "No space left"});
  expect_error(run_program({"info", "--json"}, {.output = "closed"}), {"standard output"});
  expect_error(run_program({"--help"}, {.output = "/dev/full"}), {"standard output"});
}

// In steps of 4 KiB over what the loader takes, as memory ends while globals are made, options are added, threads
// start.
TEST(Habits, FULL_MemoryThatEndsEarlyIsAnError) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's own memory is address space too";
  constexpr std::size_t kPage = 4096;
  const auto with = [&](std::size_t pages) { return run_program({"info", "-t", "1"}, {.memory = pages * kPage}); };
  const auto is_loaded = [](const Finished& finished) {
    return finished.code == 0 || finished.error.starts_with("headlight: ");
  };
  std::size_t few = 0, enough = (std::size_t{256} << 20) / kPage;
  ASSERT_TRUE(is_loaded(with(enough)));
  while (enough - few > 1) {
    const std::size_t pages = (few + enough) / 2;
    (is_loaded(with(pages)) ? enough : few) = pages;
  }
  // Below that, the loader itself says so: all but the last pages below, where glibc 2.41 writes to what it did not
  // get.
  std::size_t said = few;
  while (said + 8 > few && with(said).code == -1) --said;
  EXPECT_EQ(with(said).code, 127) << "the program ended by a signal: " << with(said).error;
  expect_error(with(enough), {"out of memory"});
  for (std::size_t pages = enough; pages < enough + 200; ++pages) {
    const Finished finished = with(pages);
    if (finished.code != 0) expect_error(finished, {});
  }
}

// As of `headlight … | head -1`. What was to be written besides is there.
TEST(Habits, AReaderThatGoesAwayIsNoError) {
  const ScratchFolder folder;
  const std::string json = folder / "x.json";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"info"}, {"--help"}, {"study", "memory", "--svg", "-", "--json", json}}) {
    const Finished finished = run_program(arguments, {.output = "broken"});
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.error, "");
  }
  EXPECT_TRUE(std::filesystem::exists(json));
}

// The same for a file whose name is standard output, or another pipe.
TEST(Habits, AReaderOfAFileThatGoesAwayIsNoError) {
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    SCOPED_TRACE(name);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"study", "memory", "--svg", name}, {"beams", "--text", "it", "-o", name}}) {
      const Finished finished = run_program(arguments, {.output = "broken"});
      EXPECT_EQ(finished.code, 0);
      EXPECT_EQ(finished.error, "");
    }
  }
}

}  // namespace headlight::test::habits_test
