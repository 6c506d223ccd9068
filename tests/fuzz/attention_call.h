// A call of attention through the C interface, drawn from bytes.
#pragma once

#include <vector>

#include "c/arguments.h"
#include "fuzz/c_tensor.h"
#include "headlight/tensor.h"

namespace headlight::fuzz {

struct AttentionCall {
  using Floats = CTensor<float>;
  using List = std::vector<std::int64_t>;
  static constexpr auto kInput = Floats::Kind::input;
  static constexpr auto kOutput = Floats::Kind::output;

  explicit AttentionCall(Bytes& bytes) : random(bytes.byte()) {
    const std::uint8_t choice = bytes.byte();
    numbers = choice % 8 == 7 ? Numbers::any : Numbers::tame;
    const bool is_long = choice % 16 == 8;
    batch = bytes.integer(0, 3);
    query_length = bytes.integer(0, is_long ? 90 : 13);
    key_length = bytes.integer(0, is_long ? 400 : 24);
    key_value_heads = bytes.integer(0, 3);
    query_heads = key_value_heads * bytes.integer(1, 3);
    head_dim = bytes.integer(0, choice % 16 == 9 ? 140 : 20);
    value_dim = bytes.integer(0, choice % 16 == 10 ? 140 : 20);
    query.draw(bytes, {batch, query_length, query_heads, head_dim}, kInput, random, numbers);
    key.draw(bytes, {batch, key_length, key_value_heads, head_dim}, kInput, random, numbers);
    value.draw(bytes, {batch, key_length, key_value_heads, value_dim}, kInput, random, numbers);
    out.draw(bytes, {batch, query_length, query_heads, value_dim}, kOutput, random, numbers);
    draw_masks(bytes);
    draw_modifiers(bytes);
    draw_outputs(bytes);
    const std::uint8_t twist = bytes.byte();
    if (twist == 255) options.struct_size = struct_size(bytes, options.struct_size);
    if (twist == 254) out.tensor() = query.tensor();
    if (twist == 253) out.tensor() = value.tensor();
    options.query_lengths = indices(query_lengths);
    options.key_lengths = indices(key_lengths);
    options.query_offsets = indices(query_offsets);
    options.key_offsets = indices(key_offsets);
    options.query_start = indices(query_start);
    options.key_start = indices(key_start);
    probabilities.rows = indices(rows);
  }
  AttentionCall(const AttentionCall&) = delete;
  AttentionCall& operator=(const AttentionCall&) = delete;

  // f(tensor) for everything that the call writes.
  template <class Function>
  void for_each_output(Function f) {
    for (Floats* each : {&out, &log_sum_exp, &per_head, &averaged, &scores}) f(*each);
  }

  // Operands of 16 bits, seldom; and floats in their place again.
  void narrow(Bytes& bytes) {
    for_each_operand([&](Floats& operand) { operand.narrow(bytes); });
  }
  void widen() {
    for_each_operand([](Floats& operand) { operand.widen(); });
  }
  [[nodiscard]] bool is_narrow() const noexcept {
    return query.is_narrow() || key.is_narrow() || value.is_narrow() || out.is_narrow();
  }
  // Whether the engine may multiply pairs of bfloat16, whose sums are others than float32's.
  [[nodiscard]] bool may_multiply_pairs(const headlight_engine* engine) const noexcept {
    return (headlight_engine_features(engine) & HEADLIGHT_FEATURE_AVX512_BF16) != 0 &&
           query.stored_as() == NumberType::bfloat16 && key.stored_as() == NumberType::bfloat16 &&
           value.stored_as() == NumberType::bfloat16;
  }

  // Whether the operands have the sizes below.
  [[nodiscard]] bool has_sane_shapes() const noexcept {
    return query.is_sane() && key.is_sane() && value.is_sane() && out.is_sane();
  }

  test::Random random;
  Numbers numbers = Numbers::tame;
  std::int64_t batch = 0, query_length = 0, key_length = 0, query_heads = 0, key_value_heads = 0, head_dim = 0,
               value_dim = 0;
  Floats query, key, value, out, bias, slopes, sinks, log_sum_exp, per_head, averaged, scores;
  CTensor<std::uint8_t> mask;
  List query_lengths, key_lengths, query_offsets, key_offsets, query_start, key_start, rows;
  headlight_window window{};
  headlight_probabilities probabilities = HEADLIGHT_OPTIONS(headlight_probabilities);
  headlight_dropout dropout{};
  float scale = 0, softcap = 0;
  headlight_attention_options options = HEADLIGHT_OPTIONS(headlight_attention_options);

 private:
  template <class Function>
  void for_each_operand(Function f) {
    for (Floats* each : {&query, &key, &value, &out}) f(*each);
  }
  static headlight_indices indices(const List& list) {
    return {list.empty() ? nullptr : list.data(), static_cast<std::int64_t>(list.size())};
  }

  // `count` numbers from 0 to `most`; seldom one more or less, or any.
  static List numbers_of(Bytes& bytes, std::int64_t count, std::int64_t most) {
    const std::uint8_t twist = bytes.byte();
    if (twist == 255) ++count;
    if (twist == 254) --count;
    List list(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    for (std::int64_t& each : list) each = bytes.wild(bytes.integer(0, std::max<std::int64_t>(most, 0)));
    return list;
  }
  static List offsets_of(Bytes& bytes, std::int64_t sequences, std::int64_t length) {
    List list = numbers_of(bytes, sequences + 1, length);
    if (list.empty()) return list;
    if (bytes.byte() != 255) std::sort(list.begin(), list.end());
    list.front() = bytes.wild(0);
    list.back() = bytes.wild(length);
    return list;
  }
  [[nodiscard]] std::vector<std::int64_t> broadcast(std::uint8_t which) const {
    std::vector<std::int64_t> shape{batch, query_heads, query_length, key_length};
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if ((which >> axis & 1) != 0) shape[axis] = 1;
    }
    return shape;
  }

