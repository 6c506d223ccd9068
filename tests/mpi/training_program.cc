// A layer learns to give zeros, on batches of 8 shards. mpirun -n 2 training_program
#include <headlight/layers.h>
#include <headlight/mpi.h>

#include <cmath>
#include <cstdio>

using namespace headlight;

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  double first = 0, last = 0;
  {
    constexpr std::int64_t kShards = 8;
    mpi::Group group(MPI_COMM_WORLD);
    Engine engine;
    FeedForward layer({.width = 32, .dropout = 0.1f});
    layer.initialize(/*seed=*/1);  // the same weights on every rank
    layer.set_training(true);
    mpi::ShardedAdamW optimizer(group, layer.parameters(), kShards);
    SavedState saved;
    Tensor<float, 3> x({1, 20, 32}), y(x.shape());
    for (std::int64_t step = 0; step < 20; ++step) {
      optimizer.zero_gradients();
      const mpi::Run shards = optimizer.shards();  // of this rank
      for (std::int64_t shard = shards.first; shard < shards.first + shards.count; ++shard) {
        const std::int64_t number = step * kShards + shard;  // what a shard is and draws: the same on any rank
        for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(static_cast<float>(i + 7 * number));
        layer.forward(engine, x, y, saved, {.seed = 1, .step = static_cast<std::uint64_t>(number)});
        layer.backward(engine, x, saved, y, y);  // y is the gradient of Σ y² / 2
        optimizer.take(engine);
      }
      const StepReport report = optimizer.step(engine, {.learning_rate = 0.01});
      if (step == 0) first = report.gradient_norm;
      last = report.gradient_norm;
      if (group.rank() == 0) std::printf("step %lld: %.17g\n", static_cast<long long>(step), last);
    }
  }
  MPI_Finalize();
  return last < first / 2 ? 0 : 1;
}
