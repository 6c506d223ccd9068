// headlight-mpi: what headlight does on one machine, over the ranks that mpirun starts. Exit codes as headlight's.
#include <mpi.h>

#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight_mpi/ranks.h"

namespace headlight::program {
namespace {

void add_commands(Command& commands) {
  add_attend(commands, calls_over_ranks());
  add_train(commands, training_ranks());
  Command study = commands.add_subcommand("study", "What ranks cost and what they buy, measured here");
  study.require_subcommand();
  add_study_scale(study);
}

// What ends all ranks alike is said once.
void say_nothing(std::string_view) noexcept {}

}  // namespace
}  // namespace headlight::program

int main(int count, char** arguments) {
  using namespace headlight::program;
  prepare_process();
  int provided = 0, rank = 0;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int code =
      run({"Multi-head attention over the ranks of MPI", add_commands, rank == 0 ? print_error : say_nothing}, count,
          arguments);
  // All have the same arguments; but what has failed on one, others may wait for.
  if (code == 1) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