  void draw_masks(Bytes& bytes) {
    options.causal = static_cast<headlight_causal>(bytes.integer(0, 3) % 3);
    options.align = static_cast<headlight_align>(bytes.integer(0, 5) % 3);
    if (bytes.once_in(3)) {
      window = {bytes.wild(bytes.integer(-1, 20)), bytes.wild(bytes.integer(-1, 20))};
      options.window = &window;
    }
    if (bytes.once_in(4)) options.chunk = bytes.wild(bytes.integer(1, 40));
    if (bytes.once_in(4)) {
      const std::int64_t sequences = bytes.integer(1, 4);
      query_offsets = offsets_of(bytes, sequences, query_length);
      if (bytes.once_in(2)) key_offsets = offsets_of(bytes, sequences, key_length);
    } else {
      if (bytes.once_in(4)) query_lengths = numbers_of(bytes, batch, query_length);
      if (bytes.once_in(3)) key_lengths = numbers_of(bytes, batch, key_length);
    }
    if (bytes.once_in(4)) query_start = numbers_of(bytes, bytes.once_in(2) ? 1 : batch, 60);
    if (bytes.once_in(4)) key_start = numbers_of(bytes, bytes.once_in(2) ? 1 : batch, 60);
    if (!bytes.once_in(4)) return;
    mask.draw(bytes, broadcast(bytes.byte()), CTensor<std::uint8_t>::Kind::input, random, numbers);
    options.mask = mask.get();
    options.mask_means = static_cast<headlight_mask_means>(bytes.wild(bytes.integer(1, 2)));
  }

  // Half of them run backwards somewhere; seldom along the keys, which is refused.
  void turn_bias(std::uint8_t which) {
    if ((which & 128) == 0) return;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if ((which >> 4 >> axis & 1) != 0) bias.turn_around(axis);
    }
    if (which >> 4 == 15) bias.turn_around(3);
  }

  void draw_modifiers(Bytes& bytes) {
    if (bytes.once_in(4)) {
      scale = draw_number(random, numbers);
      options.scale = &scale;
    }
    if (bytes.once_in(4)) {
      softcap = bytes.once_in(8) ? draw_number(random, Numbers::any) : 1 + std::abs(draw_number(random, numbers));
      options.softcap = &softcap;
    }
    if (bytes.once_in(4)) {
      const std::uint8_t which = bytes.byte();
      bias.draw(bytes, broadcast(which), kInput, random, numbers);
      turn_bias(which);
      options.bias = bias.get();
    }
    if (bytes.once_in(4)) {
      slopes.draw(bytes, {query_heads}, kInput, random, numbers);
      options.alibi = slopes.get();
    }
    if (bytes.once_in(4)) {
      sinks.draw(bytes, {query_heads}, kInput, random, numbers);
      options.sinks = sinks.get();
    }
    if (bytes.once_in(5)) {
      dropout = {static_cast<float>(bytes.integer(0, 255)) / (bytes.once_in(8) ? 128.0f : 256.0f), bytes.byte(),
                 bytes.byte()};
      options.dropout = &dropout;
    }
  }

  void draw_outputs(Bytes& bytes) {
    if (bytes.once_in(2)) {
      log_sum_exp.draw(bytes, {batch, query_heads, query_length}, kOutput, random, numbers);
      options.log_sum_exp = log_sum_exp.get();
    }
    if (bytes.once_in(4)) {
      scores.draw(bytes, {batch, query_heads, query_length, key_length}, kOutput, random, numbers);
      options.scores = scores.get();
      options.scores_at = static_cast<headlight_score_stage>(bytes.wild(bytes.integer(0, 2)));
    }
    if (!bytes.once_in(3)) return;
    if (bytes.once_in(3)) rows = numbers_of(bytes, bytes.integer(0, 5), query_length - 1);
    const std::int64_t count = rows.empty() ? query_length : static_cast<std::int64_t>(rows.size());
    probabilities.own_keys = bytes.once_in(4) ? 1 : 0;
    const std::int64_t columns = probabilities.own_keys != 0 ? bytes.integer(0, key_length) : key_length;
    if (bytes.once_in(2)) {
      per_head.draw(bytes, {batch, query_heads, count, columns}, kOutput, random, numbers);
      probabilities.per_head = per_head.get();
    }
    if (bytes.once_in(2)) {
      averaged.draw(bytes, {batch, count, columns}, kOutput, random, numbers);
      probabilities.averaged = averaged.get();
    }
    options.probabilities = &probabilities;
  }
};

// For the twins.
inline Tensor<double, 4> doubles(const View<const float, 4>& view) {
  Tensor<double, 4> made(view.shape);
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t i = 0; i < view.extent(1); ++i) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        for (std::int64_t d = 0; d < view.extent(3); ++d) made(b, i, h, d) = static_cast<double>(view(b, i, h, d));
      }
    }
  }
  return made;
}
inline Tensor<double, 4> doubles(const CTensor<float>& tensor) {
  return doubles(c::view<const float, 4>("fuzz", "tensor", tensor.get()));
}

}  // namespace headlight::fuzz
