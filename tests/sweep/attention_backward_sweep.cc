// Attention backward: the float64 twin, and the same bits on every way there.
#include <algorithm>
#include <cmath>

#include "support/backward_problem.h"
#include "support/compare.h"
#include "support/typed_backward.h"
#include "sweep/attention_call.h"
#include "sweep/plain_errors.h"

namespace headlight::sweep::attention_backward_sweep {
namespace {

using test::AttentionCase;
using test::BackwardProblem;
using test::Placed;
using Gradients = test::GradientTensors<float>;

// What a call leaves unwritten shows.
constexpr float kUnwritten = 1e30f;

// Which gradients are asked for beside that of the query.
enum class Asked : std::uint8_t { all, query, key, value, bias };
constexpr const char* kAsked[] = {"all", "query", "key", "value", "bias"};
constexpr const char* kTypes[] = {"float32", "bfloat16", "float16"};

class AttentionBackwardSweep : public AttentionCall {
 public:
  [[nodiscard]] std::string operation() const override { return "attention_backward"; }
  void make_valid() override {
    AttentionCall::make_valid();
    if (!call.bias && asked == Asked::bias) asked = Asked::all;
  }
  void run(Report& report) const override;

  // In the second call of each machine; the first one asks for all.
  Asked asked = Asked::all;
  // Of the third call, whose operands have the types of the case.
  test::BackwardTypes types;
  bool accumulate = false;

 protected:
  void visit(Fields& fields) override {
    AttentionCall::visit(fields);
    fields.choice("asked", asked, kAsked);
    fields.choice("out_gradient", types.out_gradient, kTypes);
    constexpr const char* kGradients[] = {"query_gradient", "key_gradient", "value_gradient"};
    for (std::size_t n = 0; n < types.gradients.size(); ++n) fields.choice(kGradients[n], types.gradients[n], kTypes);
    fields.flag("accumulate", accumulate);
  }
  [[nodiscard]] NumberType narrowest_cache() const override { return NumberType::float16; }

 private:
  void expect_typed(Report& report, Machine& machine) const;
  void expect_the_same_bits(Report& report, Engine& several, const BackwardProblem& problem,
                            const Gradients& expected) const;
};

// A weight is exp(score − log_sum_exp), and that is one float: rounded when it was written, and from units of log 2 and
// back on the way, it is off by 3 u |log_sum_exp| and every weight by that factor. The twins keep it as it comes.
double error_of(const Tensor<float, 3>& log_sum_exp) {
  double largest = 0;
  for (const float each : log_sum_exp) {
    if (std::isfinite(each)) largest = std::max(largest, std::abs(static_cast<double>(each)));
  }
  return 3 * test::kUnitRoundoff * largest;
}

// What the gradients of a case are held against.
class Truth {
 public:
  explicit Truth(const BackwardProblem& problem)
      : plain_(test::plain_gradients<float>(problem.in, problem.out_gradient)),
        truth_(test::plain_gradients<double>(problem.in, problem.out_gradient)),
        yardsticks_(test::gradient_yardsticks(problem.in, problem.out_gradient)),
        plain_errors_(
            [c = problem.c](std::uint64_t seed) {
              AttentionCase again = c;
              again.seed = seed;
              return Truth(BackwardProblem(again)).plain_errors();
            },
            problem.c.seed) {}

  void expect_near(Report& report, const Gradients& gradients, const Tensor<float, 3>& log_sum_exp) {
    const double given = error_of(log_sum_exp);
    for_each_result(gradients,
                    [&](std::size_t n, const auto& a, const auto& p, const auto& t, const auto& y, const char* name) {
                      report.expect(plain_errors_.hold(n, a, p, t, y, given), name);
                    });
  }

 private:
  template <class Function>
  void for_each_result(const Gradients& actual, Function f) const {
    const auto call = [&](std::size_t n, const char* name, auto member) {
      f(n, (actual.*member.first).view(), (plain_.*member.first).view(), (truth_.*member.second).view(),
        (yardsticks_.*member.second).view(), name);
    };
    using Doubles = test::GradientTensors<double>;
    call(0, "query", std::pair(&Gradients::query, &Doubles::query));
    call(1, "key", std::pair(&Gradients::key, &Doubles::key));
    call(2, "value", std::pair(&Gradients::value, &Doubles::value));
    call(3, "bias", std::pair(&Gradients::bias, &Doubles::bias));
    call(4, "sinks", std::pair(&Gradients::sinks, &Doubles::sinks));
  }
  [[nodiscard]] std::vector<double> plain_errors() const {
    std::vector<double> errors;
    for_each_result(plain_, [&](auto, const auto&, const auto& p, const auto& t, const auto& y, const char*) {
      errors.push_back(test::worst_row_error(p, t, y).error);
    });
    return errors;
  }

