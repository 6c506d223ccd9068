#include <memory>
#include <vector>

#include "c/handles.h"
#include "c/learning_layers.h"
#include "headlight/c/mpi.h"
#include "headlight/mpi.h"
#include "mpi/c_group.h"

struct headlight_mpi_adamw {
  headlight_mpi_adamw(headlight_mpi_group& of, headlight::c::LearningLayers of_layers, std::int64_t shards,
                      const headlight::AdamWOptions& options)
      : group(of),
        layers(std::move(of_layers)),
        optimizer(of.group, layers.parameters(), shards, options),
        moments(optimizer.moments()) {}

  headlight_mpi_group& group;
  headlight::c::LearningLayers layers;
  headlight::mpi::ShardedAdamW optimizer;
  // Listed once, so that their names stay where they are.
  std::vector<headlight::mpi::ShardedAdamW::Moment> moments;
};

namespace headlight::c {
namespace {

constexpr const char* kAdamW = "mpi_adamw";

// A call of all ranks; a rank without an optimiser has nobody to tell.
template <class Prepare>
headlight_status call_of_adamw(headlight_mpi_adamw* adamw, headlight_error* error, const Prepare& prepare) noexcept {
  if (adamw == nullptr) {
    return call(error, [&] { static_cast<void>(required(kAdamW, "adamw", adamw)); });
  }
  return call_of_group(kAdamW, &adamw->group, error, [&] {
    adamw->layers.check(kAdamW);
    return prepare();
  });
}

// Views of whole moments by their addresses, as Optimizer::state() lists them.
std::vector<Parameter> whole_moments(const headlight_mpi_adamw& adamw, float* const* whole, std::int64_t count) {
  const std::vector<Parameter>& parameters = adamw.layers.parameters();
  if (count > 0 && parameters.empty()) {
    refuse(kAdamW, "count is " + std::to_string(count) + ", expected 0: there are no parameters");
  }
  std::vector<Parameter> list;
  for (std::size_t n = 0; n < static_cast<std::size_t>(std::max<std::int64_t>(count, 0)); ++n) {
    if (whole == nullptr || whole[n] == nullptr) refuse(kAdamW, "whole[" + std::to_string(n) + "] is a null pointer");
    const Parameter& like = parameters[n % parameters.size()];
    list.push_back({like.name, like.shape, {whole[n], like.values.size()}});
  }
  return list;
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_mpi_adamw_create(headlight_mpi_group* group, headlight_layer* const* layers, size_t count,
                                            int64_t shards, const headlight_adamw_options* options,
                                            headlight_mpi_adamw** adamw, headlight_error* error) {
  return call_of_group(kAdamW, group, error, [&] {
    headlight_mpi_adamw*& made = required(kAdamW, "adamw", adamw);
    made = nullptr;
    return [&made, group, shards, wanted = adamw_options(kAdamW, options),
            learning = LearningLayers(kAdamW, layers, count)](mpi::Group&) {
      made = new headlight_mpi_adamw(*group, learning, shards, wanted);
    };
  });
}

void headlight_mpi_adamw_destroy(headlight_mpi_adamw* adamw) { delete adamw; }

headlight_mpi_run headlight_mpi_adamw_shards(const headlight_mpi_adamw* adamw) {
  if (adamw == nullptr) return {0, 0};
  const mpi::Run shards = adamw->optimizer.shards();
  return {shards.first, shards.count};
}

void headlight_mpi_adamw_zero_gradients(headlight_mpi_adamw* adamw) {
  if (adamw != nullptr && adamw->layers.learn()) adamw->optimizer.zero_gradients();
}

headlight_status headlight_mpi_adamw_take(headlight_mpi_adamw* adamw, headlight_engine* engine,
                                          headlight_error* error) {
  return call(kAdamW, engine, error, [&](Engine& on) {
    headlight_mpi_adamw& handle = required(kAdamW, "adamw", adamw);
    handle.layers.check(kAdamW);
    handle.optimizer.take(on);
  });
}

headlight_status headlight_mpi_adamw_step(headlight_mpi_adamw* adamw, headlight_engine* engine,
                                          const headlight_step_options* options, headlight_step_report* report,
                                          headlight_error* error) {
  return call_of_adamw(adamw, error, [&] {
    if (report != nullptr) size_of_struct(kAdamW, "report", *report);
    return [adamw, report, &on = engine_of(kAdamW, engine), wanted = step_options(kAdamW, options)](mpi::Group&) {
      write(report, adamw->optimizer.step(on, wanted));
    };
  });
}

int64_t headlight_mpi_adamw_steps(const headlight_mpi_adamw* adamw) {
  return adamw == nullptr ? 0 : adamw->optimizer.steps();
}

headlight_status headlight_mpi_adamw_set_steps(headlight_mpi_adamw* adamw, int64_t steps, headlight_error* error) {
  return call(error, [&] { required(kAdamW, "adamw", adamw).optimizer.set_steps(steps); });
}

int64_t headlight_mpi_adamw_moment_count(const headlight_mpi_adamw* adamw) {
  return adamw == nullptr ? 0 : static_cast<int64_t>(adamw->moments.size());
}

headlight_status headlight_mpi_adamw_moment(headlight_mpi_adamw* adamw, int64_t index, const char** name,
                                            int64_t* first, int64_t* count, float** values, headlight_error* error) {
  return call(error, [&] {
    const auto& moments = required(kAdamW, "adamw", adamw).moments;
    if (index < 0 || index >= static_cast<int64_t>(moments.size())) {
      refuse(kAdamW, "index is " + std::to_string(index) + ", expected one of " + std::to_string(moments.size()));
    }
    const mpi::ShardedAdamW::Moment& moment = moments[static_cast<std::size_t>(index)];
    required(kAdamW, "name", name) = moment.name.c_str();
    required(kAdamW, "first", first) = moment.first;
    required(kAdamW, "count", count) = static_cast<int64_t>(moment.values.size());
    required(kAdamW, "values", values) = moment.values.data();
  });
}

headlight_status headlight_mpi_adamw_collect_moments(headlight_mpi_adamw* adamw, int32_t root, float* const* whole,
                                                     int64_t count, headlight_error* error) {
  return call_of_adamw(adamw, error, [&] {
    return [adamw, root, list = whole_moments(*adamw, whole, count)](mpi::Group&) {
      adamw->optimizer.collect_moments(root, list);
    };
  });
}
