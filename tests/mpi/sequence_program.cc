// A layer learns to give zeros, on one sequence that no rank holds alone. mpirun -n 2 sequence_program
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
    constexpr std::int64_t kLength = 1000, kShards = 8;
    mpi::Group group(MPI_COMM_WORLD);
    Engine engine;
    TransformerEncoderLayer layer({.width = 32, .heads = 4});
    layer.initialize(/*seed=*/1);  // the same weights on every rank
    layer.set_training(true);
    mpi::ShardedAdamW optimizer(group, layer.parameters(), kShards);
    RowShards rows(layer.parameters(), {.length = kLength, .shards = kShards}, optimizer.shards());
    mpi::SequenceAttention attention(group, rows);
    SavedState saved(Checkpoint::keep_linear, 0, attention);
    Tensor<float, 3> x({1, rows.row_count(), 32}), y(x.shape());
    for (std::int64_t step = 0; step < 20; ++step) {
      float* next = x.data();
      for (const RowRun& run : rows.rows()) {  // of the whole, those that this rank holds
        for (std::int64_t i = 32 * run.first; i < 32 * (run.first + run.count); ++i) {
          *next++ = std::sin(static_cast<float>(i + 7 * step));
        }
      }
      optimizer.zero_gradients();
      layer.forward(engine, x, y, saved, {.seed = 1, .step = static_cast<std::uint64_t>(step)},
                    {.causal = Causal::top_left});
      layer.backward(engine, x, saved, y, y);  // y is the gradient of Σ y² / 2
      for (std::int64_t shard = 0; shard < rows.count(); ++shard) {
        rows.give(engine, shard);
        optimizer.take(engine);
      }
      const StepReport report = optimizer.step(engine, {.learning_rate = 0.04});
      if (step == 0) first = report.gradient_norm;
      last = report.gradient_norm;
      if (group.rank() == 0) std::printf("step %lld: %.17g\n", static_cast<long long>(step), last);
    }
  }
  MPI_Finalize();
  return last < first / 2 ? 0 : 1;
}
