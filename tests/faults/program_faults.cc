// The command line under every fault: program_faults PROGRAM INJECTOR DATA MOST runs each subcommand with the n-th call
// of each kind failing, for at most so many n of each. It must say so in one line and end with 1, or give what it gives
// without a fault; it never crashes, hangs, or leaves a part of a file.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "faults/child.h"
#include "faults/outcomes.h"
#include "faults/plan.h"
#include "faults/program_commands.h"
#include "models/scratch_folder.h"

namespace headlight::faults {
namespace {

// Name and content.
using Files = std::map<std::string, std::string>;

Files files_in(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).string()] = (std::ostringstream() << stream.rdbuf()).str();
  }
  return files;
}

void clear(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) std::filesystem::remove_all(entry.path());
}

struct Reference {
  Finished finished;
  Files files;
};

// Whether the file system of scratch folders has files without names. On another one whoever is killed leaves a hidden
// file behind, and on any who is about to replace a file, as AtomicFile says.
bool has_nameless_files() {
  static const bool has = [] {
    const test::ScratchFolder folder;
    const int descriptor = ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (descriptor >= 0) ::close(descriptor);
    return descriptor >= 0;
  }();
  return has;
}

// What a command left behind: "" or what is wrong with it.
std::string partial(const ProgramCommand& command, const Reference& reference, const Finished& finished,
                    const Files& files) {
  for (const auto& [name, content] : files) {
    if (finished.signal != 0 && name.find(".headlight-") != name.npos &&
        (!has_nameless_files() || command.replaces_files))
      continue;
    const auto whole = reference.files.find(name);
    if (whole == reference.files.end()) return "left " + name;
    if (content != whole->second && command.varying_file != name) return "left a part of " + name;
  }
  return "";
}

// One line of an error, behind warnings that came before the fault.
bool is_one_error(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line.starts_with("headlight: warning: ")) {
  }
  return line.starts_with("headlight: error: ") && line.size() > 20 && !std::getline(lines, line);
}

// A text that is read up to its end has no length that it could be held against.
bool tells_nothing(const Plan& plan) { return plan.effect == Effect::end; }

std::string what_is_wrong(const ProgramCommand& command, const Plan& plan, const Reference& reference,
                          const Finished& finished, const Files& files) {
  std::string wrong = partial(command, reference, finished, files);
  if (!wrong.empty() && !tells_nothing(plan)) return wrong;
  if (finished.signal != 0) {
    return plan.effect == Effect::signal && finished.signal == plan.number
               ? ""
               : "ended by signal " + std::to_string(finished.signal) + ": " + finished.error;
  }
  if (finished.code == 1) return is_one_error(finished.error) ? "" : "said '" + finished.error + "'";
  if (finished.code != 0) return "exit code " + std::to_string(finished.code) + ": " + finished.error;
  if (plan.effect == Effect::signal || tells_nothing(plan)) return "";
  if (files.size() != reference.files.size()) return "exit code 0 without every file";
  if (command.prints_the_same && finished.out != reference.finished.out) return "exit code 0 with another output";
  return "";
}

struct Run {
  const ProgramCommand* command;
  const Reference* reference;
  const Plan* plan;
  std::int64_t n;
};

class Driver {
 public:
  Driver(std::string program, std::string injector, const std::string& data, std::int64_t most)
      : program_(std::move(program)), injector_(std::move(injector)), most_(most) {
    prepare(data);
  }

  // Every command, or the one of that name.
  bool run(const std::string& name) {
    for (const ProgramCommand& command : program_commands()) {
      if (name.empty() || name == command.name) plan_runs(command);
    }
    std::vector<std::thread> threads;
    for (unsigned n = 0; n < std::max(1u, std::thread::hardware_concurrency()); ++n)
      threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    return outcomes_.report("command line");
  }

 private:
  // What commands read: arrays, a model, texts.
  void prepare(const std::string& data) {
    for (const char* name : {"query.npy", "key.npy", "value.npy"})
      std::filesystem::copy_file(data + "/" + name, inputs_.path(name));
    inputs_.write("texts.txt", "The robot is light.\nIt fits in the box because it is small.\n");
    const Finished made =
        board_.run({injector_, {program_, "train", "--steps", "1", "-o", inputs_.path("model")}, inputs_.path()});
    if (made.code != 0) throw std::runtime_error("no model: " + made.error);
  }

  Child child(const ProgramCommand& command, const std::string& folder) const {
    Child child{injector_, {program_}, folder};
    for (std::string argument : command.arguments) {
      if (argument.starts_with("@")) argument = inputs_.path(argument.substr(1));
      child.command.push_back(argument);
    }
    return child;
  }

  // Without a fault first: what it gives, and how many calls of each kind it makes.
  void plan_runs(const ProgramCommand& command) {
    const std::int64_t most = most_ / command.slow;
    if (most == 0) return;
    const test::ScratchFolder folder;
    Reference& reference = references_[command.name];
    reference.finished = board_.run(child(command, folder.path()));
    reference.files = files_in(folder.path());
    if (reference.finished.code != 0) throw std::runtime_error(std::string(command.name) + reference.finished.error);
    for (const auto& plans : {failures(), signals()}) {
      for (const Plan& plan : plans) {
        for (const std::int64_t n : spread(seen(*board_, plan), most))
          runs_.push_back({&command, &reference, &plan, n});
      }
    }
  }

  void work() {
    SharedBoard board;
    const test::ScratchFolder folder;
    for (std::size_t number; (number = next_++) < runs_.size();) {
      const Run& run = runs_[number];
      clear(folder.path());
      arm(*board, *run.plan, run.n);
      const Finished finished = board.run(child(*run.command, folder.path()));
      const bool met = disarm(*board) > 0;
      std::string wrong = what_is_wrong(*run.command, *run.plan, *run.reference, finished, files_in(folder.path()));
      if (!wrong.empty()) {
        wrong = std::string(run.command->name) + ", call " + std::to_string(run.n) + ": " + wrong;
        outcomes_.add(run.plan->name, Outcome::defect, wrong);
      } else {
        outcomes_.add(run.plan->name, !met                   ? Outcome::unmet
                                      : finished.signal != 0 ? Outcome::stopped
                                      : finished.code == 1   ? Outcome::refused
                                                             : Outcome::went_on);
      }
    }
  }

  std::string program_, injector_;
  std::int64_t most_;
  test::ScratchFolder inputs_;
  SharedBoard board_;
  std::map<std::string, Reference> references_;
  std::vector<Run> runs_;
  std::atomic<std::size_t> next_ = 0;
  Outcomes outcomes_;
};

}  // namespace
}  // namespace headlight::faults

int main(int count, char** arguments) {
  if (count != 5 && count != 6) {
    std::fprintf(stderr, "usage: program_faults PROGRAM INJECTOR DATA MOST [NAME]\n");
    return 2;
  }
  headlight::faults::Driver driver(arguments[1], arguments[2], arguments[3], std::atoll(arguments[4]));
  return driver.run(count == 6 ? arguments[5] : "") ? 0 : 1;
}
