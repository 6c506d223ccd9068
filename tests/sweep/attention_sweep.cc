// Attention forward: the float64 twin, and the same bits on every way there.
#include "baseline/attention_unfused.h"
#include "headlight/attention.h"
#include "reference/attention.h"
#include "support/attention_operands.h"
#include "support/attention_results.h"
#include "support/cached_rows.h"
#include "support/compare.h"
#include "support/typed_operands.h"
#include "sweep/attention_alone.h"
#include "sweep/attention_call.h"
#include "sweep/plain_errors.h"

namespace headlight::sweep::attention_sweep {
namespace {

using test::AttentionCase;
using test::AttentionInputs;
using test::Placed;
using Results = test::AttentionResults<float>;

// What a call leaves unwritten shows.
constexpr float kUnwritten = 1e30f;

struct Asked {
  bool probabilities;
  bool scores;
};

class AttentionSweep : public AttentionCall {
 public:
  [[nodiscard]] std::string operation() const override { return "attention"; }
  void run(Report& report) const override;

  bool probabilities = false;
  bool scores = false;

 protected:
  void visit(Fields& fields) override {
    AttentionCall::visit(fields);
    fields.flag("probabilities", probabilities);
    fields.flag("scores", scores);
  }
};

// The numbers of a case, rounded to their types.
struct RoundedInputs : AttentionInputs {
  explicit RoundedInputs(const AttentionCase& c) : AttentionInputs(c) {
    query = test::rounded_to(c.types[0], query);
    key = cached(c.types[1], key);
    value = cached(c.types[2], value);
  }
  static Tensor<float, 4> cached(NumberType type, const Tensor<float, 4>& from) {
    return type == NumberType::int8 ? test::CachedRows(from).floats() : test::rounded_to(type, from);
  }
};

// Keys or values as they lie: as they are placed, or of int8, with scales.
class Cache {
 public:
  Cache(NumberType type, const Tensor<float, 4>& from, test::Layout layout, test::Against side) {
    using Rows = test::CachedRows;
    if (type == NumberType::int8) {
      rows_.emplace(from, layout == test::Layout::by_head ? Rows::Layout::by_head : Rows::Layout::by_position, side);
    } else {
      placed_.emplace(type, from, layout, side);
    }
  }
  [[nodiscard]] TypedView<4> view() const { return rows_ ? TypedView<4>(rows_->numbers()) : placed_->view(); }
  [[nodiscard]] View<const float, 3> scales() const {
    return rows_ ? View<const float, 3>(rows_->scales()) : View<const float, 3>();
  }

 private:
  std::optional<Placed> placed_;
  std::optional<test::CachedRows> rows_;
};

// And what they give.
struct Truth {
  explicit Truth(const AttentionCase& c)
      : in(c),
        plain(test::plain_results<float>(c, in)),
        truth(test::plain_results<double>(c, in)),
        yardsticks(c, in, truth) {}

  // f(number of a result, results of the plain computation, true ones, yardsticks, its name, results to compare).
  template <class Function>
  void for_each_result(const Results& results, Function f) const {
    f(0, results.out.view(), plain.out.view(), truth.out.view(), yardsticks.out.view(), "out");
    f(1, results.log_sum_exp.view(), plain.log_sum_exp.view(), truth.log_sum_exp.view(), yardsticks.log_sum_exp.view(),
      "log_sum_exp");
    f(2, results.scores.view(), plain.scores.view(), truth.scores.view(), yardsticks.scores.view(), "scores");
    f(3, results.probabilities.view(), plain.probabilities.view(), truth.probabilities.view(),
      truth.probabilities.view(), "probabilities");
  }
  [[nodiscard]] std::vector<double> plain_errors() const {
    std::vector<double> errors;
    for_each_result(plain, [&](auto, const auto&, const auto& p, const auto& t, const auto& y, const char*) {
      errors.push_back(test::worst_row_error(p, t, y).error);
    });
    return errors;
  }

