// The fuzzers without libFuzzer, in one program: replays files, and mutations of them that are the same in every run.
//
//   fuzz_replay NAME MUTATIONS FILE-OR-FOLDER…
//
// The input that is being tried lies in fuzz_NAME.input of the working folder, and stays there when the program ends by
// it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/bytes.h"
#include "support/random.h"

// HEADLIGHT_FUZZERS: HEADLIGHT_FUZZER(NAME) for each NAME_fuzz.cc.
#define HEADLIGHT_FUZZER(name)                            \
  namespace headlight::fuzz::name##_fuzz {                \
    void run(const std::uint8_t* data, std::size_t size); \
  }
HEADLIGHT_FUZZERS
#undef HEADLIGHT_FUZZER

namespace headlight::fuzz {
namespace {

struct Fuzzer {
  std::string_view name;
  void (*run)(const std::uint8_t* data, std::size_t size);
};
#define HEADLIGHT_FUZZER(name) Fuzzer{#name, name##_fuzz::run},
constexpr Fuzzer kFuzzers[] = {HEADLIGHT_FUZZERS};
#undef HEADLIGHT_FUZZER

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kLongest = 1 << 16;

// A file whose content outlives the process.
class Witness {
 public:
  explicit Witness(const Fuzzer& fuzzer) : fuzzer_(fuzzer), path_("fuzz_" + std::string(fuzzer.name) + ".input") {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    must(descriptor_ >= 0, "a file for the input in the working folder");
  }
  ~Witness() {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  void try_out(const Input& input) const {
    must(::ftruncate(descriptor_, 0) == 0, "room for the input");
    must(::pwrite(descriptor_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()), "the input kept");
    fuzzer_.run(input.data(), input.size());
  }

 private:
  const Fuzzer& fuzzer_;
  std::string path_;
  int descriptor_;
};

std::vector<Input> read_all(int count, char** paths) {
  std::vector<std::filesystem::path> files;
  for (int n = 0; n < count; ++n) {
    if (!std::filesystem::is_directory(paths[n])) {
      files.emplace_back(paths[n]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(paths[n])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> inputs;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    must(stream.is_open(), "inputs that can be read");
    inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// One change, of a few kinds.
void mutate(Input& input, const Input& other, Bytes& draws) {
  const std::size_t at = draws.word() % (input.size() + 1);
  const std::size_t length = draws.word() % 16 + 1;
  const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = input.begin() + static_cast<std::ptrdiff_t>(std::min(at + length, input.size()));
  switch (draws.byte() % 6) {
    case 0:
      if (place != input.end()) *place ^= static_cast<std::uint8_t>(1u << draws.byte() % 8);
      return;
    case 1:
      if (place != input.end()) *place = draws.byte();
      return;
    case 2:
      input.erase(place, end);
      return;
    case 3:
      input.insert(place, draws.byte() % 5 == 0 ? 0xFF : draws.byte());
      return;
    case 4: {
      const Input copy(place, end);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(draws.word() % (input.size() + 1)), copy.begin(),
                   copy.end());
      return;
    }
    default: {
      const std::size_t from = other.empty() ? 0 : draws.word() % other.size();
      const std::size_t until = std::min(from + 4 * length, other.size());
      input.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from),
                   other.begin() + static_cast<std::ptrdiff_t>(until));
    }
  }
}

}  // namespace
}  // namespace headlight::fuzz

int main(int count, char** arguments) {
  using namespace headlight::fuzz;
  must(count >= 4, "usage: fuzz_replay NAME MUTATIONS FILE-OR-FOLDER…");
  const auto* const fuzzer = std::find_if(std::begin(kFuzzers), std::end(kFuzzers),
                                          [&](const Fuzzer& each) { return each.name == arguments[1]; });
  must(fuzzer != std::end(kFuzzers), "the name of a fuzzer");
  const int mutations = std::atoi(arguments[2]);
  const std::vector<Input> inputs = read_all(count - 3, arguments + 3);
  must(!inputs.empty(), "a corpus");
  const Witness witness(*fuzzer);
  for (const Input& input : inputs) witness.try_out(input);
  headlight::test::Random random(0x5EED);
  std::vector<std::uint8_t> drawn(256);
  for (int n = 0; n < mutations; ++n) {
    for (std::uint8_t& each : drawn) each = static_cast<std::uint8_t>(random.next());
    Bytes draws(drawn.data(), drawn.size());
    Input input = inputs[draws.word() % inputs.size()];
    const Input& other = inputs[draws.word() % inputs.size()];
    for (int changes = 1 + draws.byte() % 4; changes > 0; --changes) mutate(input, other, draws);
    input.resize(std::min(input.size(), kLongest));
    witness.try_out(input);
  }
  std::printf("%zu inputs and %d mutations\n", inputs.size(), mutations);
}
