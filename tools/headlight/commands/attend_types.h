// The types that headlight attend holds its arrays in: --type and --cache-type.
#pragma once

#include <optional>
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
  // Of their gradients, and of themselves there: those of int8 are floats.
  [[nodiscard]] NumberType of_cache_backward() const;
  [[nodiscard]] bool all_float32() const {
    return of_query() == NumberType::float32 && of_cache() == NumberType::float32;
  }
};

// Each number becomes the nearest of the type, of two the even.
void round_to(NumberType type, std::span<float> numbers);

// Keys or values as a cache of int8 holds them, with a scale for each row and head.
struct Int8Rows {
  // `rows` then hold the same, as floats.
  explicit Int8Rows(const View<float, 4>& rows);
  Tensor<std::int8_t, 4> numbers;
  Tensor<float, 3> scales;
};
struct Int8Cache {
  std::optional<Int8Rows> key, value;  // where the type is int8
};

// attention() over operands of those types, which hold the numbers handed in; the result is widened into `out`.
void attend_typed(Engine& engine, const TypeArguments& types, const View<const float, 4>& query,
                  const View<const float, 4>& key, const View<const float, 4>& value, const Int8Cache& cache,
                  const View<float, 4>& out, const AttentionOptions& options);

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
