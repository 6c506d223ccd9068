// headlight train from outside: runs that are stopped and go on, and what it refuses.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "headlight/layers/multi_head_attention.h"
#include "headlight/models/safetensors.h"
#include "tools/program.h"

namespace headlight::test::train_test {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return (std::ostringstream() << file.rdbuf()).str();
}

// Whether a process handles that signal, from proc(5).
bool catches(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (word != "SigCgt:") continue;
    std::uint64_t mask = 0;
    status >> std::hex >> mask;
    return (mask >> (signal - 1) & 1) != 0;
  }
  return false;
}

class Train : public testing::Test {
 protected:
  [[nodiscard]] Finished train(const std::string& out, std::vector<std::string> more,
                               const Surroundings& surroundings = {}) const {
    more.insert(more.begin(), {"train", "-o", folder_ / out});
    return run_program(more, surroundings);
  }
  [[nodiscard]] std::string checkpoint(const std::string& out) const {
    return folder_ / (out + "/checkpoint.safetensors");
  }
  [[nodiscard]] std::string weights(const std::string& out) const {
    return bytes_of(folder_ / (out + "/model.safetensors"));
  }
  // Stopped after two of six steps.
  void make_stopped(const std::string& out, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--steps", "6", "--stop-at", "2"});
    const Finished finished = train(out, more);
    ASSERT_EQ(finished.code, 0) << finished.error;
    ASSERT_NE(finished.out.find("stopped after 2 of 6 steps"), std::string::npos) << finished.out;
    ASSERT_TRUE(std::filesystem::exists(checkpoint(out)));
  }

  ScratchFolder folder_;
};

TEST_F(Train, AFullDiskLeavesNoFolder) {
  expect_error(train("x", {"--steps", "1"}, {.file_size = 1000}), {"x/checkpoint.safetensors"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  // One that was there stays.
  std::filesystem::create_directory(folder_ / "x");
  expect_error(train("x", {"--steps", "1"}, {.file_size = 1000}), {"x/checkpoint.safetensors"});
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "x"));
}

TEST_F(Train, WritesAModelAndSaysHowGoodItIs) {
  const Finished finished = train("m", {"--steps", "3"});
  EXPECT_EQ(finished.code, 0) << finished.error;
  EXPECT_EQ(finished.error, "");
  for (const char* word :
       {"3 steps\n", "coreference  it: what it stands for", "neighbour    a word: the one before", "%", "layer",
        "--resume with more --steps trains on; 2,000 steps are usual", "learning rate then follows the new total"}) {
    EXPECT_NE(finished.out.find(word), std::string::npos) << finished.out;
  }
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "m")) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"checkpoint.safetensors", "config.json", "model.safetensors",
                                          "sentence_bert_config.json", "tokenizer_config.json", "vocab.txt"}));
  const models::SafetensorsFile file(folder_ / "m/model.safetensors");
  EXPECT_EQ(file.metadata().at("command"), "headlight train --steps 3 --seed 1");
  const Finished beams = run_program({"beams", "--model", folder_ / "m", "--text", "它很轻", "-o", folder_ / "b.svg"});
  EXPECT_EQ(beams.code, 0) << beams.error;
}

TEST_F(Train, HelpNamesEveryMerge) {
  const Finished help = run_program({"train", "--help"});
  for (auto merge = Merge::concatenate; merge <= Merge::gated_by_element;
       merge = static_cast<Merge>(static_cast<int>(merge) + 1)) {
    EXPECT_NE(help.out.find(name(merge)), std::string::npos) << name(merge) << " is not in\n" << help.out;
  }
}

// A run of six steps, a run stopped twice on other numbers of threads, another seed.
TEST_F(Train, FULL_GoesOnToTheSameBits) {
  ASSERT_EQ(train("whole", {"--steps", "6", "-t", "1"}).code, 0);
  make_stopped("parts");
  ASSERT_EQ(train("parts", {"--resume", "--stop-at", "5", "-t", "2"}).code, 0);
  const Finished last = train("parts", {"--resume", "-t", "3"});
  ASSERT_EQ(last.code, 0) << last.error;
  EXPECT_EQ(weights("whole"), weights("parts"));
  EXPECT_EQ(bytes_of(checkpoint("whole")), bytes_of(checkpoint("parts")));
  ASSERT_EQ(train("other", {"--steps", "6", "--seed", "2"}).code, 0);
  EXPECT_NE(weights("whole"), weights("other"));
}

