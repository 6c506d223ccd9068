// What attention() refuses: every mistake is a std::invalid_argument that names the argument, what it was and what was
// expected.
#include <functional>
#include <limits>
#include <stdexcept>

#include "support/attention_routes.h"

namespace headlight::attention_semantics_errors_test {

// A call that is right (B = 2, Lq = 3, Lk = 5, Hq = 4, Hkv = 2, D = 8, Dv = 6) until a test spoils one thing.
struct Call {
  Tensor<float, 4> query_memory{{2, 3, 4, 8}};
  Tensor<float, 4> key_memory{{2, 5, 2, 8}};
  Tensor<float, 4> value_memory{{2, 5, 2, 6}};
  Tensor<float, 4> out_memory{{2, 3, 4, 6}};
  Tensor<float, 4> bias_memory{{2, 4, 3, 5}};
  Tensor<std::uint8_t, 4> mask_memory{{2, 4, 3, 5}};
  View<const float, 4> query = query_memory;
  View<const float, 4> key = key_memory;
  View<const float, 4> value = value_memory;
  View<float, 4> out = out_memory;
  AttentionOptions options;
};

class AttentionErrorsTest : public test::EachRoute {
 protected:
  // The call must be refused with all of those words in the message.
  static void refused(const std::vector<std::string>& words, const std::function<void(Call&)>& spoil) {
    Call call;
    spoil(call);
    const std::string operation = GetParam().method == test::Method::fused ? "attention: " : "attention_unfused: ";
    try {
      GetParam()(call.query, call.key, call.value, call.out, call.options);
      ADD_FAILURE() << "accepted, expected an error with '" << words.front() << "'";
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find(operation), 0u) << message;
      for (const std::string& word : words) {
        EXPECT_NE(message.find(word), std::string::npos) << "'" << word << "' is not in: " << message;
      }
    }
  }
};

TEST_P(AttentionErrorsTest, TheCallItselfIsRight) {
  Call call;
  EXPECT_NO_THROW(GetParam()(call.query, call.key, call.value, call.out, call.options));
}

TEST_P(AttentionErrorsTest, ShapesThatDoNotFit) {
  refused({"key", "[2, 5, 2, 7]"}, [](Call& c) { c.key.shape[3] = 7; });
  refused({"key", "[1, 5, 2, 8]"}, [](Call& c) { c.key.shape[0] = 1; });
  refused({"value", "[2, 4, 2, 6]"}, [](Call& c) { c.value.shape[1] = 4; });
  refused({"value", "[2, 5, 1, 6]"}, [](Call& c) { c.value.shape[2] = 1; });
  refused({"out", "[2, 3, 4, 5]", "[2, 3, 4, 6]"}, [](Call& c) { c.out.shape[3] = 5; });
  refused({"out", "[2, 2, 4, 6]"}, [](Call& c) { c.out.shape[1] = 2; });
}

TEST_P(AttentionErrorsTest, HeadsThatAreNoMultiple) {
  refused({"query", "3", "2"}, [](Call& c) { c.query.shape[2] = c.out.shape[2] = 3; });
  refused({"query", "4", "0"}, [](Call& c) { c.key.shape[2] = c.value.shape[2] = 0; });
}

TEST_P(AttentionErrorsTest, MemoryThatIsNotThereOrNotInOrder) {
  refused({"query", "null"}, [](Call& c) { c.query.data = nullptr; });
  refused({"out", "null"}, [](Call& c) { c.out.data = nullptr; });
  refused({"key", "stride", "2"}, [](Call& c) { c.key.strides[3] = 2; });
  refused({"value", "-1"}, [](Call& c) {
    c.value.shape[1] = c.key.shape[1] = -1;
    c.key.shape[1] = 5;
  });
}

TEST_P(AttentionErrorsTest, OutputsThatOverlapInputsOrThemselves) {
  refused({"out", "overlaps", "query"}, [](Call& c) { c.out.data = c.query_memory.data(); });
  refused({"out", "overlaps", "value"}, [](Call& c) { c.value.data = c.out_memory.data() + 143; });
  refused({"out", "overlaps itself"}, [](Call& c) { c.out.strides[1] = 0; });
  refused({"log_sum_exp", "overlaps", "out"}, [](Call& c) {
    c.options.log_sum_exp = {c.out_memory.data(), {2, 4, 3}};
  });
}