  Gradients plain_;
  test::GradientTensors<double> truth_;
  test::GradientTensors<double> yardsticks_;
  PlainErrors plain_errors_;
};

// Everything laid out, by several workers, and only what is asked for.
void AttentionBackwardSweep::expect_the_same_bits(Report& report, Engine& several, const BackwardProblem& problem,
                                                  const Gradients& expected) const {
  const auto place = [&](const Tensor<float, 4>& tensor) {
    return Placed(NumberType::float32, tensor, layout, side());
  };
  Gradients got(problem.in);
  got.fill(kUnwritten);
  const auto query = place(problem.in.query), key = place(problem.in.key), value = place(problem.in.value),
             out = place(problem.out), out_gradient = place(problem.out_gradient), of_query = place(got.query),
             of_key = place(got.key), of_value = place(got.value);
  AttentionGradients to;
  const auto wants = [&](Asked which) { return asked == Asked::all || asked == which; };
  if (wants(Asked::query)) to.query = of_query.floats_view();
  if (wants(Asked::key)) to.key = of_key.floats_view();
  if (wants(Asked::value)) to.value = of_value.floats_view();
  if (wants(Asked::bias) && problem.in.bias.size() != 0) to.bias = got.bias;
  if (asked == Asked::all && !problem.in.sinks.empty()) to.sinks = got.sinks;
  attention_backward(several, query.floats_view(), key.floats_view(), value.floats_view(), out.floats_view(),
                     problem.log_sum_exp, out_gradient.floats_view(), to, problem.in.options);

  for (const Placed* written : {&of_query, &of_key, &of_value}) {
    if (!written->gaps_are_untouched()) report.fail("something was written between the rows of a gradient");
  }
  if (to.query) report.expect(test::same_bits(of_query.floats(), expected.query), "several workers: query");
  if (to.key) report.expect(test::same_bits(of_key.floats(), expected.key), "several workers: key");
  if (to.value) report.expect(test::same_bits(of_value.floats(), expected.value), "several workers: value");
  if (to.bias) report.expect(test::same_bits(got.bias, expected.bias), "several workers: bias");
  if (to.sinks) report.expect(test::same_bits(got.sinks, expected.sinks), "several workers: sinks");
}

void expect_same(Report& report, const Gradients& a, const Gradients& b, const std::string& way) {
  report.expect(test::same_bits(a.query, b.query), way + "query");
  report.expect(test::same_bits(a.key, b.key), way + "key");
  report.expect(test::same_bits(a.value, b.value), way + "value");
  report.expect(test::same_bits(a.bias, b.bias), way + "bias");
  report.expect(test::same_bits(a.sinks, b.sinks), way + "sinks");
}

// Operands and gradients of the types of the case: float32's bits over the widened operands, rounded. Where pairs of
// bfloat16 are multiplied, the same by any number of workers, and as near to the twin as roundings leave them.
void AttentionBackwardSweep::expect_typed(Report& report, Machine& machine) const {
  AttentionCase c = seeded();
  Engine& one = machine.engine(1);
  test::TypedBackward typed(one, c, types, accumulate);
  const Gradients gradients = typed.of_types(machine.engine(threads));
  if (!typed.multiplies_pairs(one)) {
    return expect_same(report, gradients, typed.rounded(typed.of_floats(one)), "typed: ");
  }
  expect_same(report, gradients, typed.of_types(one), "pairs, several workers: ");
  c.types[3] = NumberType::float32;
  test::TypedBackward sums(one, c, {NumberType::bfloat16, {}}, false);
  test::for_each_error_of_roundings(
      one, sums, error_of(sums.problem.log_sum_exp),
      [&](const char* name, const auto& actual, const auto& truth, double allowed, const auto& sizes) {
        report.expect(test::within(actual, truth, allowed, sizes), std::string("pairs: ") + name);
      });
}

void AttentionBackwardSweep::run(Report& report) const {
  BackwardProblem problem(seeded());
  Truth truth(problem);
  std::optional<Gradients> before;
  for_each_machine(report, [&](Machine& machine, bool has_features) {
    expect_typed(report, machine);
    Gradients gradients = problem.both(machine.engine(1));
    if (has_features) {
      report.expect(test::same_bits(gradients.query, before->query), "query without features");
      return;
    }
    truth.expect_near(report, gradients, problem.log_sum_exp);
    expect_the_same_bits(report, machine.engine(threads), problem, gradients);
    before.emplace(std::move(gradients));
  });
}

constexpr Operation kOperations[] = {
    {"attention_backward", 9,
     [](const char*) -> std::unique_ptr<Case> { return std::make_unique<AttentionBackwardSweep>(); },
     [](const char*, test::Random& random) -> std::unique_ptr<Case> {
       auto made = std::make_unique<AttentionBackwardSweep>();
       draw_attention(*made, random, true);
       if (random.once_in(3)) made->asked = static_cast<Asked>(random.integer(0, 4));
       if (random.once_in(2)) {
         made->types = test::BackwardTypes::random(random.next());
         if (random.once_in(3)) made->types.out_gradient = NumberType::bfloat16;  // as pairs need it
         made->accumulate = random.once_in(3);
       }
       return made;
     }}};

}  // namespace

std::span<const Operation> operations() { return kOperations; }

}  // namespace headlight::sweep::attention_backward_sweep
