// Bad arguments of attention(), reserve() and workspace_bytes() get clear words; scratch memory is linear in L.
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "support/refusal.h"

namespace headlight::attention_arguments_test {

// What attention() says about a call that `change` has spoilt.
template <class Change>
std::string complaint(Change change) {
  Engine engine;
  // Views of the first two samples of eight: an output that begins where an operand does reaches no other operand,
  // wherever these lie in memory.
  struct Call {
    Tensor<float, 4> query{{8, 5, 4, 8}}, key{{8, 7, 2, 8}}, value{{8, 7, 2, 6}}, out{{8, 5, 4, 6}};
    View<const float, 4> q = query, k = key, v = value;
    View<float, 4> o = out;
    AttentionOptions options;
  } call;
  call.q.shape[0] = call.k.shape[0] = call.v.shape[0] = call.o.shape[0] = 2;
  change(call);
  try {
    attention(engine, call.q, call.k, call.v, call.o, call.options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(AttentionArguments, EveryMistakeIsNamed) {
  const auto expect = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not speak of '" << part << "'";
    EXPECT_EQ(text.find("attention: "), 0u) << text;
  };
  EXPECT_EQ(complaint([](auto&) {}), "");
  expect(complaint([](auto& c) { c.k.shape[3] = 9; }), "key has shape [2, 7, 2, 9], expected [2, any, any, 8]");
  expect(complaint([](auto& c) { c.v.shape[1] = 6; }), "value has shape");
  expect(complaint([](auto& c) { c.o.shape[1] = 4; }), "out has shape");
  expect(complaint([](auto& c) { c.k.shape[2] = c.v.shape[2] = 3; }), "4 heads, expected a multiple of the 3");
  expect(complaint([](auto& c) { c.q.strides[3] = 2; }), "query has the last stride 2");
  expect(complaint([](auto& c) { c.q.data = nullptr; }), "query of shape");
  expect(complaint([](auto& c) { c.q = {}; }), "query is not given");
  const auto odd = [](auto* data) { return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(data) + 1); };
  expect(complaint([&](auto& c) { c.q.data = odd(c.query.data()); }),
         "query lies at an address that is no multiple of a number's 4 bytes");
  expect(complaint([&](auto& c) { c.o.data = odd(c.out.data()); }),
         "out lies at an address that is no multiple of a number's 4 bytes");
  expect(complaint([](auto& c) { c.k = {}; }), "key has shape [0, 0, 0, 0], expected [2, any, any, 8]");
  expect(complaint([](auto& c) { c.o = View<float, 4>(c.query.data(), {2, 5, 4, 6}); }), "out overlaps query");
  expect(complaint([](auto& c) { c.o.strides[1] = 0; }), "out of shape");

  static const std::vector<std::int64_t> kThree = {1, 2, 3};
  static const std::vector<std::int64_t> kTooLong = {5, 8};
  static const std::vector<std::int64_t> kNegative = {-1, 2};
  expect(complaint([](auto& c) { c.options.key_lengths = kThree; }), "key_lengths has 3 entries, expected B = 2");
  expect(complaint([](auto& c) { c.options.key_lengths = kTooLong; }), "key_lengths[1] is 8, expected 0 to 7");
  expect(complaint([](auto& c) { c.options.query_lengths = kNegative; }), "query_lengths[0] is -1");

  static const std::vector<std::int64_t> kOffsets = {0, 2, 5};
  static const std::vector<std::int64_t> kKeyOffsets = {0, 8, 7};
  static const std::vector<std::int64_t> kShort = {0, 7};
  static const std::vector<std::int64_t> kOneLength = {3};
  const auto one_sample = [](auto& c) {
    c.q.shape[0] = c.k.shape[0] = c.v.shape[0] = c.o.shape[0] = 1;
    c.options.query_offsets = kOffsets;
  };
  expect(complaint([](auto& c) { c.options.key_offsets = kOffsets; }), "key_offsets given without query_offsets");
  expect(complaint([](auto& c) { c.options.query_offsets = kOffsets; }), "B = 2, expected B = 1");
  expect(complaint([&](auto& c) { one_sample(c); }), "without key_offsets");
  expect(complaint([&](auto& c) { one_sample(c), c.options.key_offsets = kKeyOffsets; }), "key_offsets[2] is 7, less");
  expect(complaint([&](auto& c) { one_sample(c), c.options.key_offsets = kShort; }), "key_offsets has 2 entries");
  expect(complaint([&](auto& c) { one_sample(c), c.options.query_offsets = kThree; }), "query_offsets[0] is 1");
  expect(complaint([&](auto& c) { one_sample(c), c.options.key_lengths = kOneLength; }), "together");

  expect(complaint([](auto& c) { c.options.causal = static_cast<Causal>(3); }),
         "causal is 3, expected one of the enum");
  expect(complaint([](auto& c) { c.options.align = static_cast<Align>(9); }), "align is 9, expected one of the enum");
  expect(complaint([](auto& c) { c.options.softcap = 1e-40f; }), "softcap is 1e-40, expected 0 (none) or a normal");
  static const std::vector<float> kSinks = {0, -std::numeric_limits<float>::infinity(), 1,
                                            std::numeric_limits<float>::infinity()};
  expect(complaint([](auto& c) { c.options.sinks = kSinks; }), "sinks[3] is inf, expected a number or -inf (none)");
  static const std::vector<float> kNoNumber(4, std::numeric_limits<float>::quiet_NaN());
  expect(complaint([](auto& c) { c.options.sinks = kNoNumber; }), "sinks[0] is nan");
  expect(complaint([](auto& c) { c.options.window.left = -2; }), "window is [-2, -1]");
  expect(complaint([](auto& c) { c.options.chunk = -1; }), "chunk is -1");
  expect(complaint([](auto& c) { c.options.scale = std::numeric_limits<float>::quiet_NaN(); }), "scale is");
  static Tensor<float, 4> bias({1, 4, 5, 6});
  static Tensor<std::uint8_t, 4> mask({1, 3, 5, 7});
  expect(complaint([](auto& c) { c.options.bias = bias; }), "bias has shape [1, 4, 5, 6], expected [2, 4, 5, 7]");
  expect(complaint([](auto& c) { c.options.mask = BooleanMask{mask.view(), MaskMeans::attend}; }), "mask has shape");
  static Tensor<std::uint8_t, 4> visible({1, 1, 5, 7});
  expect(complaint([](auto& c) {
           c.options.mask = BooleanMask{visible.view(), static_cast<MaskMeans>(9)};
         }),
         "mask.means is 9, expected one of the enum");

  static Tensor<float, 3> rows({2, 4, 6});
  static Tensor<float, 4> per_head({2, 4, 5, 6});
  static const std::vector<std::int64_t> kRows = {0, 5};
  expect(complaint([](auto& c) { c.options.log_sum_exp = rows; }), "log_sum_exp has shape");
  expect(complaint([](auto& c) {
           c.options.log_sum_exp = View<float, 3>(c.out.data(), {2, 4, 5});
         }),
         "log_sum_exp overlaps out");
  expect(complaint([](auto& c) { c.options.probabilities.per_head = per_head; }), "probabilities.per_head has shape");
  expect(complaint([](auto& c) { c.options.probabilities.rows = kRows; }), "probabilities.rows[1] is 5, expected 0 to");
}

// No output is checked only because another option is given.
TEST(AttentionArguments, EveryOutputIsCheckedAlone) {
  static Tensor<float, 4> all({2, 4, 5, 7});
  static Tensor<float, 3> rows({2, 4, 5}), average({2, 5, 7});
  struct Output {
    const char* name;
    // The output at `data`; its extent along the last axis `more` too long, its first stride as given where it is not
    // 0.
    void (*give)(AttentionOptions& options, float* data, std::int64_t more, std::int64_t stride);
  };
  const auto change = [](auto view, float* data, std::int64_t more, std::int64_t stride) {
    view.data = data;
    view.shape.back() += more;
    if (stride != 0) view.strides[0] = stride;
    return view;
  };
  static const auto changed = change;
  const Output outputs[] = {
      {"log_sum_exp", [](auto& options, float* data, std::int64_t more,
                         std::int64_t stride) { options.log_sum_exp = changed(rows.view(), data, more, stride); }},
      {"probabilities.per_head",
       [](auto& options, float* data, std::int64_t more, std::int64_t stride) {
         options.probabilities.per_head = changed(all.view(), data, more, stride);
       }},
      {"probabilities.averaged",
       [](auto& options, float* data, std::int64_t more, std::int64_t stride) {
         options.probabilities.averaged = changed(average.view(), data, more, stride);
       }},
      {"scores", [](auto& options, float* data, std::int64_t more, std::int64_t stride) {
         options.scores = changed(all.view(), data, more, stride);
       }}};
  const auto expect = [](const std::string& text, const std::string& beginning) {
    EXPECT_EQ(text.rfind("attention: " + beginning, 0), 0u) << "'" << text << "', expected '" << beginning << "…'";
  };
  for (const Output& output : outputs) {
    const std::string name = output.name;
    EXPECT_EQ(complaint([&](auto& c) { output.give(c.options, all.data(), 0, 0); }), "") << name;
    expect(complaint([&](auto& c) { output.give(c.options, all.data(), 1, 0); }), name + " has shape");
    expect(complaint([&](auto& c) { output.give(c.options, all.data(), 0, 1); }), name + " of shape");
    expect(complaint([&](auto& c) { output.give(c.options, c.out.data(), 0, 0); }), name + " overlaps out");
    expect(complaint([&](auto& c) { output.give(c.options, c.query.data(), 0, 0); }), name + " overlaps query");
    expect(complaint([&](auto& c) { output.give(c.options, c.key.data(), 0, 0); }), name + " overlaps key");
    expect(complaint([&](auto& c) { output.give(c.options, c.value.data(), 0, 0); }), name + " overlaps value");
  }
}

// Lengths, offsets and rows are checked once and then trusted: no output may be written over them.
TEST(AttentionArguments, NoOutputLiesOverAListOfNumbers) {
  Engine engine;
  const Tensor<float, 4> x({1, 4, 1, 8});
  Tensor<float, 4> out(x.shape()), per_head({1, 1, 4, 4});
  std::vector<std::int64_t> memory(16);
  auto* const floats = reinterpret_cast<float*>(memory.data());
  const auto says = [&](const View<float, 4>& to, const AttentionOptions& options) {
    return test::refusal([&] { attention(engine, x, x, x, to, options); });
  };
  const View<float, 4> over(floats, x.shape());
  const std::span<const std::int64_t> last(memory.data() + 15, 1), last_two(memory.data() + 14, 2);
  EXPECT_EQ(says(over, {.query_lengths = last}), "attention: out overlaps query_lengths in memory");
  EXPECT_EQ(says(over, {.key_lengths = last}), "attention: out overlaps key_lengths in memory");
  memory[15] = 4;
  const std::vector<std::int64_t> whole = {0, 4};
  EXPECT_EQ(says(over, {.query_offsets = last_two}), "attention: out overlaps query_offsets in memory");
  EXPECT_EQ(says(over, {.query_offsets = whole, .key_offsets = last_two}),
            "attention: out overlaps key_offsets in memory");
  memory[15] = 0;
  const View<float, 4> one_row(per_head.data(), {1, 1, 1, 4});
  EXPECT_EQ(says(over, {.probabilities = {.per_head = one_row, .rows = last}}),
            "attention: out overlaps probabilities.rows in memory");
  const View<float, 3> over_the_last(floats + 28, {1, 1, 4});
  EXPECT_EQ(says(out, {.key_lengths = last, .log_sum_exp = over_the_last}),
            "attention: log_sum_exp overlaps key_lengths in memory");
  const View<float, 4> row_over_the_last(floats + 28, {1, 1, 1, 4});
  EXPECT_EQ(says(out, {.probabilities = {.per_head = row_over_the_last, .rows = last}}),
            "attention: probabilities.per_head overlaps probabilities.rows in memory");
  EXPECT_EQ(says(out, {.query_lengths = last, .key_lengths = last}), "");
}

TEST(AttentionArguments, ShapesForReserve) {
  Engine engine;
  EXPECT_THROW(static_cast<void>(workspace_bytes(engine, AttentionShape{.batch = -1})), std::invalid_argument);
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THROW(static_cast<void>(workspace_bytes(engine, AttentionShape{huge, huge, huge, 1, 1, 1, 1})),
               std::invalid_argument);
  EXPECT_THROW(reserve(engine, AttentionShape{1, 1, 1, 3, 2, 8, 8}), std::invalid_argument);
  for (const AttentionShape& nothing : {AttentionShape{1, 0, 5, 2, 2, 8, 8}, AttentionShape{0, 5, 5, 2, 2, 8, 8},
                                        AttentionShape{1, 50, 0, 2, 2, 8, 8}, AttentionShape{1, 50, 50, 2, 2, 0, 0}}) {
    EXPECT_NO_THROW(reserve(engine, nothing));
  }
}

// Scratch memory grows with L, not with L²: four times the length, at most four times the bytes and a bit.
TEST(AttentionArguments, ScratchIsLinear) {
  Engine engine;
  const auto bytes = [&](std::int64_t length) {
    return workspace_bytes(engine, AttentionShape{1, length, length, 1, 1, 64, 64});
  };
  EXPECT_LE(bytes(65536), 4 * bytes(16384) + 65536);
  EXPECT_LE(bytes(65536), 65536u * 64 * 4 * 4);
}

}  // namespace headlight::attention_arguments_test
