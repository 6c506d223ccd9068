// One forward and backward pass in a process of its own: what it held at most, and how long it took.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "headlight/attention_backward.h"
#include "tools/headlight/number_text.h"
#include "tools/headlight/process.h"
#include "tools/headlight/study_memory.h"

namespace headlight::program {
namespace {

// The exit code of a child that could not have the memory.
constexpr int kNoMemory = 3;
// Beyond the budget, for what is not resident: stacks of threads, and memory that malloc() keeps in reserve.
constexpr std::int64_t kNotResident = std::int64_t{256} << 20;

// The most that was ever resident, from proc(5).
std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long long kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmHWM: %lld kB", &kibibytes) == 1) return kibibytes * 1024;
  }
  throw std::runtime_error("/proc/self/status: no VmHWM, expected the peak of resident memory");
}

// Numbers from −1 to 1 that need no memory: scores then are of the size that they have in a model.
void fill(Tensor<float, 4>& tensor, std::uint32_t seed) {
  for (float& element : tensor) {
    seed = seed * 1664525u + 1013904223u;
    element = static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-31f;
  }
}

void pass(Engine& engine, const analysis::AttentionStep& step, double& seconds) {
  const std::array<std::int64_t, 4> shape = {step.batch, step.length, step.heads, step.head_dim};
  Tensor<float, 4> query(shape), key(shape), value(shape), out(shape), out_gradient(shape);
  Tensor<float, 4> query_gradient, key_gradient(shape), value_gradient(shape), probabilities;
  Tensor<float, 3> log_sum_exp({step.batch, step.heads, step.length});
  if (!step.gradient_over_out) query_gradient = Tensor<float, 4>(shape);
  std::uint32_t seed = 0;
  for (Tensor<float, 4>* tensor : {&query, &key, &value, &out_gradient}) fill(*tensor, ++seed);

  AttentionOptions options{.causal = step.causal};
  const AttentionGradients gradients{step.gradient_over_out ? out.view() : query_gradient.view(), key_gradient,
                                     value_gradient};
  const auto start = std::chrono::steady_clock::now();
  if (step.method == analysis::AttentionMethod::unfused) {
    probabilities = Tensor<float, 4>({step.batch, step.heads, step.length, step.length});
    options.probabilities.per_head = probabilities;
    options.log_sum_exp = log_sum_exp;
    attention_unfused(engine, query, key, value, out, options);
    attention_unfused_backward(engine, query, key, value, out_gradient, gradients, options);
  } else {
    options.log_sum_exp = log_sum_exp;
    attention(engine, query, key, value, out, options);
    attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options);
  }
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
  return arguments;
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int output, std::int64_t most_bytes) {
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
  double seconds = 0;
  try {
    Engine engine(engine_arguments.options());
    pass(engine, step, seconds);
  } catch (const std::bad_alloc&) {
    ::_exit(kNoMemory);
  }
  print(format("%lld %.9g\n", static_cast<long long>(peak_resident_bytes()), seconds));
}

std::optional<MemoryRun> measure_memory_step(const analysis::AttentionStep& step, const EngineArguments& engine,
                                             std::int64_t most_bytes) {
  const std::vector<std::string> arguments = arguments_of(step, engine);
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error(std::string("a pipe to a child process: ") + std::strerror(errno));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    become(arguments, ends[1], most_bytes);
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
