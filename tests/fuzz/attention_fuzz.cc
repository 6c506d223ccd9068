// Attention through the C interface, on any shapes, strides, masks and options, over operands of float32 and 16 bits,
// keys and values of int8 with scales too. It refuses and writes nothing; or it gives the same bits with one worker and
// with three, leaves alone what lies between its rows, and is right on every instruction set, as is the written-out
// attention; and of 16 bits it has the bits of float32, rounded.
#include <cmath>

#include "baseline/attention_unfused.h"
#include "c/attention_options.h"
#include "fuzz/attention_call.h"
#include "reference/attention.h"

namespace headlight::fuzz::attention_fuzz {
namespace {

using Memory = std::vector<std::vector<float>>;

// Keys or values: those of the call, or integers with scales in their place.
class Cache {
 public:
  using Floats = AttentionCall::Floats;

  Cache(Bytes& bytes, AttentionCall& call, const Floats& floats, std::int64_t dim, const headlight_tensor*& scales)
      : floats_(floats) {
    is_int8_ = bytes.once_in(4);
    if (!is_int8_) return;
    const std::int64_t batch = call.batch, length = call.key_length, heads = call.key_value_heads;
    integers_.draw(bytes, {batch, length, heads, dim}, CTensor<std::int8_t>::Kind::input, call.random, call.numbers);
    scales_.draw(bytes, {batch, length, heads}, Floats::Kind::input, call.random, call.numbers);
    // Numbers about as large as those of floats.
    std::vector<float> smaller = scales_.copy();
    for (float& scale : smaller) scale /= 127;
    scales_.put_back(smaller);
    if (bytes.byte() != 255) scales = scales_.get();
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  [[nodiscard]] bool is_int8() const { return is_int8_; }
  [[nodiscard]] const headlight_tensor* get() const { return is_int8_ ? integers_.get() : floats_.get(); }
  [[nodiscard]] bool is_sane() const { return is_int8_ ? integers_.is_sane() && scales_.is_sane() : floats_.is_sane(); }
  // What attention() takes them for.
  [[nodiscard]] Tensor<double, 4> values() const {
    if (!is_int8_) return doubles(floats_);
    const auto integers = c::view<const std::int8_t, 4>("fuzz", "integers", integers_.get());
    const auto scales = c::view<const float, 3>("fuzz", "scales", scales_.get());
    Tensor<double, 4> made(integers.shape);
    for (std::int64_t b = 0; b < integers.extent(0); ++b) {
      for (std::int64_t j = 0; j < integers.extent(1); ++j) {
        for (std::int64_t h = 0; h < integers.extent(2); ++h) {
          for (std::int64_t d = 0; d < integers.extent(3); ++d) {
            made(b, j, h, d) = static_cast<double>(scales(b, j, h) * static_cast<float>(integers(b, j, h, d)));
          }
        }
      }
    }
    return made;
  }

 private:
  const Floats& floats_;
  bool is_int8_ = false;
  CTensor<std::int8_t> integers_;
  Floats scales_;
};

struct Caches {
  Caches(Bytes& bytes, AttentionCall& call)
      : key(bytes, call, call.key, call.head_dim, call.options.key_scales),
        value(bytes, call, call.value, call.value_dim, call.options.value_scales) {}
  Cache key, value;
};

Memory memory_of(AttentionCall& call) {
  Memory memory;
  call.for_each_output([&](const auto& tensor) { memory.push_back(tensor.copy()); });
  return memory;
}

// Into memory that is as it was at first.
headlight_status attend(headlight_engine* engine, AttentionCall& call, const Caches& caches, const Memory& before,
                        headlight_error& error) {
  std::size_t n = 0;
  call.for_each_output([&](auto& tensor) { tensor.put_back(before[n++]); });
  return headlight_attention(engine, call.query.get(), caches.key.get(), caches.value.get(), call.out.get(),
                             &call.options, &error);
}

template <int Rank>
View<const float, Rank> view(const AttentionCall::Floats& tensor) {
  return c::view<const float, Rank>("fuzz", "tensor", tensor.get());
}

// The options that the twin takes, which knows no scales.
AttentionOptions options_of(const AttentionCall& call) {
  headlight_attention_options options = call.options;
  options.key_scales = options.value_scales = nullptr;
  return c::attention_options("fuzz", &options);
}

// The twin's results, and what float32 may be off by.
class Truth {
 public:
  Truth(const AttentionCall& call, const Caches& caches)
      : options_(options_of(call)),
        out_({call.batch, call.query_length, call.query_heads, call.value_dim}),
        sizes_(out_.shape()),
        log_sum_exp_({call.batch, call.query_heads, call.query_length}) {
    const Tensor<double, 4> query = doubles(call.query);
    const Tensor<double, 4> key = caches.key.values();
    Tensor<double, 4> value = caches.value.values();
    reference::attention<double>(query, key, value, out_, options_, {.log_sum_exp = log_sum_exp_.view()});
    for (double& each : value) each = std::abs(each);
    reference::attention<double>(query, key, value, sizes_, options_);
    largest_ = largest_score(call, query, key);
    // A score of size S is a sum of D products and a few modifiers, each of which rounds once; e to the score is off by
    // as much, relatively, and so are the sums of Lk of them.
    error_ =
        (2 * static_cast<double>(call.head_dim + 16) * largest_ + static_cast<double>(call.key_length + 64)) * 0x1p-24;
  }