TEST_P(AttentionErrorsTest, LengthsOutOfRange) {
  static const std::vector<std::int64_t> too_long{5, 6};
  static const std::vector<std::int64_t> negative{-1, 3};
  static const std::vector<std::int64_t> three{1, 2, 3};
  refused({"key_lengths", "6", "5"}, [](Call& c) { c.options.key_lengths = too_long; });
  refused({"key_lengths", "-1"}, [](Call& c) { c.options.key_lengths = negative; });
  refused({"query_lengths", "5", "3"}, [](Call& c) { c.options.query_lengths = too_long; });
  refused({"query_lengths", "3", "2"}, [](Call& c) { c.options.query_lengths = three; });
}

TEST_P(AttentionErrorsTest, OffsetsThatAreNone) {
  using Offsets = std::vector<std::int64_t>;
  static const Offsets good_rows{0, 1, 3};
  static const Offsets good_keys{0, 2, 5};
  const auto packed = [](std::vector<std::string> words, const Offsets& rows, const Offsets& keys) {
    refused(words, [&](Call& c) {
      c.query.shape[0] = c.key.shape[0] = c.value.shape[0] = c.out.shape[0] = 1;
      c.options.query_offsets = rows;
      c.options.key_offsets = keys;
    });
  };
  packed({"query_offsets", "4", "3"}, {0, 1, 4}, good_keys);
  packed({"query_offsets", "1", "0"}, {1, 2, 3}, good_keys);
  packed({"query_offsets"}, {0, 2, 1, 3}, {0, 1, 2, 5});
  packed({"key_offsets", "4", "5"}, good_rows, {0, 2, 4});
  packed({"key_offsets"}, good_rows, {0, 1, 2, 5});
  packed({"key_offsets"}, good_rows, {});
  packed({"key_offsets"}, {}, good_keys);
  refused({"query_offsets", "2"}, [](Call& c) {
    c.options.query_offsets = good_rows;
    c.options.key_offsets = good_keys;
  });
}

TEST_P(AttentionErrorsTest, MasksThatDoNotFit) {
  refused({"mask", "[2, 4, 3, 4]", "[2, 4, 3, 5]"}, [](Call& c) {
    c.options.mask = BooleanMask{{c.mask_memory.data(), {2, 4, 3, 4}}, MaskMeans::attend};
  });
  refused({"bias", "[2, 2, 3, 5]", "[2, 4, 3, 5]"}, [](Call& c) {
    c.options.bias = {c.bias_memory.data(), {2, 2, 3, 5}};
  });
  refused({"out", "overlaps", "bias"}, [](Call& c) { c.options.bias = {c.out_memory.data(), {2, 4, 3, 5}}; });
}

TEST_P(AttentionErrorsTest, NumbersThatMeanNothing) {
  refused({"window", "-2"}, [](Call& c) { c.options.window.left = -2; });
  refused({"window", "-7"}, [](Call& c) { c.options.window.right = -7; });
  refused({"chunk", "-1"}, [](Call& c) { c.options.chunk = -1; });
  refused({"scale", "nan"}, [](Call& c) { c.options.scale = std::numeric_limits<float>::quiet_NaN(); });
}

TEST_P(AttentionErrorsTest, ProbabilitiesThatDoNotFit) {
  static Tensor<float, 4> memory({2, 4, 3, 5});
  static const std::vector<std::int64_t> rows{0, 3};
  refused({"probabilities", "[2, 4, 3, 4]", "[2, 4, 3, 5]"}, [](Call& c) {
    c.options.probabilities.per_head = {memory.data(), {2, 4, 3, 4}};
  });
  refused({"probabilities", "[2, 4, 5]", "[2, 3, 5]"}, [](Call& c) {
    c.options.probabilities.averaged = {memory.data(), {2, 4, 5}};
  });
  refused({"probabilities", "rows", "3"}, [](Call& c) {
    c.options.probabilities.per_head = {memory.data(), {2, 4, 2, 5}};
    c.options.probabilities.rows = rows;
  });
  refused({"log_sum_exp", "[2, 3, 4]", "[2, 4, 3]"}, [](Call& c) {
    c.options.log_sum_exp = {memory.data(), {2, 3, 4}};
  });
}

TEST_P(AttentionErrorsTest, SizesWhoseProductPasses63Bits) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  refused({"query", "64 bits"}, [](Call& c) { c.query = {c.query_memory.data(), {kHuge, kHuge, 4, 8}, {0, 0, 8, 1}}; });
  refused({"key", "64 bits"}, [](Call& c) { c.key.strides[1] = std::numeric_limits<std::int64_t>::max() / 2; });
}

HEADLIGHT_ON_EVERY_ROUTE(AttentionErrorsTest, std::vector<test::Route>({{test::Method::fused, Isa::scalar},
                                                                        {test::Method::unfused, Isa::scalar}}));

}  // namespace headlight::attention_semantics_errors_test
