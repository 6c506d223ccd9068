#include "runtime/parallel.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/costs.h"
#include "runtime/engine_state.h"
#include "runtime/job.h"

namespace headlight::runtime {
namespace {

void run_inline(std::int64_t count, TaskFunction task) noexcept {
  for (std::int64_t index = 0; index < count && !is_cancelled(); ++index) task(index, 0);
}

// Workers 1 … workers − 1 as tasks of the caller's pool, worker 0 here. Helpers that come late find no task left.
void run_on(const Executor& executor, Job& job, int workers) noexcept {
  void* const ticket = executor.run(
      executor.context, workers - 1,
      [](void* argument, int index) noexcept { static_cast<Job*>(argument)->work(index + 1); }, &job);
  job.work(0);
  executor.wait(executor.context, ticket);
}

void run(EngineState& engine, std::int64_t count, int workers, TaskFunction task, HandOut hand_out) noexcept {
  workers = static_cast<int>(std::min<std::int64_t>({workers, engine.threads, count}));
  if (workers <= 1 || inside_task) return run_inline(count, task);
  const int shares = hand_out == HandOut::in_shares ? workers : 1;
  // Asked only where threads are about to be used: a system call, some 50 ns against a wake-up of microseconds.
  if (getpid() != engine.process) return run_inline(count, task);
  if (engine.executor) {
    if (engine.executor->inside_worker(engine.executor->context)) return run_inline(count, task);
    Job job(task, count, shares);
    return run_on(*engine.executor, job, workers);
  }
  Job job(task, count, shares);
  if (!engine.pool->try_run(job, workers)) run_inline(count, task);
}

}  // namespace

void run_tasks(EngineState& engine, std::int64_t count, int workers, TaskFunction task, HandOut hand_out) noexcept {
  if (engine.cancellation_check == nullptr || current_cancellation != nullptr)
    return run(engine, count, workers, task, hand_out);
  Cancellation cancellation(engine.cancellation_check);
  // The rest of an operation whose last call was told to end: no worker begins before this one knows.
  if (cancellation.is_requested()) return;
  const ScopedCancellation scoped(&cancellation);
  run(engine, count, workers, task, hand_out);
}

void throw_if_stopped(Engine& engine) {
  const CancellationCheck check = engine.state().cancellation_check;
  if (current_cancellation != nullptr ? is_cancelled() : check != nullptr && check()) throw Cancelled();
}

int workers_from_here(const Engine& engine) noexcept { return inside_task ? 1 : engine.threads(); }

// Measured on two cores of a Zen 5 virtual machine: a call whose tasks end at once returns after 0.2–0.4 µs (the worker
// is not waited for); a spinning worker arrives 0.4–1.2 µs after the call; waking a sleeping one costs the caller 7 µs,
// and it arrives after 17–28 µs. So ten microseconds of work on two workers take 5.6–6.7 µs instead of 10.4 while calls
// follow one another (workers spin for 50 µs by default), and 18–19 when they do not; from 30–40 µs on two workers
// always win. The answer hangs on the arguments alone, not on who is awake: callers size their scratch by it.
int workers_for(const Engine& engine, std::int64_t tasks, double nanoseconds) noexcept {
  const auto most = static_cast<double>(std::min<std::int64_t>(engine.threads(), tasks));
  return static_cast<int>(std::max(1.0, std::min(nanoseconds / costs::kPerWorker, most)));
}

}  // namespace headlight::runtime