  void check(const AttentionCall& call) const {
    if (!(error_ < 0.25)) return;  // nothing is left of the scores
    const View<const float, 4> out = view<4>(call.out);
    for (std::int64_t b = 0; b < out_.shape()[0]; ++b) {
      for (std::int64_t i = 0; i < out_.shape()[1]; ++i) {
        for (std::int64_t h = 0; h < out_.shape()[2]; ++h) {
          for (std::int64_t d = 0; d < out_.shape()[3]; ++d) {
            must_be_near(static_cast<double>(out(b, i, h, d)), out_(b, i, h, d),
                         3 * error_ * sizes_(b, i, h, d) + 1e-30, "out is right");
          }
        }
      }
    }
    if (!call.log_sum_exp.is_given()) return;
    const View<const float, 3> rows = view<3>(call.log_sum_exp);
    for (std::int64_t b = 0; b < rows.extent(0); ++b) {
      for (std::int64_t h = 0; h < rows.extent(1); ++h) {
        for (std::int64_t i = 0; i < rows.extent(2); ++i) {
          const double truth = log_sum_exp_(b, h, i);
          must_be_near(static_cast<double>(rows(b, h, i)), truth, 2 * error_ * (1 + std::abs(truth)),
                       "log_sum_exp is right");
        }
      }
    }
  }

 private:
  // Of what is added up in a score, at most: |scale| ‖q‖ ‖k‖ + |bias| + slope · distance, or a sink.
  [[nodiscard]] double largest_score(const AttentionCall& call, const Tensor<double, 4>& query,
                                     const Tensor<double, 4>& key) const {
    const auto longest = [](const Tensor<double, 4>& rows) {
      const std::int64_t columns = rows.shape()[3];
      double most = 0;
      for (std::int64_t n = 0; n < rows.size() / std::max<std::int64_t>(columns, 1); ++n) {
        double squares = 0;
        for (std::int64_t d = 0; d < columns; ++d)
          squares += rows.data()[n * columns + d] * rows.data()[n * columns + d];
        most = std::max(most, squares);
      }
      return std::sqrt(most);
    };
    double largest =
        std::abs(reference::attention_scale<double>(options_, call.head_dim)) * longest(query) * longest(key);
    for (const double each : doubles(options_.bias)) largest += std::abs(each);
    double slope = 0;
    for (const float each : options_.alibi) slope = std::max(slope, std::abs(static_cast<double>(each)));
    double distance = 0;
    for (std::int64_t b = 0; slope > 0 && b < call.batch; ++b) {
      for (std::int64_t i = 0; i < call.query_length; ++i) {
        for (std::int64_t j = 0; j < call.key_length; ++j) {
          const auto place = reference::place_in_sequence(options_, call.query_length, call.key_length, b, i, j);
          distance = std::max(distance, std::abs(static_cast<double>(place.distance)));
        }
      }
    }
    largest += slope * distance;
    for (const float each : options_.sinks) largest = std::max(largest, std::abs(static_cast<double>(each)));
    return largest;
  }

