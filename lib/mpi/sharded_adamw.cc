#include <array>
#include <cstdio>
#include <string>

#include "headlight/out_of_memory.h"
#include "headlight/system.h"
#include "layers/optimizer_runs.h"
#include "layers/shard_nodes.h"
#include "mpi/call.h"
#include "mpi/digest.h"
#include "mpi/group.h"
#include "mpi/sharded_state.h"
#include "ops/check.h"

namespace headlight::mpi {
namespace {

using layers::kMostShards;

std::string text_of(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", number);
  return text.data();
}

std::string text_of(const std::vector<Parameter>& parameters) {
  Digest digest;
  for (const Parameter& parameter : parameters) {
    digest.add(std::as_bytes(std::span(parameter.name)));
    digest.add(std::as_bytes(std::span(parameter.shape)));
    digest.add(std::as_bytes(parameter.values));
  }
  return std::to_string(parameters.size()) + ", digest of names, shapes and values " + std::to_string(digest.sum());
}

Record record_of(std::string_view call) {
  return {{"headlight", system_info().version}, {"the call", std::string(kShardedAdamW) + "::" + std::string(call)}};
}

}  // namespace

ShardedAdamW::ShardedAdamW(Group& group, std::vector<Parameter> parameters, std::int64_t shards,
                           const AdamWOptions& options) {
  Transport& transport = group.state().transport;
  double seconds = 0;
  Record record = record_of("ShardedAdamW");
  record.insert(record.end(), {{"shards", std::to_string(shards)},
                               {"options.beta1", text_of(options.beta1)},
                               {"options.beta2", text_of(options.beta2)},
                               {"options.epsilon", text_of(options.epsilon)},
                               {"options.weight_decay", text_of(options.weight_decay)},
                               {"parameters", text_of(parameters)}});
  together(
      transport, record, seconds,
      [&] {
        if (shards < 1 || shards > kMostShards) {
          ops::fail(kShardedAdamW,
                    "shards is " + std::to_string(shards) + ", expected 1 to " + std::to_string(kMostShards));
        }
        state_ = std::make_unique<State>(transport, std::move(parameters), shards);
        for (const Parameter& parameter : state_->parameters) {
          if (parameter.gradient.size() == parameter.values.size()) continue;
          ops::fail(kShardedAdamW,
                    "parameter " + parameter.name + " has no gradient, expected those of a layer in training");
        }
        try {
          state_->cut();
          state_->lay_out_nodes();
          state_->make_optimizer(options);
        } catch (const OutOfMemory&) {
          throw;
        } catch (const std::bad_alloc&) {
          throw OutOfMemory(kShardedAdamW, state_->elements * sizeof(float));
        }
      },
      [] {});
}

// What MPI may still read or write stays; see Transport.
ShardedAdamW::~ShardedAdamW() {
  if (state_ != nullptr && state_->transport.has_failed()) static_cast<void>(state_.release());
}

ShardedAdamW::ShardedAdamW(ShardedAdamW&& other) noexcept = default;
ShardedAdamW& ShardedAdamW::operator=(ShardedAdamW&& other) noexcept {
  ShardedAdamW old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Run ShardedAdamW::shards() const noexcept { return state_->own_shards(); }

void ShardedAdamW::zero_gradients() noexcept {
  headlight::zero_gradients(state_->parameters);
  if (state_->tree) state_->tree->clear();
}

void ShardedAdamW::take(Engine& engine) {
  if (!state_->tree) ops::fail(kShardedAdamW, "a shard is taken on a rank that has none");
  state_->tree->take(engine);
}

StepReport ShardedAdamW::step(Engine& engine, const StepOptions& options) {
  State& state = *state_;
  StepReport report;
  double seconds = 0;
  Record record = record_of("step");
  record.insert(record.end(), {{"the instruction set", std::string(name(engine.isa()))},
                               {"the numerics", std::string(name(engine.numerics()))},
                               {"steps", std::to_string(steps())},
                               {"options.learning_rate", text_of(options.learning_rate)},
                               {"options.max_norm", text_of(options.max_norm)}});
  together(
      state.transport, record, seconds,
      [&] {
        layers::check_step(kShardedAdamW, options);
        if (!state.all_taken()) {
          ops::fail(kShardedAdamW, "step() comes before all " + std::to_string(state.own_shards().count) +
                                       " shards of the rank are taken");
        }
      },
      [&] {
        state.add_up();
        state.exchange_sums(engine);
        report = layers::report_of(state.sums, [&](std::size_t slice) -> std::string_view {
          return state.parameters[state.slices[slice].parameter].name;
        });
        if (!report.taken()) return;
        state.adamw->update_for_norm(engine, options, report.gradient_norm);
        state.give_round();
      });
  return report;
}

std::int64_t ShardedAdamW::steps() const noexcept { return state_->adamw->steps(); }
void ShardedAdamW::set_steps(std::int64_t steps) { state_->adamw->set_steps(steps); }

std::vector<ShardedAdamW::Moment> ShardedAdamW::moments() {
  std::vector<Moment> list;
  const Range own = state_->own_slices();
  const std::vector<Parameter> state = state_->adamw->state();
  for (std::size_t n = 0; n < state.size(); ++n) {
    list.push_back(
        {state[n].name, static_cast<std::int64_t>(state_->slices[own.begin + n % own.size()].begin), state[n].values});
  }
  return list;
}

void ShardedAdamW::collect_moments(int root, std::span<const Parameter> whole) {
  State& state = *state_;
  Transport& transport = state.transport;
  double seconds = 0;
  Record record = record_of("collect_moments");
  record.insert(record.end(), {{"root", std::to_string(root)}, {"steps", std::to_string(steps())}});
  std::vector<Parameter> own;
  together(
      transport, record, seconds,
      [&] {
        if (root < 0 || root >= transport.size()) {
          ops::fail(kShardedAdamW, "root is " + std::to_string(root) + ", expected a rank of the group");
        }
        if (transport.rank() == root) state.check_whole(whole);
        own = state.adamw->state();
      },
      [&] {
        const std::size_t count = state.parameters.size();
        for (std::size_t moment = 0; moment < kMoments; ++moment) {
          state.bring_together(root, std::span<const Parameter>(own).subspan(moment * state.own_slices().size(),
                                                                             state.own_slices().size()));
          if (transport.rank() == root) state.give_slices(whole.subspan(moment * count, count));
        }
      });
}

}  // namespace headlight::mpi
