// Causal attention over 4096 tokens that no rank holds alone. mpirun -n 2 first_program
#include <headlight/mpi.h>

#include <cmath>
#include <cstdio>

using namespace headlight;

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  {
    mpi::Group group(MPI_COMM_WORLD);  // gone before MPI_Finalize()
    Engine engine;
    const AttentionShape whole = {.query_length = 4096,
                                  .key_length = 4096,
                                  .query_heads = 8,
                                  .key_value_heads = 2,
                                  .head_dim = 64,
                                  .value_dim = 64};
    const AttentionOptions options = {.causal = Causal::top_left};
    const mpi::Plan plan = mpi::plan(whole, options, group.rank(), group.size());
    if (group.rank() == 0) std::printf("%s\n", plan.text().c_str());
    Tensor<float, 4> query({1, plan.query_rows, 8, 64}), key({1, plan.key_rows, 2, 64}), value(key.shape()),
        out(query.shape());
    std::int64_t row = 0;
    for (const mpi::Run& run : plan.keys) {  // token i of the whole: its value is i
      for (std::int64_t i = run.first; i < run.first + run.count; ++i, ++row)
        value(0, row, 0, 0) = static_cast<float>(i);
    }
    mpi::attention(group, engine, whole, query, key, value, out, options);
    // Queries of zeros weigh all keys alike: row i is the mean of 0 … i.
    row = 0;
    for (const mpi::Run& run : plan.queries) {
      for (std::int64_t i = run.first; i < run.first + run.count; ++i, ++row) {
        if (std::abs(out(0, row, 0, 0) - static_cast<float>(i) / 2) > 0.01f) return 1;
      }
    }
    std::printf("rank %d of %d: %lld rows are as they should be\n", group.rank(), group.size(),
                static_cast<long long>(row));
  }
  return MPI_Finalize();
}