// So does one with activations of bfloat16, whose weights are others; and its type is a part of the run.
TEST_F(Train, FULL_GoesOnWithItsActivations) {
  ASSERT_EQ(train("whole", {"--steps", "6", "--activations", "bfloat16"}).code, 0);
  make_stopped("parts", {"--activations", "bfloat16"});
  expect_error(train("parts", {"--resume", "--activations", "float32"}), {"--activations differs"}, 2);
  ASSERT_EQ(train("parts", {"--resume", "-t", "2"}).code, 0);
  EXPECT_EQ(weights("whole"), weights("parts"));
  EXPECT_NE(bytes_of(folder_ / "whole/model.safetensors").find("--activations bfloat16"), std::string::npos);
  ASSERT_EQ(train("floats", {"--steps", "6"}).code, 0);
  EXPECT_NE(weights("whole"), weights("floats"));
}

// Earlier versions computed a batch at once, and their runs go on so.
TEST_F(Train, FULL_ARunOfAnEarlierVersionHasOneShard) {
  make_stopped("m", {"--shards", "4"});
  std::string bytes = bytes_of(checkpoint("m"));
  bytes.replace(bytes.find("training checkpoint 3"), 21, "training checkpoint 2");
  std::filesystem::create_directory(folder_ / "earlier");
  std::ofstream(checkpoint("earlier"), std::ios::binary) << bytes;
  ASSERT_EQ(train("earlier", {"--resume", "--stop-at", "4"}).code, 0);
  EXPECT_NE(bytes_of(checkpoint("earlier")).find("\\\"shards\\\":1,"), std::string::npos);
  ASSERT_EQ(train("earlier", {"--resume"}).code, 0);
  ASSERT_EQ(train("m", {"--resume"}).code, 0);
  EXPECT_NE(weights("earlier"), weights("m"));
}

// What a lengthened run gives depends on its two totals alone: not on threads, nor on where it was stopped.
TEST_F(Train, FULL_AnEndedRunIsLengthenedToTheSameBits) {
  ASSERT_EQ(train("ended", {"--steps", "4"}).code, 0);
  for (const char* name : {"one", "three", "parts"}) {
    std::filesystem::copy(folder_ / "ended", folder_ / name, std::filesystem::copy_options::recursive);
  }
  const Finished one = train("one", {"--resume", "--steps", "9", "-t", "1"});
  ASSERT_EQ(one.code, 0) << one.error;
  EXPECT_NE(one.out.find("9 steps\n"), std::string::npos) << one.out;
  ASSERT_EQ(train("three", {"--resume", "--steps", "9", "-t", "3"}).code, 0);
  // Stopped at once, the run has its new total already.
  ASSERT_EQ(train("parts", {"--resume", "--steps", "9", "--stop-at", "4"}).code, 0);
  EXPECT_EQ(weights("parts"), weights("ended"));
  expect_error(train("parts", {"--steps", "9"}), {"checkpoint.safetensors", "is a run that was stopped"});
  ASSERT_EQ(train("parts", {"--resume", "--stop-at", "7"}).code, 0);
  ASSERT_EQ(train("parts", {"--resume"}).code, 0);
  EXPECT_NE(weights("one"), weights("ended"));
  EXPECT_EQ(weights("one"), weights("three"));
  EXPECT_EQ(weights("one"), weights("parts"));
  EXPECT_EQ(models::SafetensorsFile(folder_ / "one/model.safetensors").metadata().at("command"),
            "headlight train --steps 4 --seed 1 && headlight train --resume --steps 9");
  // The rate of its first four steps followed another total.
  ASSERT_EQ(train("whole", {"--steps", "9"}).code, 0);
  EXPECT_NE(weights("one"), weights("whole"));
  // And once more.
  ASSERT_EQ(train("one", {"--resume", "--steps", "10"}).code, 0);
  EXPECT_NE(weights("one"), weights("three"));
}

TEST_F(Train, AnEndedRunIsNotMadeShorter) {
  ASSERT_EQ(train("m", {"--steps", "3"}).code, 0);
  const std::string model = weights("m"), state = bytes_of(checkpoint("m"));
  const std::string expected = ", expected more than the 3 after which the run to resume has ended";
  expect_error(train("m", {"--resume", "--steps", "2"}), {"--steps is 2" + expected}, 2);
  expect_error(train("m", {"--resume", "--steps", "3"}), {"--steps is 3" + expected}, 2);
  expect_error(train("m", {"--resume"}), {"--steps is not given" + expected}, 2);
  expect_error(train("m", {"--resume", "--steps", "5", "--seed", "2"}), {"--seed differs"}, 2);
  EXPECT_EQ(weights("m"), model);
  EXPECT_EQ(bytes_of(checkpoint("m")), state);
}

