// headlight-mpi train: as headlight train, over the ranks that mpirun has started. Each has the whole model and
// computes some shards of every batch; rank 0 writes.
#include <optional>

#include "tools/headlight/demonstration/trainer.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight_mpi/ranks.h"

namespace headlight::program {
namespace {

class StepsOverRanks : public demonstration::Steps {
 public:
  StepsOverRanks(mpi::Group& group, std::vector<Parameter> parameters, const demonstration::TrainingOptions& options)
      : group_(group),
        parameters_(parameters),
        optimizer_(group, std::move(parameters), options.shards, adamw_options(options)) {}

  [[nodiscard]] Shards shards() const override { return {optimizer_.shards().first, optimizer_.shards().count}; }
  void zero_gradients() override { optimizer_.zero_gradients(); }
  void add_shard(Engine& engine) override { optimizer_.take(engine); }
  StepReport step(Engine& engine, const StepOptions& options) override { return optimizer_.step(engine, options); }
  [[nodiscard]] bool writes() const override { return group_.rank() == 0; }
  [[nodiscard]] std::int64_t steps_taken() const override { return optimizer_.steps(); }
  void set_steps_taken(std::int64_t steps) override { optimizer_.set_steps(steps); }

  [[nodiscard]] std::vector<Parameter> whole_moments() override {
    std::vector<Parameter> whole;
    if (writes() && whole_.empty()) make_whole();
    for (const char* const moment :
         writes() ? std::vector{"first_moment.", "second_moment."} : std::vector<const char*>()) {
      for (const Parameter& parameter : parameters_) {
        whole.push_back({moment + parameter.name, parameter.shape, whole_[whole.size()]});
      }
    }
    optimizer_.collect_moments(0, whole);
    return whole;
  }
  [[nodiscard]] std::vector<Moment> own_moments() override {
    std::vector<Moment> own;
    for (const mpi::ShardedAdamW::Moment& moment : optimizer_.moments()) {
      own.push_back({moment.name, moment.first, moment.values});
    }
    return own;
  }

 private:
  void make_whole() {
    for (int moment = 0; moment < 2; ++moment) {
      for (const Parameter& parameter : parameters_) whole_.emplace_back(parameter.values.size());
    }
  }

  mpi::Group& group_;
  std::vector<Parameter> parameters_;
  mpi::ShardedAdamW optimizer_;
  std::vector<std::vector<float>> whole_;  // moments to be written
};

class Ranks : public TrainingRanks {
 public:
  void add_to(Command& command) override { timeout_.add_to(command); }
  void begin() override { group_.emplace(MPI_COMM_WORLD, timeout_.group()); }
  void agree(const mpi::Record& record) override { mpi::agree(*group_, {}, record); }
  void give_up(const std::exception& problem) override {
    if (dynamic_cast<const mpi::Error*>(&problem) != nullptr) return;
    try {
      mpi::agree(*group_, problem.what());
    } catch (const mpi::Error&) {
      // Wrong usage keeps its exit code.
      if (dynamic_cast<const UsageError*>(&problem) == nullptr) throw;
    }
  }
  [[nodiscard]] bool any(bool here) override { return mpi::any(*group_, here); }
  [[nodiscard]] std::unique_ptr<demonstration::Steps> make_steps(
      std::vector<Parameter> parameters, const demonstration::TrainingOptions& options) override {
    if (group_->rank() == 0 && group_->size() > options.shards) {
      print_warning(std::to_string(options.shards) + (options.shards == 1 ? " shard" : " shards") + " a step for " +
                    std::to_string(group_->size()) + " ranks: with more --shards all of them would compute");
    }
    return std::make_unique<StepsOverRanks>(*group_, std::move(parameters), options);
  }

 private:
  TimeoutArgument timeout_;
  std::optional<mpi::Group> group_;
};

}  // namespace

std::shared_ptr<TrainingRanks> training_ranks() { return std::make_shared<Ranks>(); }

}  // namespace headlight::program
