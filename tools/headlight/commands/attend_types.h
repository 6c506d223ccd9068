// The types that headlight attend holds its arrays in: --type and --cache-type.
#pragma once

#include <span>
#include <string>

#include "headlight/attention_backward.h"
#include "headlight/typed_view.h"
#include "tools/headlight/support/command.h"

namespace headlight::program {

struct TypeArguments {
  std::string type = "float32";
  std::string cache_type;  // empty: as type

  void add_to(Command& command);
  [[nodiscard]] NumberType of_query() const;  // and of the result
  [[nodiscard]] NumberType of_cache() const;  // of key and value
  [[nodiscard]] bool all_float32() const {
    return of_query() == NumberType::float32 && of_cache() == NumberType::float32;
  }
};

// Each number becomes the nearest of the type, of two the even.
void round_to(NumberType type, std::span<float> numbers);

// attention() over operands of those types, which hold the numbers handed in; the result is widened into `out`.
void attend_typed(Engine& engine, const TypeArguments& types, const View<const float, 4>& query,
                  const View<const float, 4>& key, const View<const float, 4>& value, const View<float, 4>& out,
                  const AttentionOptions& options);

// What attention_backward() takes.
struct FloatOperands {
  View<const float, 4> query, key, value, out;
  View<const float, 3> log_sum_exp;
  View<const float, 4> out_gradient;
};
// attention_backward() likewise. Each gradient is of the type of what it is a gradient of, and is widened.
void differentiate_typed(Engine& engine, const TypeArguments& types, const FloatOperands& operands,
                         const AttentionGradients& gradients, const AttentionOptions& options);

}  // namespace headlight::program
