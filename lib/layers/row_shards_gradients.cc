// The gradients that shards of rows keep apart, until they are given to whoever joins them.
#include <algorithm>
#include <functional>

#include "headlight/row_shards.h"
#include "ops/check.h"
#include "runtime/costs.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight {

namespace {

constexpr std::string_view kRowShards = "RowShards";
// Elements that a task moves at a time.
constexpr std::int64_t kElementsOfATask = 2048;

void check_shard(std::int64_t shard, std::int64_t count) {
  if (shard >= 0 && shard < count) return;
  ops::fail(kRowShards, "shard is ", shard, ", expected 0 to ", count - 1);
}

}  // namespace

std::span<float> RowShards::kept(std::int64_t shard) noexcept {
  return std::span(memory_).subspan(static_cast<std::size_t>(shard) * elements_, elements_);
}

void RowShards::keep(Engine& engine, std::int64_t shard, std::span<float> gradient) {
  check_shard(shard, count());
  if (gradient.empty()) return;
  const auto behind = std::upper_bound(
      places_.begin(), places_.end(), gradient.data(),
      [](const float* address, const Place& place) { return std::less<>()(address, place.gradient.data()); });
  const Place* const place = behind == places_.begin() ? nullptr : &behind[-1];
  const auto at = place == nullptr ? 0 : static_cast<std::size_t>(gradient.data() - place->gradient.data());
  if (place == nullptr || at >= place->gradient.size()) {
    ops::fail(kRowShards, "a gradient is to be kept that is of none of its parameters, expected those of the layer");
  }
  // Of several parameters that lie side by side, all are kept or none.
  if (const std::size_t of_place = place->gradient.size() - at; gradient.size() > of_place) {
    keep(engine, shard, gradient.subspan(of_place));
    gradient = gradient.first(of_place);
  }
  float* const from = gradient.data();
  float* const to = kept(shard).subspan(place->first + at).data();
  const auto elements = static_cast<std::int64_t>(gradient.size());
  const std::int64_t tasks = divide_up(elements, kElementsOfATask);
  const double nanoseconds = runtime::costs::kOptimizer * static_cast<double>(elements);
  runtime::parallel_for(engine, tasks, runtime::workers_for(engine, tasks, nanoseconds), [=](std::int64_t task, int) {
    const std::int64_t end = std::min((task + 1) * kElementsOfATask, elements);
    for (std::int64_t e = task * kElementsOfATask; e < end; ++e) to[e] += from[e];
    std::fill(from + task * kElementsOfATask, from + end, 0.0f);
  });
}

void RowShards::give(Engine& engine, std::int64_t shard) {
  check_shard(shard, count());
  float* const from = kept(shard).data();
  const auto tasks = static_cast<std::int64_t>(places_.size());
  const double nanoseconds = runtime::costs::kOptimizer * static_cast<double>(elements_);
  runtime::parallel_for(engine, tasks, runtime::workers_for(engine, tasks, nanoseconds), [&](std::int64_t task, int) {
    const Place& place = places_[static_cast<std::size_t>(task)];
    std::copy_n(from + place.first, place.gradient.size(), place.gradient.data());
    std::fill_n(from + place.first, place.gradient.size(), 0.0f);
  });
}

void RowShards::clear() noexcept { std::fill(memory_.begin(), memory_.end(), 0.0f); }

}  // namespace headlight