  RoundedInputs in;
  Results plain;
  test::AttentionResults<double> truth;
  test::AttentionYardsticks yardsticks;
};

// One case with what every machine is held against.
class Check {
 public:
  Check(const AttentionCase& c, test::Layout layout, test::Against side, const Asked& asked)
      : c_(c),
        layout_(layout),
        side_(side),
        asked_(asked),
        truth_(c),
        in_(truth_.in),
        plain_errors_(
            [c](std::uint64_t seed) {
              AttentionCase again = c;
              again.seed = seed;
              return Truth(again).plain_errors();
            },
            c.seed) {}

  // On one worker, in one piece.
  [[nodiscard]] Results by_one(Report& report, Engine& engine) const {
    return call(report, engine, float_types(), test::Layout::contiguous, asked_);
  }
  void expect_near_the_truth(Report& report, const Results& results, const std::string& by, bool out = true) {
    truth_.for_each_result(results, [&](std::size_t n, const auto& actual, const auto& plain, const auto& truth,
                                        const auto& yardstick, const std::string& name) {
      if (name == "out" && !out) return;
      if ((name == "scores" && !asked_.scores) || (name == "probabilities" && !asked_.probabilities)) return;
      report.expect(plain_errors_.hold(n, actual, plain, truth, yardstick), by + name);
    });
  }
  // The same call by other ways.
  void expect_the_same_bits(Report& report, Machine& machine, std::int64_t threads, const Results& expected) const {
    Engine& several = machine.engine(threads);
    expect_same(report, call(report, several, float_types(), layout_, asked_), expected, asked_,
                "several workers, laid out");
    const Asked nothing{false, false};
    if (asked_.probabilities || asked_.scores) {
      expect_same(report, call(report, machine.engine(1), float_types(), layout_, nothing), expected, nothing,
                  "without probabilities and scores");
    }
    if (c_.types != float_types()) {
      Results typed = call(report, several, c_.types, layout_, asked_);
      report.expect(test::same_bits(typed.out, test::rounded_to(c_.types[3], expected.out)), "typed: out");
      expect_same_rows(report, typed, expected, asked_, "typed");
    }
    expect_rows_alone(report, machine.engine(1), expected);
  }
  // Where pairs of bfloat16 are multiplied: as near as float32's but for the rounding of each weight, by every way.
  void expect_pairs(Report& report, Machine& machine, std::int64_t threads) {
    Types types = c_.types;
    types[3] = NumberType::float32;
    if (!test::multiplies_pairs(machine.engine(1), c_)) return;
    const Results one = call(report, machine.engine(1), types, test::Layout::contiguous, asked_);
    expect_same(report, call(report, machine.engine(threads), types, layout_, asked_), one, asked_,
                "pairs, several workers");
    const Tensor<double, 4> sizes = test::added_up(c_, in_);
    const double of_plain = test::worst_row_error(truth_.plain.out.view(), truth_.truth.out.view(), sizes.view()).error;
    report.expect(test::within(one.out.view(), truth_.truth.out.view(), 2 * of_plain + 8 * test::kUnitRoundoff + 0x1p-8,
                               sizes.view()),
                  "pairs: out");
    expect_near_the_truth(report, one, "pairs: ", false);
  }
  void expect_the_written_out_to_be_near(Report& report, Engine& engine) {
    Results results(c_);
    baseline::attention_unfused(engine, in_.query, in_.key, in_.value, results.out, options(results, asked_));
    expect_near_the_truth(report, results, "written out: ");
  }

 private:
  using Types = std::array<NumberType, 4>;
  [[nodiscard]] static Types float_types() { return {}; }

