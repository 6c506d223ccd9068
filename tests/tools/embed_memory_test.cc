// headlight embed --memory.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

#include "models/golden_family.h"
#include "support/quick.h"
#include "support/sanitizer.h"
#include "tools/model_commands.h"

namespace headlight::test::embed_memory_test {

class EmbedMemory : public ModelCommands {
 protected:
  // With a file of texts.
  [[nodiscard]] Finished embed(const std::vector<std::string>& more) const {
    std::vector<std::string> options{"--input", folder_ / "texts", "-t", "1"};
    options.insert(options.end(), more.begin(), more.end());
    return run("embed", options, {.output = folder_ / "out"});
  }
  // What the program holds for the shortest text: the model, and itself.
  [[nodiscard]] std::int64_t least_peak() const { return run("embed", {"--text", "a", "-t", "1"}).own_peak_bytes; }
  // What a refusal says is needed, as an option, and some MiB more: what is measured differs from run to run, by huge
  // pages of 2 MiB.
  [[nodiscard]] static std::string needed(const Finished& refused) {
    const std::string words = "expected at least ";
    const std::size_t at = refused.error.find(words);
    EXPECT_EQ(refused.code, 1) << refused.error;
    EXPECT_NE(at, std::string::npos) << refused.error;
    if (at == std::string::npos) return "";
    constexpr std::int64_t kNoise = 6;
    return std::to_string((bytes(refused.error.substr(at + words.size())) >> 20) + kNoise) + "MiB";
  }
  [[nodiscard]] static std::int64_t bytes(const std::string& mebibytes) {
    std::int64_t number = 0;
    std::from_chars(mebibytes.data(), mebibytes.data() + mebibytes.size(), number);
    return number << 20;
  }
};

TEST_F(EmbedMemory, GivesTheSameVectorsInTheSameOrder) {
  std::string texts;
  for (int n = 0; n < 500; ++n)
    texts += n % 7 == 0 ? "it, it.\n" : n % 3 == 0 ? "\n" : "hello world, it is w" + std::to_string(n) + "\r\n";
  write("texts", texts);
  const std::string least = needed(embed({"--memory", "1MiB"}));
  const std::vector<std::vector<std::string>> kinds{{}, {"--json"}, {"-o", folder_ / "e.npy"}};
  for (const std::vector<std::string>& kind : kinds) {
    const auto result = [&](std::vector<std::string> more) {
      more.insert(more.end(), kind.begin(), kind.end());
      const Finished finished = embed(more);
      EXPECT_EQ(finished.code, 0) << finished.error;
      return read("out") + (kind.size() > 1 ? read("e.npy") : "");
    };
    const std::string expected = result({});
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(result({"--memory", least}), expected);
    EXPECT_EQ(result({"--memory", "1G"}), expected);
  }
}

TEST_F(EmbedMemory, OfEncodeToo) {
  std::string texts;
  for (int n = 0; n < 300; ++n) texts += n % 7 == 0 ? "it, it.\n" : "hello world, it is w" + std::to_string(n) + "\n";
  write("texts", texts);
  const auto encode = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--input", folder_ / "texts", "-t", "1", "-o", folder_ / "h.npy"});
    return run("encode", more);
  };
  EXPECT_EQ(encode({}).code, 0);
  const std::string expected = read("h.npy");
  EXPECT_FALSE(expected.empty());
  const std::string least = needed(encode({"--memory", "1M"}));
  EXPECT_EQ(encode({"--memory", least}).code, 0);
  EXPECT_EQ(read("h.npy"), expected);
}

