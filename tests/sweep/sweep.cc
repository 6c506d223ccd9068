// sweep [--random=N] [--seed=S] [FILE-OR-LINE…]: runs the cases of files, of lines, and N random ones. A case that
// fails is printed as the line that repeats it, and as a smaller one that fails, too. README.md has the language.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "support/quick.h"
#include "sweep/case.h"
#include "sweep/minimise.h"

namespace headlight::sweep {
namespace {

// The line that is being run, for a signal's sake.
char running[4096];

void name_the_case(int signal) {
  constexpr char kTold[] = "ended by a signal, or too slow:\n";
  (void)!::write(STDERR_FILENO, kTold, sizeof kTold - 1);
  (void)!::write(STDERR_FILENO, running, std::strlen(running));
  (void)!::write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

Report report_of_line(const std::string& line) {
  // A case takes milliseconds; with sanitizers on a busy machine, seconds.
  constexpr unsigned kMostSeconds = 300;
  std::snprintf(running, sizeof running, "%s", line.c_str());
  ::alarm(kMostSeconds);
  Report report = report_of(*parse(line));
  ::alarm(0);
  return report;
}

class Sweep {
 public:
  void run(const std::string& line) {
    ++counts_[line.substr(0, line.find(' '))];
    const Report report = report_of_line(line);
    if (!report.failed()) return;
    ++failures_;
    std::printf("FAILED %s\n%s", line.c_str(), report.text().c_str());
    std::unique_ptr<Case> on_one_machine = parse(line);
    on_one_machine->isa = report.failed_on();
    const auto fails = [](const std::string& smaller) { return report_of_line(smaller).failed(); };
    // One that needs several machines to fail stays as it is.
    const std::string first = fails(line_of(*on_one_machine)) ? line_of(*on_one_machine) : line;
    const std::string smallest = minimised(first, fails);
    std::printf("smaller: %s\n%s", smallest.c_str(), report_of_line(smallest).text().c_str());
    std::fflush(stdout);
  }

  void run_file(const std::string& path) {
    std::ifstream file(path);
    if (!file.is_open()) throw std::invalid_argument("cannot read " + path);
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      run(line);
    }
  }

  // 1 where a case failed.
  [[nodiscard]] int result(double seconds) const {
    std::int64_t all = 0;
    for (const auto& [operation, count] : counts_) all += count;
    std::printf("%lld cases in %.1f s", static_cast<long long>(all), seconds);
    for (const auto& [operation, count] : counts_) {
      std::printf("%s%s %lld", operation == counts_.begin()->first ? ": " : ", ", operation.c_str(),
                  static_cast<long long>(count));
    }
    std::printf("; %lld failed\n", static_cast<long long>(failures_));
    return failures_ == 0 ? 0 : 1;
  }

 private:
  std::map<std::string, std::int64_t> counts_;
  std::int64_t failures_ = 0;
};

// The number of an option, --random=5; false for another argument.
bool is_option(const std::string& argument, const std::string& name, std::uint64_t& number) {
  if (argument.rfind(name, 0) != 0) return false;
  const char* const end = argument.data() + argument.size();
  const auto [read_to, error] = std::from_chars(argument.data() + name.size(), end, number);
  if (error != std::errc() || read_to != end) throw std::invalid_argument("'" + argument + "' has no number");
  return true;
}

int run(int count, char** arguments) {
  std::uint64_t random = 0, seed = 1;
  std::vector<std::string> given;
  for (int n = 1; n < count; ++n) {
    const std::string argument = arguments[n];
    if (is_option(argument, "--random=", random) || is_option(argument, "--seed=", seed)) continue;
    if (argument.rfind("--", 0) == 0) throw std::invalid_argument("there is no option '" + argument + "'");
    given.push_back(argument);
  }
  if (given.empty() && random == 0) throw std::invalid_argument("nothing to run");
  if (test::quick()) random = (random + 9) / 10;

  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) std::signal(signal, name_the_case);
  const auto start = std::chrono::steady_clock::now();
  Sweep sweep;
  for (const std::string& each : given) {
    if (each.find(' ') == std::string::npos && std::filesystem::exists(each)) {
      sweep.run_file(each);
    } else {
      sweep.run(each);
    }
  }
  for (std::uint64_t n = 0; n < random; ++n) sweep.run(line_of(*draw(seed, n)));
  return sweep.result(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace
}  // namespace headlight::sweep

int main(int count, char** arguments) {
  try {
    return headlight::sweep::run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sweep: %s\nusage: sweep [--random=N] [--seed=S] [FILE-OR-LINE…]\n", error.what());
    return 2;
  }
}
