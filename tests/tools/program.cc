#include "tools/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

namespace headlight::test {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return (std::ostringstream() << file.rdbuf()).str();
}

void redirect(const std::string& path, int flags, int descriptor) {
  const int opened = ::open(path.c_str(), flags, 0600);
  if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(126);
  if (opened != descriptor) ::close(opened);
}

void set_output(const Surroundings& surroundings, const std::string& captured) {
  if (surroundings.output == "closed") {
    ::close(STDOUT_FILENO);
  } else if (surroundings.output == "broken") {
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) ::_exit(126);
    ::close(ends[0]);
    ::close(ends[1]);
  } else {
    redirect(surroundings.output.empty() ? captured : surroundings.output, O_WRONLY | O_CREAT, STDOUT_FILENO);
  }
}

// The most memory that was resident since the process began its program; 0 when it has ended. What wait4() tells is not
// less than what was resident of this process when it forked.
std::int64_t resident_peak(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kName = "VmHWM:";
    if (line.starts_with(kName)) return std::strtoll(line.c_str() + kName.size(), nullptr, 10) << 10;
  }
  return 0;
}

}  // namespace

const char* const program_path = HEADLIGHT_PROGRAM;

Finished run_program(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  const ScratchFolder folder;
  std::ofstream(folder / "in", std::ios::binary) << surroundings.input;
  std::vector<char*> pointers{const_cast<char*>(surroundings.name.empty() ? program_path : surroundings.name.c_str())};
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) {
    for (const char* name : {"NO_COLOR", "HEADLIGHT_ISA", "HEADLIGHT_NUM_THREADS"}) ::unsetenv(name);
    for (const auto& [name, value] : surroundings.environment) ::setenv(name.c_str(), value.c_str(), 1);
    redirect(folder / "in", O_RDONLY, STDIN_FILENO);
    redirect(folder / "error", O_WRONLY | O_CREAT, STDERR_FILENO);
    set_output(surroundings, folder / "out");
    for (const auto& [resource, most] :
         {std::pair{RLIMIT_AS, surroundings.memory}, {RLIMIT_FSIZE, surroundings.file_size}}) {
      const rlimit limit{most, most};
      if (most != 0) ::setrlimit(resource, &limit);
    }
    ::execv(program_path, pointers.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage used {};
  std::int64_t own_peak = 0;
  while (::wait4(child, &status, WNOHANG, &used) == 0) {
    if (const std::int64_t peak = resident_peak(child); peak > 0) own_peak = peak;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / "out"), read_file(folder / "error"),
          std::int64_t{used.ru_maxrss} << 10, own_peak};
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "headlight-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder " + pattern);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> ScratchFolder::names() const {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

void expect_error(const Finished& finished, const std::vector<std::string>& words, int code) {
  EXPECT_EQ(finished.code, code) << finished.error;
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(finished.error.starts_with("headlight: error: ")) << finished.error;
  EXPECT_EQ(finished.error.find('\n'), finished.error.size() - 1) << finished.error;
  for (const std::string& word : words)
    EXPECT_NE(finished.error.find(word), std::string::npos) << "no '" << word << "' in: " << finished.error;
}

}  // namespace headlight::test
