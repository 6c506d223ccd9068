// One forward and backward pass in a process of its own: what it held at most, and how long it took.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "baseline/attention_unfused.h"
#include "headlight/attention_backward.h"
#include "tools/headlight/studies/memory.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/resident_memory.h"

namespace headlight::program {
namespace {

// The exit code of a child that could not have the memory.
constexpr int kNoMemory = 3;
// Seconds below which a pass is timed again, and how often.
constexpr double kShortPass = 0.25;
constexpr int kMorePasses = 4;
// Beyond the budget, for what is not resident: stacks of threads, and memory that malloc() keeps in reserve.
constexpr std::int64_t kNotResident = std::int64_t{256} << 20;

std::int64_t peak_resident_bytes() {
  if (const std::optional<std::int64_t> bytes = resident_bytes("VmHWM")) return *bytes;
  throw std::runtime_error("/proc/self/status: no VmHWM, expected the peak of resident memory");
}

// Numbers from −1 to 1 that need no memory: scores then are of the size that they have in a model.
void fill(Tensor<float, 4>& tensor, std::uint32_t seed) {
  for (float& element : tensor) {
    seed = seed * 1664525u + 1013904223u;
    element = static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-31f;
  }
}

// What one pass reads and writes.
struct PassTensors {
  explicit PassTensors(const analysis::AttentionStep& step) : PassTensors(step, shape_of(step)) {}

  Tensor<float, 4> query, key, value, out, out_gradient;
  Tensor<float, 4> query_gradient, key_gradient, value_gradient, probabilities;
  Tensor<float, 3> log_sum_exp;

 private:
  using Shape = std::array<std::int64_t, 4>;
  static Shape shape_of(const analysis::AttentionStep& step) {
    return {step.batch, step.length, step.heads, step.head_dim};
  }
  PassTensors(const analysis::AttentionStep& step, const Shape& shape)
      : query(shape),
        key(shape),
        value(shape),
        out(shape),
        out_gradient(shape),
        key_gradient(shape),
        value_gradient(shape),
        log_sum_exp({step.batch, step.heads, step.length}) {
    if (!step.gradient_over_out) query_gradient = Tensor<float, 4>(shape);
    if (step.method == analysis::AttentionMethod::unfused) {
      probabilities = Tensor<float, 4>({step.batch, step.heads, step.length, step.length});
    }
    std::uint32_t seed = 0;
    for (Tensor<float, 4>* tensor : {&query, &key, &value, &out_gradient}) fill(*tensor, ++seed);
  }
};

double seconds_of_pass(Engine& engine, const analysis::AttentionStep& step, PassTensors& t) {
  AttentionOptions options{.causal = step.causal};
  options.log_sum_exp = t.log_sum_exp;
  const AttentionGradients gradients{step.gradient_over_out ? t.out.view() : t.query_gradient.view(), t.key_gradient,
                                     t.value_gradient};
  const auto start = std::chrono::steady_clock::now();
  if (step.method == analysis::AttentionMethod::unfused) {
    options.probabilities.per_head = t.probabilities;
    baseline::attention_unfused(engine, t.query, t.key, t.value, t.out, options);
    baseline::attention_unfused_backward(engine, t.query, t.key, t.value, t.out_gradient, gradients, options);
  } else {
    attention(engine, t.query, t.key, t.value, t.out, options);
    attention_backward(engine, t.query, t.key, t.value, t.out, t.log_sum_exp, t.out_gradient, gradients, options);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The peak is that of the first pass alone, read before any other begins. Its time counts where it is long; a short
// pass spends as much on pages that nobody touched before and on threads that wake, so it is run again.
MemoryRun run_passes(Engine& engine, const analysis::AttentionStep& step) {
  PassTensors tensors(step);
  MemoryRun run;
  run.seconds = seconds_of_pass(engine, step, tensors);
  run.peak = peak_resident_bytes();
  const int more = run.seconds < kShortPass ? kMorePasses : 0;
  for (int n = 0; n < more; ++n) run.seconds = std::min(run.seconds, seconds_of_pass(engine, step, tensors));
  return run;
}

std::vector<std::string> arguments_of(const analysis::AttentionStep& step, const EngineArguments& engine) {
  const bool unfused = step.method == analysis::AttentionMethod::unfused;
  std::vector<std::string> arguments = {"headlight",
                                        "study",
                                        "memory",
                                        "--run",
                                        unfused                  ? "unfused"
                                        : step.gradient_over_out ? "over-out"
                                                                 : "recomputing",
                                        "--length",
                                        std::to_string(step.length),
                                        "--heads",
                                        std::to_string(step.heads),
                                        "--head-dim",
                                        std::to_string(step.head_dim)};
  if (engine.threads > 0) arguments.insert(arguments.end(), {"--threads", std::to_string(engine.threads)});
  if (!engine.isa.empty()) arguments.insert(arguments.end(), {"--isa", engine.isa});
  arguments.insert(arguments.end(), {"--numerics", engine.numerics});
  return arguments;
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int output, std::int64_t most_bytes, pid_t parent) {
  // Whoever ends the study ends its measurement too, which may have minutes to go.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  if (::dup2(output, STDOUT_FILENO) < 0) ::_exit(126);
  const auto most = static_cast<rlim_t>(most_bytes + kNotResident);
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_DATA, &limit);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv("/proc/self/exe", pointers.data());
  ::_exit(127);
}

std::string read_all(int descriptor) {
  std::string text;
  char buffer[256];
  for (ssize_t count = 0; (count = ::read(descriptor, buffer, sizeof buffer)) != 0;) {
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  return text;
}

}  // namespace

void run_memory_step(const analysis::AttentionStep& step, const EngineArguments& engine_arguments) {
  MemoryRun run;
  try {
    Engine engine(engine_arguments.options());
    run = run_passes(engine, step);
  } catch (const std::bad_alloc&) {
    ::_exit(kNoMemory);
  }
  print(format("%lld %.9g\n", static_cast<long long>(run.peak), run.seconds));
}

std::optional<MemoryRun> measure_memory_step(const analysis::AttentionStep& step, const EngineArguments& engine,
                                             std::int64_t most_bytes) {
  const std::vector<std::string> arguments = arguments_of(step, engine);
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error(std::string("a pipe to a child process: ") + std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    become(arguments, ends[1], most_bytes, parent);
  }
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw std::runtime_error(std::string("a child process: ") + std::strerror(error));
  }
  const std::string said = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // Where the system itself runs out of memory it ends the child by a signal.
  if ((WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) || WIFSIGNALED(status)) return {};
  MemoryRun run;
  long long peak = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
      std::sscanf(said.c_str(), "%lld %lf", &peak, &run.seconds) != 2) {
    throw std::runtime_error("the child process that was to measure " + std::to_string(step.length) +
                             " positions failed");
  }
  run.peak = peak;
  return run;
}

}  // namespace headlight::program
