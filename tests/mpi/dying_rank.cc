// The last rank is killed in the middle of its work. The others end with an error that names it, within the timeout,
// and say so; mpirun, which by default ends them all itself, is asked not to.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "headlight/mpi.h"

int main(int argc, char** argv) {
  using headlight::Tensor;
  using Clock = std::chrono::steady_clock;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  headlight::mpi::Group group(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(1)});
  headlight::Engine engine({.threads = 1});
  constexpr headlight::AttentionShape kWhole = {.query_length = 2048,
                                                .key_length = 2048,
                                                .query_heads = 4,
                                                .key_value_heads = 4,
                                                .head_dim = 32,
                                                .value_dim = 32};
  const headlight::mpi::Plan plan = headlight::mpi::plan(kWhole, {}, group.rank(), group.size());
  const Tensor<float, 4> share({1, plan.query_rows, 4, 32});
  Tensor<float, 4> out(share.shape());
  std::jthread killer;
  if (group.rank() == group.size() - 1) {
    killer = std::jthread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(::getpid(), SIGKILL);
    });
  }
  const Clock::time_point begin = Clock::now();
  try {
    while (Clock::now() - begin < std::chrono::seconds(20)) {
      headlight::mpi::attention(group, engine, kWhole, share, share, share, out);
    }
    std::printf("rank %d: no error\n", group.rank());
  } catch (const headlight::mpi::Error& error) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::printf("rank %d ended after %s with an error of %s\n", group.rank(),
                seconds < 10 ? "less than 10 s" : "too long", error.what());
  }
  std::fflush(stdout);
  // Nobody waits for the one that is gone.
  ::_exit(0);
}