// As many texts as there may be, and a long one among them: the process holds what was said beside the model, and less
// is refused.
TEST_F(EmbedMemory, HoldsWhatWasSaid) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  const int count = test::count(40'000, 5'000);
  const int words = 200'000;
  std::ofstream texts(folder_ / "texts", std::ios::binary);
  for (int n = 0; n < count; ++n) {
    texts << "hello, world w" << n << "\n";
    if (n != count / 2) continue;
    // Of which JSON makes much more.
    for (int word = 0; word < words; ++word) texts << "it \x01\x02\x03 hello. ";
    texts << "\n";
  }
  texts.close();
  const std::string least = needed(embed({"--memory", "1M"}));
  const std::int64_t before = least_peak();
  EXPECT_GT(before, 0);
  for (const std::vector<std::string>& kind : std::vector<std::vector<std::string>>{{}, {"-o", folder_ / "e.npy"}}) {
    const auto with = [&](const std::string& memory) {
      std::vector<std::string> more{"--memory", memory};
      more.insert(more.end(), kind.begin(), kind.end());
      return embed(more);
    };
    // The long text is met when there is no room for it, and then what it needs is known.
    const Finished refused = with(least);
    EXPECT_NE(refused.error.find("line " + std::to_string(count / 2 + 2) + " has "), std::string::npos)
        << refused.error;
    EXPECT_GT(refused.own_peak_bytes, 0);
    EXPECT_LE(refused.own_peak_bytes, before + bytes(least));
    const std::string enough = needed(refused);
    const Finished finished = with(enough);
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_GT(finished.own_peak_bytes, 0);
    EXPECT_LE(finished.own_peak_bytes, before + bytes(enough));
    if (kind.empty()) {
      std::ifstream out(folder_ / "out", std::ios::binary);
      EXPECT_EQ(std::count(std::istreambuf_iterator<char>(out), {}, '\n'), count + 1);
    }
  }
}

// A text in which no token must end, as these have tokens of 0 beside 0, and which so is gone through whole.
TEST_F(EmbedMemory, HoldsWhatWasSaidOfADigitWithoutEnd) {
  if (under_sanitizer()) GTEST_SKIP() << "a sanitizer's memory is resident too";
  const std::string digits(static_cast<std::size_t>(test::count(std::int64_t{8} << 20, std::int64_t{2} << 20)), '0');
  write("texts", "hello\n" + digits + "\n");
  for (const char* const name : {"roberta", "xlm-roberta"}) {
    const std::string model = golden_family(name).write(folder_ / name);
    const auto embed = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all{"embed", "--model", model, "-t", "1"};
      all.insert(all.end(), more.begin(), more.end());
      return run_program(all, {.output = folder_ / "out"});
    };
    const std::int64_t before = embed({"--text", "a"}).own_peak_bytes;
    const std::string enough = needed(embed({"--input", folder_ / "texts", "--memory", "20MiB"}));
    const Finished finished = embed({"--input", folder_ / "texts", "--memory", enough});
    EXPECT_EQ(finished.code, 0) << finished.error;
    EXPECT_GT(finished.own_peak_bytes, 0);
    EXPECT_LE(finished.own_peak_bytes, before + bytes(enough)) << name;
  }
}

// The first vectors are there before the last text is.
TEST_F(EmbedMemory, AnswersBeforeTheEnd) {
  const std::string out = folder_ / "answers", lines = folder_ / "lines";
  ASSERT_EQ(::mkfifo(lines.c_str(), 0600), 0);
  std::future<Finished> finished = std::async(std::launch::async, [&] {
    return run("embed", {"--input", lines, "--memory", "1GiB"}, {.output = out});
  });
  // Opened to read as well, for else the call waits for a reader, and a program that has ended is none.
  const int pipe = ::open(lines.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(pipe, 0);
  const auto say = [&](const std::string& text) {
    EXPECT_EQ(::write(pipe, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  const auto has_ended = [&] { return finished.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready; };
  std::string texts;
  for (int n = 0; n < 200; ++n) texts += "hello\n";
  say(texts);
  std::size_t size = 0;
  for (int n = 0; n < 6000 && size == 0 && !has_ended(); ++n) size = read("answers").size();
  EXPECT_GT(size, 0u);
  EXPECT_FALSE(has_ended());
  say("world\n");
  ::close(pipe);
  // A program that only now opens the pipe would wait for a writer.
  while (!has_ended()) ::close(::open(lines.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(finished.get().code, 0);
  const std::string all = read("answers");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 201);
}

TEST_F(EmbedMemory, SaysWhatIsWrong) {
  write("texts", "hello\n");
  for (const char* const wrong : {"12", "1X", "-1G", "M", "1.5G"}) {
    const Finished finished = embed({"--memory", wrong});
    EXPECT_EQ(finished.code, 2) << wrong;
    EXPECT_NE(finished.error.find("--memory"), std::string::npos) << finished.error;
  }
  expect_error(run("embed", {"--ids", folder_ / "none.npy", "--memory", "1G"}), {"--memory goes with texts"}, 2);
}

}  // namespace headlight::test::embed_memory_test