TEST_F(Train, StopsCleanlyOnASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    SCOPED_TRACE(signal);
    const std::string name = "m" + std::to_string(signal);
    const std::string out = folder_ / name, log = folder_ / "log";
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(signal, SIG_DFL);  // a test run in the background may have been told to ignore SIGINT
      if (std::freopen(log.c_str(), "w", stdout) == nullptr) ::_exit(126);
      ::execl(program_path, program_path, "train", "-o", out.c_str(), "--steps", "1000000", nullptr);
      ::_exit(127);
    }
    // A signal before the program listens would just end it.
    while (!catches(child, signal)) ::usleep(1000);
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_NE(bytes_of(log).find("--resume goes on"), std::string::npos) << bytes_of(log);
    EXPECT_TRUE(std::filesystem::exists(checkpoint(name)));
  }
}

// A name that was taken loses nobody's model; what is asked for by --overwrite is begun anew, whatever lies there.
TEST_F(Train, FULL_AModelIsReplacedOnlyWhenAskedFor) {
  ASSERT_EQ(train("m", {"--steps", "2"}).code, 0);
  const std::string first = weights("m");
  const Finished refused = train("m", {"--steps", "3"});
  expect_error(refused, {"m: holds a trained model and its run: give another folder, --overwrite", "--resume"});
  EXPECT_EQ(weights("m"), first);
  ASSERT_EQ(train("m", {"--steps", "3", "--overwrite"}).code, 0);
  EXPECT_NE(weights("m"), first);

  // A run over a model that is stopped goes on with --resume alone.
  ASSERT_EQ(train("m", {"--steps", "2", "--overwrite", "--stop-at", "1"}).code, 0);
  expect_error(train("m", {"--steps", "2"}), {"checkpoint.safetensors", "--resume", "--overwrite"});
  ASSERT_EQ(train("m", {"--resume"}).code, 0);
  EXPECT_EQ(weights("m"), first);

  make_stopped("m", {"--overwrite"});
  ASSERT_EQ(train("m", {"--steps", "2", "--overwrite"}).code, 0);
  EXPECT_EQ(weights("m"), first);
  expect_error(train("m", {"--resume"}), {"more than the 2 after"}, 2);
  expect_error(train("m", {"--resume", "--overwrite"}), {"--resume", "--overwrite", "one of them"}, 2);

  // Other people's folders are models too.
  std::filesystem::create_directory(folder_ / "theirs");
  std::ofstream(folder_ / "theirs/config.json") << "{}";
  expect_error(train("theirs", {"--steps", "1"}), {"theirs: holds a model (config.json)"});
}

TEST_F(Train, DoesNotMixRuns) {
  make_stopped("m");
  expect_error(train("m", {"--steps", "6"}), {"checkpoint.safetensors", "--resume"});
  expect_error(train("m", {"--resume", "--steps", "7"}), {"--steps"}, 2);
  expect_error(train("m", {"--resume", "--seed", "9"}), {"--seed"}, 2);
  expect_error(train("m", {"--resume", "--heads", "8"}), {"--heads"}, 2);
  expect_error(train("m", {"--resume", "--shards", "2"}), {"--shards"}, 2);
  expect_error(train("nowhere", {"--resume"}), {"checkpoint.safetensors", "is not there"});
}

TEST_F(Train, RefusesCheckpointsThatAreCutOrForeign) {
  make_stopped("m");
  const std::string whole = bytes_of(checkpoint("m"));
  const auto refused = [&](const std::string& bytes, const std::vector<std::string>& words) {
    std::ofstream(checkpoint("m"), std::ios::binary) << bytes;
    expect_error(train("m", {"--resume"}), words);
    EXPECT_EQ(bytes_of(checkpoint("m")), bytes);
  };
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    refused(whole.substr(0, size), {"checkpoint.safetensors"});
  }
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string bytes = whole;
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    EXPECT_EQ(from.size(), to.size());
    return bytes.replace(at, to.size(), to);
  };
  refused(changed("training checkpoint 3", "training checkpoint 9"), {"no checkpoint of headlight train"});
  refused(changed("animal", "animol"), {"another vocabulary"});
  refused(changed("\\\"width\\\":64", "\\\"width\\\":99"), {"checkpoint.safetensors"});
  refused(changed("\\\"width\\\":64", "\\\"width\\\":-1"), {"width"});
  refused(changed("\\\"heads\\\":4", "\\\"heads\\\":0"), {"heads"});
  refused(changed("\"steps_taken\":\"2\"", "\"steps_taken\":\"9\""), {"steps_taken"});
  refused(changed("\\\"shards\\\":1", "\\\"shards\\\":5"), {"'shards' does not divide 'batch'"});
  refused(changed("first_moment.norm.bias", "first_moment.norm.bios"), {"first_moment.norm.bias"});
  ASSERT_EQ(run_program({"train", "-o", folder_ / "n", "--steps", "1"}).code, 0);
  refused(weights("n"), {"no checkpoint of headlight train"});
  std::ofstream(checkpoint("m"), std::ios::binary) << whole;
  EXPECT_EQ(train("m", {"--resume"}).code, 0);
}

