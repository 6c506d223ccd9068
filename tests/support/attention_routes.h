// The ways to compute attention that must agree: tiled and unfused on every instruction set, and the plain twin.
#pragma once

#include <string>
#include <vector>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "reference/attention.h"

namespace headlight::test {

enum class Method { fused, unfused, reference };

struct Route {
  Method method = Method::fused;
  Isa isa = Isa::scalar;

  [[nodiscard]] std::string name() const {
    if (method == Method::reference) return "reference";
    return (method == Method::fused ? "fused_" : "unfused_") + std::string(headlight::name(isa));
  }

  // As attention(); the twin computes in float32 here and writes no chosen or averaged probabilities.
  void operator()(View<const float, 4> query, View<const float, 4> key, View<const float, 4> value, View<float, 4> out,
                  const AttentionOptions& options = {}, int threads = 1) const {
    if (method == Method::reference) {
      reference::attention<float>(
          query, key, value, out, options,
          {.log_sum_exp = options.log_sum_exp, .probabilities = options.probabilities.per_head});
      return;
    }
    EngineOptions engine_options;
    engine_options.threads = threads;
    engine_options.isa = isa;
    Engine engine(engine_options);
    if (method == Method::fused) return attention(engine, query, key, value, out, options);
    baseline::attention_unfused(engine, query, key, value, out, options);
  }
};

// What gtest prints for a parameter.
inline void PrintTo(const Route& route, std::ostream* stream) { *stream << route.name(); }

// The routes of the engine: fused and unfused, every instruction set.
inline std::vector<Route> engine_routes() {
  std::vector<Route> routes;
  for (const Method method : {Method::fused, Method::unfused}) {
    for (const Isa isa : available_isas()) routes.push_back({method, isa});
  }
  return routes;
}

// Those and the twin.
inline std::vector<Route> all_routes() {
  std::vector<Route> routes = engine_routes();
  routes.push_back({Method::reference, Isa::scalar});
  return routes;
}

using EachRoute = testing::TestWithParam<Route>;

}  // namespace headlight::test

#define HEADLIGHT_ON_EVERY_ROUTE(suite, routes) \
  INSTANTIATE_TEST_SUITE_P(By, suite, testing::ValuesIn(routes), [](const auto& route) { return route.param.name(); })
