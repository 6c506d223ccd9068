// Tasks over the engine's workers, and scratch memory for one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "headlight/engine.h"
#include "runtime/inner_api.h"
#include "simd/integers.h"

namespace headlight::runtime {

// A borrowed `void(std::int64_t task, int worker)`, called without allocation.
class TaskFunction {
 public:
  // Not for another TaskFunction, which is copied: wrapping it would borrow a local.
  template <class Function>
  requires(!std::is_same_v<std::remove_cv_t<Function>, TaskFunction>) explicit TaskFunction(Function& function) noexcept
      : object_(&function), call_([](void* object, std::int64_t task, int worker) noexcept {
          (*static_cast<Function*>(object))(task, worker);
        }) {}

  void operator()(std::int64_t task, int worker) const noexcept { call_(object_, task, worker); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, int) noexcept;
};

// `count` things cut into runs of neighbours, all of them as long or, the first ones, one longer. Tasks, rows of
// products and rows of everything else are cut so, and their cuts meet.
struct Runs {
  // A single run.
  explicit constexpr Runs(std::int64_t count) noexcept : length(count) {}
  constexpr Runs(std::int64_t count, std::int64_t runs) noexcept : length(count / runs), longer(count % runs) {}

  // Where a run begins.
  [[nodiscard]] constexpr std::int64_t first(std::int64_t run) const noexcept {
    return run * length + (run < longer ? run : longer);
  }

  std::int64_t length;
  std::int64_t longer = 0;
};
[[nodiscard]] constexpr std::int64_t first_of_run(std::int64_t count, std::int64_t runs, std::int64_t run) noexcept {
  return Runs(count, runs).first(run);
}

enum class HandOut : std::uint8_t {
  // Worker l begins with the l-th of `workers` equal runs of neighbouring tasks, in ascending order, and then helps the
  // others. Work on rows that is cut into such runs finds its rows where the last call left them, whatever it does.
  in_shares,
  // Ascending, to whoever comes first: where a task waits for the one before it, that one is at work, or done.
  in_order,
};

// Runs tasks 0 … count − 1 on at most `workers` workers (clamped to engine.threads()); returns when all have ended.
// `worker` is in [0, workers) and no two tasks run on one worker at once. With workers ≤ 1 or count ≤ 1 everything runs
// on the calling thread as worker 0, in ascending order, and no other thread is touched; likewise inside a task of
// another call, in a forked child, and when the workers are serving another thread's call. Tasks must not throw. Where
// the call is told to end (cancellation.h), those that have not begun never do.
HEADLIGHT_INNER_API void run_tasks(EngineState& engine, std::int64_t count, int workers, TaskFunction task,
                                   HandOut hand_out) noexcept;

template <class Function>
void parallel_for(Engine& engine, std::int64_t count, int workers, Function&& function,
                  HandOut hand_out = HandOut::in_shares) noexcept {
  run_tasks(engine.state(), count, workers, TaskFunction(function), hand_out);
}

// The most workers that parallel_for() uses if it is called from here: one inside a task of another call. For the size
// of scratch: it may yet use fewer.
[[nodiscard]] HEADLIGHT_INNER_API int workers_from_here(const Engine& engine) noexcept;

// How many workers are worth waking for so much work: 1 when it is over before a sleeping worker would have come.
// `nanoseconds` is the caller's estimate of the whole call on one thread. The same arguments always give the same
// answer, so scratch may be sized by it.
[[nodiscard]] HEADLIGHT_INNER_API int workers_for(const Engine& engine, std::int64_t tasks,
                                                  double nanoseconds) noexcept;

// For the caller between two parallel calls: throws Cancelled where the call was told to end.
void throw_if_stopped(Engine& engine);

// Scratch memory for the duration of one call, borrowed from the engine and kept by it for the next: 128-byte aligned,
// not cleared. Nested calls take separate blocks; the smallest idle block that fits is taken, so a repeated sequence
// of calls allocates nothing. Throws OutOfMemory, which names `who` asked.
class Scratch {
 public:
  HEADLIGHT_INNER_API Scratch(Engine& engine, std::size_t bytes, std::string_view who);
  HEADLIGHT_INNER_API ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  EngineState* engine_;
  int slot_;
  std::byte* data_;
};

// Makes the engine hold idle blocks of at least those sizes at once (nested calls: one size for each level). Throws as
// Scratch does.
void reserve_scratch(Engine& engine, const std::size_t* sizes, std::size_t count, std::string_view who);

// Where some elements of T lie in a block of scratch memory. Only its layout makes one, so what is placed as one type
// is not read as another.
template <class T>
class ScratchPart {
 public:
  ScratchPart() = default;
  [[nodiscard]] T* in(std::byte* block) const noexcept { return reinterpret_cast<T*>(block + offset_); }

 private:
  friend class ScratchLayout;
  explicit ScratchPart(std::size_t offset) noexcept : offset_(offset) {}
  std::size_t offset_ = 0;
};

// Adds up the parts of a scratch block, each 128-byte aligned: run once for the size, and again to place the parts.
class ScratchLayout {
 public:
  // Room for as many elements of T as the product of the counts, each ≥ 0. A size that passes 63 bits stays just beyond
  // them instead of wrapping around to a small one: Scratch then throws std::bad_alloc.
  template <class T, class... Counts>
  ScratchPart<T> add(Counts... counts) noexcept {
    const ScratchPart<T> placed(bytes_);
    std::size_t part = sizeof(T);
    const bool wraps = (__builtin_mul_overflow(part, static_cast<std::size_t>(counts), &part) || ...);
    if (wraps || part > kTooMany - bytes_) {
      bytes_ = kTooMany;
    } else {
      bytes_ += round_up(part, 128);
    }
    return placed;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kTooMany = std::size_t{1} << 63;

  std::size_t bytes_ = 0;
};

}  // namespace headlight::runtime