TEST_F(Train, NamesAGradientThatIsNotFinite) {
  expect_error(train("m", {"--steps", "40", "--learning-rate", "1e30"}),
               {"was not taken", "the gradient of word_embeddings.weight", "not finite"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m/model.safetensors"));
}

// Step 500 writes the first checkpoint on the way, but a run that ends before can be resumed as well: from its start.
TEST_F(Train, ARunThatEndsEarlyLeavesNoEmptyFolder) {
  const Finished first = train("m", {"--steps", "40", "--learning-rate", "1e30"});
  ASSERT_TRUE(std::filesystem::exists(checkpoint("m")));
  expect_error(train("m", {"--steps", "40"}), {"checkpoint.safetensors", "--resume", "--overwrite"});
  const Finished again = train("m", {"--resume"});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.error, first.error) << "the same step fails";
}

TEST_F(Train, FullDiskLeavesTheLastCheckpoint) {
  make_stopped("m");
  const std::string before = bytes_of(checkpoint("m"));
  expect_error(train("m", {"--resume", "--stop-at", "4"}, {.file_size = 100'000}), {"checkpoint.safetensors"});
  EXPECT_EQ(bytes_of(checkpoint("m")), before);
  expect_error(train("m", {"--resume"}, {.file_size = 100'000}), {"model.safetensors"});
  EXPECT_EQ(bytes_of(checkpoint("m")), before);
  std::ofstream(folder_ / "file") << "no folder";
  expect_error(train("file", {"--steps", "1"}), {"file"});
}

TEST_F(Train, FULL_EveryWayToPutHeadsTogetherIsSavedAndRead) {
  for (const std::string merge : {"average", "weighted", "weighted-by-input", "gated-by-head", "gated-by-element"}) {
    ASSERT_EQ(train(merge, {"--steps", "2", "--merge", merge, "--stop-at", "1"}).code, 0);
    expect_error(train(merge, {"--resume", "--merge", "concatenate"}), {"--merge"}, 2);
    const Finished finished = train(merge, {"--resume"});
    ASSERT_EQ(finished.code, 0) << finished.error;
    EXPECT_NE(bytes_of(folder_ / (merge + "/config.json")).find('"' + merge + '"'), std::string::npos);
    for (const char* command : {"beams", "encode"}) {
      const Finished read = run_program({command, "--model", folder_ / merge, "--text", "the cat", "-o",
                                         folder_ / (command == std::string("beams") ? "b.html" : "h.npy")});
      EXPECT_EQ(read.code, 0) << read.error;
      EXPECT_TRUE(read.error.empty()) << read.error;
    }
    for (const char* command : {"heads", "embed"}) {
      const Finished read = run_program({command, "--model", folder_ / merge, "--text", "the cat chased the mouse"});
      EXPECT_EQ(read.code, 0) << read.error;
    }
    const Finished importance = run_program(
        {"heads", "--model", folder_ / merge, "--text", "the cat chased the mouse", "--importance", "--mask", "0.1"});
    EXPECT_EQ(importance.code, 0) << importance.error;
  }
}

TEST_F(Train, RefusesWrongUsage) {
  expect_error(run_program({"train"}), {"--output"}, 2);
  expect_error(train("m", {"--steps", "0"}), {"--steps"}, 2);
  expect_error(train("m", {"--heads", "5"}), {"--heads", "divisor"}, 2);
  expect_error(train("m", {"--seed", "-1"}), {"--seed"}, 2);
  expect_error(train("m", {"--shards", "0"}), {"--shards"}, 2);
  expect_error(train("m", {"--shards", "7"}), {"--shards", "divisor"}, 2);
  expect_error(train("m", {"--merge", "glue"}), {"--merge"}, 2);
  expect_error(train("m", {"--activations", "float16"}), {"--activations"}, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m"));
}

}  // namespace headlight::test::train_test
