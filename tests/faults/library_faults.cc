// The libraries under every fault: library_faults MOST [NAME…], started with the injector preloaded, makes each call of
// the scenes (of those names, if there are any) with the n-th call of each kind failing, for at most so many n of each.
// A call that fails says so by the error that is its kind's, leaves the state as it was and nothing behind, and gives
// the bits of an untouched one when it is made again.
#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "faults/model_files.h"
#include "faults/outcomes.h"
#include "faults/plan.h"
#include "faults/scene.h"
#include "headlight/models/errors.h"
#include "models/scratch_folder.h"

namespace headlight::faults {
namespace {

std::int64_t open_descriptors() {
  std::int64_t count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

struct Live {
  std::int64_t allocations, threads, mappings, descriptors;
  bool operator==(const Live&) const = default;
};

Live live(const Board& board) {
  const std::int64_t descriptors = open_descriptors();
  return {board.live_allocations, board.live_threads, board.live_mappings, descriptors};
}

std::string difference(const Live& before, const Live& after) {
  return std::to_string(after.allocations - before.allocations) + " allocations, " +
         std::to_string(after.threads - before.threads) + " threads, " +
         std::to_string(after.mappings - before.mappings) + " mappings, " +
         std::to_string(after.descriptors - before.descriptors) + " descriptors left";
}

// The error that a fault of this kind must become, in C++ or C.
enum class Expected { memory, system, file };
Expected expected_of(Kind kind) {
  if (kind == Kind::allocation) return Expected::memory;
  return kind == Kind::thread ? Expected::system : Expected::file;
}

// "" when the exception is of that kind and says something.
std::string what_is_wrong(const std::exception_ptr& thrown, Expected expected) {
  const auto judge = [expected](Expected found, const char* message) {
    if (found != expected) return std::string("an error of another kind: ") + message;
    return message[0] == '\0' ? std::string("an error without words") : std::string();
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const CFailure& failure) {
    switch (failure.status) {
      case HEADLIGHT_OUT_OF_MEMORY:
        return judge(Expected::memory, failure.what());
      case HEADLIGHT_SYSTEM_ERROR:
        return judge(Expected::system, failure.what());
      case HEADLIGHT_FILE_ERROR:
        return judge(Expected::file, failure.what());
      default:
        return "status " + std::to_string(failure.status) + ": " + failure.what();
    }
  } catch (const std::bad_alloc& error) {
    return judge(Expected::memory, error.what());
  } catch (const models::FileError& error) {
    return judge(Expected::file, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return std::string("a bare filesystem_error: ") + error.what();
  } catch (const std::system_error& error) {
    return judge(Expected::system, error.what());
  } catch (const std::exception& error) {
    return std::string("an undocumented error: ") + error.what();
  }
}

class Driver {
 public:
  Driver(std::int64_t most, std::span<char*> names) : most_(most), names_(names), board_(*headlight_fault_board()) {}

  bool run() {
    for (const auto& scenes : {operation_scenes::list(), typed_scenes::list(), layer_scenes::list(),
                               model_scenes::list(), c_scenes::list()}) {
      for (const NamedScene& scene : scenes) {
        if (names_.empty() || std::find(names_.begin(), names_.end(), std::string_view(scene.name)) != names_.end())
          run_scene(scene);
      }
    }
    return outcomes_.report("library");
  }

 private:
  struct Judgement {
    Outcome outcome;
    std::string defect;
  };

  void run_scene(const NamedScene& named) {
    reference_ = unharmed(named);
    if (unharmed(named) != reference_)
      throw std::runtime_error(std::string(named.name) + " has not the same bits twice");
    std::int64_t counts[kKinds];
    for (int kind = 0; kind < kKinds; ++kind) counts[kind] = board_.seen[kind];
    for (const Plan& plan : failures()) {
      for (const std::int64_t n : spread(counts[static_cast<int>(plan.kind)], most_)) {
        const Judgement judged = judge(named, plan, n);
        std::string told;
        if (!judged.defect.empty())
          told = std::string(named.name) + ", call " + std::to_string(n) + ": " + judged.defect;
        outcomes_.add(plan.name, judged.outcome, told);
      }
    }
  }

  // Without a fault: its result, and on the board what the call makes of each kind.
  std::uint64_t unharmed(const NamedScene& named) {
    const test::ScratchFolder folder;
    const auto scene = named.make(folder.path());
    forget_seen(board_);
    scene->call();
    const std::uint64_t result = scene->result();
    return result;
  }

  // What is left behind once may be a cache that was filled; what is left each time has leaked.
  Judgement judge(const NamedScene& named, const Plan& plan, std::int64_t n) {
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
      const Live before = live(board_);
      const Judgement judged = meet(named, plan, n);
      const Live after = live(board_);
      if (judged.outcome == Outcome::defect || after == before) return judged;
      if (attempt == kAttempts) return {Outcome::defect, difference(before, after)};
    }
  }

  Judgement meet(const NamedScene& named, const Plan& plan, std::int64_t n) {
    const test::ScratchFolder folder;
    const auto scene = named.make(folder.path());
    const std::uint64_t state = scene->state();
    std::exception_ptr thrown;
    arm(board_, plan, n);
    try {
      scene->call();
    } catch (...) {
      thrown = std::current_exception();
    }
    const bool met = disarm(board_) > 0;
    if (thrown == nullptr) {
      if (scene->result() != reference_) return {Outcome::defect, "other bits, and no error"};
      return {met ? Outcome::went_on : Outcome::unmet, ""};
    }
    const std::string wrong = what_is_wrong(thrown, expected_of(plan.kind));
    thrown = nullptr;
    if (!wrong.empty()) return {Outcome::defect, wrong};
    if (scene->state() != state) return {Outcome::defect, "another state than before"};
    scene->call();
    if (scene->result() != reference_) return {Outcome::defect, "other bits when it is called again"};
    return {Outcome::refused, ""};
  }

  std::int64_t most_;
  std::span<char*> names_;
  Board& board_;
  std::uint64_t reference_ = 0;
  Outcomes outcomes_;
};

}  // namespace
}  // namespace headlight::faults

int main(int count, char** arguments) {
  if (count < 2 || headlight_fault_board == nullptr) {
    std::fprintf(stderr, "usage: LD_PRELOAD=INJECTOR library_faults MOST [NAME...]\n");
    return 2;
  }
  static_cast<void>(headlight::faults::tiny_model());
  const std::span<char*> names(arguments + 2, static_cast<std::size_t>(count - 2));
  return headlight::faults::Driver(std::atoll(arguments[1]), names).run() ? 0 : 1;
}