  AttentionOptions options_;
  Tensor<double, 4> out_;
  Tensor<double, 4> sizes_;  // Σ_j p_ij |v_j|
  Tensor<double, 3> log_sum_exp_;
  double largest_ = 0;
  double error_ = 0;
};

void check_unfused(headlight_engine* engine, AttentionCall& call, const Memory& before, const Truth& truth) {
  std::size_t n = 0;
  call.for_each_output([&](auto& tensor) { tensor.put_back(before[n++]); });
  headlight_error error{};
  constexpr const char* kName = "attention_unfused";
  const auto attend = [&](Engine& on) {
    baseline::attention_unfused(on, c::view<const float, 4>(kName, "query", call.query.get()),
                                c::view<const float, 4>(kName, "key", call.key.get()),
                                c::view<const float, 4>(kName, "value", call.value.get()),
                                c::view<float, 4>(kName, "out", call.out.get()),
                                c::attention_options(kName, &call.options));
  };
  must(accepted(c::call(kName, engine, &error, attend), error), "what attention takes, the written-out one takes");
  truth.check(call);
}

// What the call writes on each instruction set.
std::vector<Memory> results_of(AttentionCall& call, const Caches& caches, const Engines& engines, const Memory& before,
                               const Truth* truth) {
  std::vector<Memory> results;
  headlight_error error{};
  for (const auto& pair : engines.pairs) {
    must(accepted(attend(pair->one.get(), call, caches, before, error), error),
         "all instruction sets take the same calls");
    if (truth != nullptr) truth->check(call);
    results.push_back(memory_of(call));
    must(accepted(attend(pair->three.get(), call, caches, before, error), error),
         "any number of workers takes the same calls");
    std::size_t n = 0;
    call.for_each_output([&](const auto& tensor) { must(tensor.holds(results.back()[n++]), "workers change no bit"); });
  }
  return results;
}

// The results of operands of 16 bits, which are widened then; none where pairs of them may have been multiplied, or
// where there are no such operands.
std::vector<Memory> narrow_results_of(AttentionCall& call, const Caches& caches, const Engines& engines,
                                      const Memory& before) {
  std::vector<Memory> results;
  if (!call.is_narrow()) return results;
  results = results_of(call, caches, engines, before, nullptr);
  for (std::size_t n = 0; n < results.size(); ++n) {
    if (call.may_multiply_pairs(engines.pairs[n]->one.get())) results[n].clear();
  }
  call.widen();
  return results;
}

void check(AttentionCall& call, const Caches& caches) {
  static const Engines engines;
  const Memory before = memory_of(call);
  headlight_error error{};
  if (!accepted(attend(engines.pairs.front()->one.get(), call, caches, before, error), error)) {
    must(memory_of(call) == before, "a refused call writes nothing");
    return;
  }
  const NumberType type = call.out.stored_as();
  const std::vector<Memory> narrow = narrow_results_of(call, caches, engines, before);
  const bool is_twinned = call.numbers == Numbers::tame && std::isfinite(call.softcap) && call.query.is_sane() &&
                          caches.key.is_sane() && caches.value.is_sane() && call.out.is_sane();
  const std::unique_ptr<Truth> truth = is_twinned ? std::make_unique<Truth>(call, caches) : nullptr;
  const std::vector<Memory> results = results_of(call, caches, engines, before, truth.get());
  for (std::size_t isa = 0; isa < narrow.size(); ++isa) {
    for (std::size_t n = 0; n < narrow[isa].size(); ++n) {  // out is the first
      must(are_rounded(narrow[isa][n], results[isa][n], n == 0 ? type : NumberType::float32),
           "operands of 16 bits have the bits of float32, rounded");
    }
  }
  const bool has_floats = !caches.key.is_int8() && !caches.value.is_int8();
  if (truth != nullptr && has_floats) check_unfused(engines.pairs.back()->one.get(), call, before, *truth);
}

}  // namespace

void run(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  AttentionCall call(bytes);
  const Caches caches(bytes, call);
  call.narrow(bytes);
  check(call, caches);
}

}  // namespace headlight::fuzz::attention_fuzz
