// headlight-mpi study scale: how much faster more ranks are, how much of the transfers is hidden, and what a rank
// holds.
#include "tools/headlight_mpi/scale.h"

#include <memory>

#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace {

void run(const scale_study::Arguments& arguments) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::int64_t length = arguments.length > 0 ? arguments.length : arguments.study.quick ? 2048 : 16384;
  const Engine engine(arguments.study.engine.options());
  scale_study::Study study{.arguments = arguments,
                           .whole = {.query_length = length,
                                     .key_length = length,
                                     .query_heads = arguments.heads,
                                     .key_value_heads = arguments.heads,
                                     .head_dim = arguments.head_dim,
                                     .value_dim = arguments.head_dim},
                           .threads = engine.threads(),
                           .isa = std::string(name(engine.isa()))};
  scale_study::measure(study);
  if (rank > 0) return;
  scale_study::foretell(study);
  arguments.study.give(as_text(study), as_json(study), [&] { return as_svg(study); });
}

}  // namespace

void add_study_scale(Command& study) {
  Command command =
      study.add_subcommand("scale", "How much faster more ranks are, and what of the transfers is hidden");
  const auto arguments = std::make_shared<scale_study::Arguments>();
  command.add_option("--length", arguments->length, "Rows and keys (default: 16384, with --quick 2048)")
      .type_name("L")
      .check(at_least(1));
  command.add_option("--heads", arguments->heads, "Heads (default: 4)").type_name("H").check(between(1, 1024));
  command.add_option("--head-dim", arguments->head_dim, "Of each head (default: 64)")
      .type_name("D")
      .check(between(1, 1024));
  command
      .add_option("--far-length", arguments->far_length,
                  "Rows and keys of what is foretold for up to 1024 ranks (default: 1048576)")
      .type_name("L")
      .check(between(1, std::int64_t{1} << 40));
  constexpr NumberType kTypes[] = {NumberType::float32, NumberType::bfloat16, NumberType::float16};
  take_number_type(
      command.add_option("--type", arguments->type,
                         "Of query, key, value and the result, and of the gradients of these (default: float32)"),
      kTypes);
  command.add_option("--repeats", arguments->repeats, "Of which the best counts (default: 3)")
      .type_name("N")
      .check(between(1, 1000));
  command.add_flag("--all-ranks-alone", arguments->all_ranks_alone,
                   "Measure all ranks together, neither fewer of them nor one process");
  arguments->ranks.add_to(command);
  arguments->study.add_to(command);
  command.example("--quick",
                  "Started as: mpirun -n 4 headlight-mpi study scale. Every number of ranks up to 4 is measured.");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace headlight::program
