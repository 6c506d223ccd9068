// What training_bytes() foretells, against the most that was resident in a process that does nothing else.
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "headlight/analysis/training_cost.h"
#include "headlight/optimizer.h"
#include "layers/encoder_twin.h"
#include "support/keepings.h"
#include "support/process_status.h"
#include "support/sanitizer.h"

namespace headlight::test::training_memory_test {

// Sanitizers keep shadows of what is resident.
const bool kCounts = !under_sanitizer();

// What f() adds to the peak of resident memory of a child process that has run warm_up(), whose code then lies in
// memory; nothing where the system does not tell.
template <class WarmUp, class Function>
std::optional<std::int64_t> peak_of(WarmUp warm_up, Function f) {
  int ends[2] = {};
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    std::int64_t added = -1;
    warm_up();
    std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // the peak begins anew
    const std::int64_t before = status_bytes("VmRSS");
    const bool begins_anew = before > 0 && status_bytes("VmHWM") <= before + (1 << 20);
    f();
    if (begins_anew) added = status_bytes("VmHWM") - before;
    ::_exit(::write(ends[1], &added, sizeof added) == sizeof added ? 0 : 1);
  }
  ::close(ends[1]);
  std::int64_t added = -1;
  const bool told = child > 0 && ::read(ends[0], &added, sizeof added) == sizeof added;
  ::close(ends[0]);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  EXPECT_TRUE(told && status == 0);
  return added >= 0 ? std::optional(added) : std::nullopt;
}

void train(const analysis::TrainingPlan& plan, const Tokens& tokens, int threads) {
  Engine engine({.threads = threads});
  Tensor<float, 2> hidden({tokens.count(), plan.encoder.width});
  Encoder encoder(plan.encoder);
  encoder.initialize(1);
  encoder.set_training(true);
  AdamW adamw(encoder.parameters());
  SavedState saved = Keeping::of(plan).saved();
  for (int step = 0; step < 2; ++step) {
    encoder.forward(engine, tokens.input(), hidden, saved, {});
    encoder.backward(engine, tokens.input(), saved, hidden);
    adamw.step(engine, {});
  }
}

TEST(TrainingMemory, IsThePeakOfWhatIsResident) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's memory";
  const std::vector<std::int64_t> lengths = {1300};
  Random random(1);
  const Tokens tokens(random, 100, lengths), few_tokens(random, 100, {40});
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const Keeping& keeping : kKeepings) {
      const int threads = norm == Norm::post ? 1 : 2;
      analysis::TrainingPlan plan = {.encoder = {.vocabulary = 100,
                                                 .max_positions = 1300,
                                                 .token_types = 2,
                                                 .width = 128,
                                                 .heads = 4,
                                                 .layers = 4,
                                                 .norm = norm},
                                     .lengths = lengths,
                                     .checkpoint = keeping.checkpoint};
      if (keeping.unfused) plan.attention = analysis::AttentionMethod::unfused;
      analysis::TrainingPlan short_plan = plan;
      short_plan.encoder.layers = 1;
      short_plan.encoder.width = 32;
      std::int64_t foretold = 0;
      {
        const Engine engine({.threads = threads});
        foretold = analysis::training_bytes(engine, plan).all() + 4 * tokens.count() * plan.encoder.width;
      }
      const std::optional<std::int64_t> peak =
          peak_of([&] { train(short_plan, few_tokens, threads); }, [&] { train(plan, tokens, threads); });
      if (!peak) GTEST_SKIP() << "proc(5) does not tell";
      EXPECT_LE(std::abs(*peak - foretold), std::max<std::int64_t>(foretold / 20, 4 << 20))
          << "norm " << static_cast<int>(norm) << ", " << keeping << ": " << *peak << ", " << foretold;
      RecordProperty("checkpoint_" + std::to_string(static_cast<int>(keeping.checkpoint)) +
                         (keeping.unfused ? "_unfused" : "") + "_norm_" + std::to_string(static_cast<int>(norm)),
                     std::to_string(*peak) + " of " + std::to_string(foretold));
    }
  }
}

}  // namespace headlight::test::training_memory_test
