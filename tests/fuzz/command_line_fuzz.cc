// The arguments of the command line, one a line, in a folder of its own that holds a few small files. Whatever they
// are, the program ends with 0, 1 or 2. What reads files and computes a little does so; a command that takes seconds is
// told one argument that there is not, and so reads and refuses, but does not run.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "fuzz/model_files.h"
#include "headlight/models/npy.h"
#include "tools/headlight/commands/commands.h"

namespace headlight::fuzz::command_line_fuzz {
namespace {

namespace fs = std::filesystem;

// The program's, which goes with the process. Standard input holds nothing.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "headlight-XXXXXX").string();
    must(::mkdtemp(name.data()) != nullptr, "a folder of its own");
    path_ = name;
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    must(nothing >= 0 && ::dup2(nothing, STDIN_FILENO) == STDIN_FILENO, "nothing to read");
    ::close(nothing);
    fill();
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }
  // As it was: what a run has left goes, and what it replaced comes again.
  void fill() const {
    for (const auto& entry : fs::directory_iterator(path_)) {
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    }
    static const std::string query = array<float>({2, 3, 2, 4}), row = array<float>({48}), heads = array<float>({2}),
                             lengths = array<std::int64_t>({2});
    write("query.npy", query);
    write("row.npy", row);
    write("heads.npy", heads);
    write("lengths.npy", lengths);
    write("text.txt", "a bb\n\nb\n");
    fs::create_directory(path_ / "model");
    static const std::string weights = small_weights();
    write("model/model.safetensors", weights);
    write("model/vocab.txt", kVocabulary);
    write("model/config.json",
          R"({"model_type":"bert","vocab_size":8,"max_position_embeddings":4,"type_vocab_size":2,"hidden_size":4,)"
          R"("num_attention_heads":2,"intermediate_size":4,"num_hidden_layers":1,"hidden_act":"gelu"})");
  }

 private:
  // All ones.
  template <class T>
  static std::string array(const std::vector<std::int64_t>& shape) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    const std::vector<T> numbers(size, T{1});
    MemoryFile file;
    file.fill("");
    models::write_npy(file.path(), shape, numbers);
    return file.text();
  }
  static void write(const std::string& name, std::string_view text) { std::ofstream(name, std::ios::binary) << text; }
  fs::path path_;
};

// While the program runs: it works in its folder, and what it prints goes nowhere.
class Elsewhere {
 public:
  explicit Elsewhere(const Folder& folder) : before_(fs::current_path()) {
    fs::current_path(folder.path());
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int n = 0; n < 2; ++n) {
      kept_[n] = ::fcntl(n + 1, F_DUPFD_CLOEXEC, 3);
      ::dup2(nowhere, n + 1);
    }
    ::close(nowhere);
  }
  ~Elsewhere() {
    fs::current_path(before_);
    for (int n = 0; n < 2; ++n) {
      ::dup2(kept_[n], n + 1);
      ::close(kept_[n]);
    }
  }
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

 private:
  fs::path before_;
  int kept_[2];
};

// Names no other folder, and no number of more than two digits: neither files of this machine nor its hours.
std::string tamed(std::string_view argument) {
  std::string tame;
  int digits = 0;
  for (const char letter : argument.substr(0, 200)) {
    digits = std::isdigit(static_cast<unsigned char>(letter)) != 0 ? digits + 1 : 0;
    if (digits <= 2) tame += letter == '\0' ? ' ' : letter == '/' ? '_' : letter;
  }
  return tame == ".." ? "." : tame;
}

std::vector<std::string> arguments_of(std::string_view text) {
  constexpr std::size_t kMost = 24;
  const std::set<std::string> slow = {"demo", "heads", "speed", "study", "train"};
  std::vector<std::string> arguments = {"headlight"};
  bool is_slow = false;
  while (!text.empty() && arguments.size() <= kMost) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    arguments.push_back(tamed(text.substr(0, end)));
    is_slow = is_slow || slow.contains(arguments.back());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (is_slow) arguments.emplace_back("--there-is-no-such-option");
  return arguments;
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  std::vector<std::string> arguments = arguments_of({reinterpret_cast<const char*>(data), size});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int code = 0;
  {
    const Elsewhere elsewhere(folder);
    code = program::run(static_cast<int>(arguments.size()), pointers.data());
  }
  must(code >= 0 && code <= 2, "an exit code that docs/command-line.md names");
  folder.fill();
}

}  // namespace headlight::fuzz::command_line_fuzz