  [[nodiscard]] AttentionOptions options(Results& results, const Asked& asked) const {
    AttentionOptions options = in_.options;
    options.log_sum_exp = results.log_sum_exp;
    if (asked.probabilities) options.probabilities.per_head = results.probabilities;
    if (asked.scores) options.scores = results.scores;
    return options;
  }
  [[nodiscard]] Results call(Report& report, Engine& engine, const Types& types, test::Layout layout,
                             const Asked& asked) const {
    Results results(c_);
    for (float& each : results.out) each = kUnwritten;
    for (float& each : results.log_sum_exp) each = kUnwritten;
    const Placed query(types[0], in_.query, layout, side_), out(types[3], results.out, layout, side_);
    const Cache key(types[1], in_.key, layout, side_), value(types[2], in_.value, layout, side_);
    test::attend(engine, {query.view(), key.view(), value.view(), out.view(), key.scales(), value.scales()},
                 options(results, asked));
    if (!out.gaps_are_untouched()) report.fail("something was written between the rows of out");
    results.out = out.floats();
    return results;
  }
  static void expect_same(Report& report, const Results& actual, const Results& expected, const Asked& asked,
                          const std::string& way) {
    report.expect(test::same_bits(actual.out, expected.out), way + ": out");
    expect_same_rows(report, actual, expected, asked, way);
  }
  // All but the output.
  static void expect_same_rows(Report& report, const Results& actual, const Results& expected, const Asked& asked,
                               const std::string& way) {
    report.expect(test::same_bits(actual.log_sum_exp, expected.log_sum_exp), way + ": log_sum_exp");
    if (asked.scores) report.expect(test::same_bits(actual.scores, expected.scores), way + ": scores");
    if (asked.probabilities) {
      report.expect(test::same_bits(actual.probabilities, expected.probabilities), way + ": probabilities");
    }
  }
  // The last row of each sample, and one drawn by the seed, asked for by themselves.
  void expect_rows_alone(Report& report, Engine& engine, const Results& expected) const {
    if (c_.query_length == 0) return;
    for (std::int64_t b = 0; b < c_.batch; ++b) {
      for (const std::int64_t i : {c_.query_length - 1, static_cast<std::int64_t>(c_.seed) % c_.query_length}) {
        const std::optional<RowAlone> row = row_alone(c_, in_, b, i);
        if (!row) continue;
        Tensor<float, 4> out({1, 1, c_.query_heads, c_.value_dim});
        attention(engine, row->query, row->key, row->value, out, row->options);
        const View<const float, 4> of_all(&expected.out(b, i, 0, 0), out.shape());
        report.expect(test::same_bits(View<const float, 4>(out.view()), of_all),
                      "row " + std::to_string(i) + " of sample " + std::to_string(b) + " alone");
      }
    }
  }

  const AttentionCase& c_;
  test::Layout layout_;
  test::Against side_;
  Asked asked_;
  Truth truth_;
  const AttentionInputs& in_;
  PlainErrors plain_errors_;
};

void AttentionSweep::run(Report& report) const {
  const AttentionCase c = seeded();
  Check check(c, layout, side(), {probabilities, scores});
  std::optional<Results> before;
  for_each_machine(report, [&](Machine& machine, bool has_features) {
    Results results = check.by_one(report, machine.engine(1));
    if (has_features) {
      // They are for products of numbers of 16 and 8 bits.
      report.expect(test::same_bits(results.out, before->out), "out without features");
      check.expect_pairs(report, machine, threads);
      return;
    }
    check.expect_near_the_truth(report, results, "");
    check.expect_the_same_bits(report, machine, threads, results);
    check.expect_the_written_out_to_be_near(report, machine.engine(1));
    before.emplace(std::move(results));
  });
}

constexpr Operation kOperations[] = {
    {"attention", 26, [](const char*) -> std::unique_ptr<Case> { return std::make_unique<AttentionSweep>(); },
     [](const char*, test::Random& random) -> std::unique_ptr<Case> {
       auto made = std::make_unique<AttentionSweep>();
       draw_attention(*made, random, false);
       for (const std::size_t cache : {std::size_t{1}, std::size_t{2}}) {
         if (random.once_in(6)) made->call.types[cache] = NumberType::int8;
       }
       made->probabilities = random.once_in(4);
       made->scores = random.once_in(4);
       return made;
     }}};

}  // namespace

std::span<const Operation> operations() { return kOperations; }

}  // namespace headlight::sweep::attention_sweep
