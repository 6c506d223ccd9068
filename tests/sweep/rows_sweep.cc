// Row-wise operations and their gradients: the twin, the same bits on several workers, without gaps and in place, and
// over matrices of 16 bits those of float32, rounded.
#include "support/compare.h"
#include "sweep/block_rows_operations.h"
#include "sweep/plain_errors.h"

namespace headlight::sweep::rows_sweep {
namespace {

using test::GuardedRows;

// What a call leaves unwritten shows.
constexpr float kUnwritten = 1e30f;

// Outputs of a call between guard pages.
struct Written {
  Written(const RowsInput& in, std::int64_t rows, std::int64_t gap)
      : y(rows, in.x.view().extent(1), gap, in.side),
        of_weight(1, in.x.view().extent(1), 0, in.side),
        of_bias(1, in.x.view().extent(1), 0, in.side) {
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t e = 0; e < y.view().extent(1); ++e) y.view()(n, e) = kUnwritten;
    }
    for (std::int64_t e = 0; e < in.bias.view().extent(1); ++e) {
      of_weight.view()(0, e) = of_bias.view()(0, e) = in.bias.view()(0, e);
    }
  }
  GuardedRows y, of_weight, of_bias;
  double loss = 0;
};

// The numbers of a matrix of any type.
void take(const test::GuardedMatrix& from, const View<float, 2>& to) {
  for (std::int64_t n = 0; n < to.extent(0); ++n) {
    for (std::int64_t e = 0; e < to.extent(1); ++e) to(n, e) = from.at(n, e);
  }
}

template <class Operation>
struct Truth {
  Truth(const RowsCase& c, const RowsInput& in)
      : truth(in, Operation::rows(c)),
        sizes(in, Operation::rows(c)),
        plain(in, Operation::rows(c)),
        plain_errors([&c](std::uint64_t seed) { return errors_of_seed(c, seed); }, c.seed) {
    const RowsNumbers<double> numbers(in);
    Operation::template twin<double>(c, numbers, truth);
    Operation::template twin<float>(c, RowsNumbers<float>(in), plain);
    Operation::sizes(c, numbers, sizes);
  }
  static std::vector<double> errors_of_seed(const RowsCase& c, std::uint64_t seed) {
    const std::unique_ptr<RowsCase> again = c.with_seed(seed);
    const Truth drawn(*again, RowsInput(*again, 0));
    const auto error = [](const auto& of_floats, const auto& of_doubles, const auto& measured_by) {
      return test::worst_row_error(of_floats.view(), of_doubles.view(), measured_by.view()).error;
    };
    return {error(drawn.plain.y, drawn.truth.y, drawn.sizes.y),
            error(drawn.plain.of_weight, drawn.truth.of_weight, drawn.sizes.of_weight),
            error(drawn.plain.of_bias, drawn.truth.of_bias, drawn.sizes.of_bias)};
  }

  RowsResults<double> truth, sizes;
  RowsResults<float> plain;
  PlainErrors plain_errors;
};

template <class Operation>
class RowsSweep : public RowsCase {
 public:
  explicit RowsSweep(const char* name) : name_(name) {}
  [[nodiscard]] std::string operation() const override { return name_; }
  [[nodiscard]] std::unique_ptr<RowsCase> with_seed(std::uint64_t other) const override {
    auto made = std::make_unique<RowsSweep>(*this);
    made->seed = other;
    return made;
  }
  void run(Report& report) const override;

 private:
  void call(Engine& engine, const RowsInput& in, Written& to, const View<float, 2>& y) const {
    const auto length = static_cast<std::size_t>(columns);
    RowsOutput out{y, {to.of_weight.view().data, length}, {to.of_bias.view().data, length}};
    Operation::call(engine, *this, in, out);
    to.loss = out.loss;
  }
  void expect_near_the_truth(Report& report, Truth<Operation>& truth, const Written& written) const;
  void expect_typed(Report& report, Machine& machine) const;
  static void expect_same(Report& report, const View<float, 2>& y, const Written& written, const Written& expected,
                          const std::string& way) {
    report.expect(test::same_bits(y, expected.y.view()), way + ": y");
    report.expect(test::same_bits(written.of_weight.view(), expected.of_weight.view()), way + ": sums of weight");
    report.expect(test::same_bits(written.of_bias.view(), expected.of_bias.view()), way + ": sums of bias");
    if (written.loss != expected.loss) report.fail(way + ": loss");
  }

  const char* name_;
};

template <class Operation>
void RowsSweep<Operation>::expect_near_the_truth(Report& report, Truth<Operation>& truth,
                                                 const Written& written) const {
  if (Operation::kSizesAreErrors) {
    for (std::int64_t n = 0; n < Operation::rows(*this); ++n) {
      for (std::int64_t e = 0; e < columns; ++e) {
        const double error = std::abs(static_cast<double>(written.y.view()(n, e)) - truth.truth.y(n, e));
        if (error <= truth.sizes.y(n, e)) continue;
        report.fail("y(" + std::to_string(n) + ", " + std::to_string(e) + ") is off by " + text_of(error) +
                    ", allowed " + text_of(truth.sizes.y(n, e)));
      }
    }
    return;
  }
  const auto expect_near = [&](std::size_t n, const View<float, 2>& actual, auto result, const char* name) {
    const auto& [of_floats, of_doubles] = result;
    report.expect(truth.plain_errors.hold(n, actual, (truth.plain.*of_floats).view(), (truth.truth.*of_doubles).view(),
                                          (truth.sizes.*of_doubles).view()),
                  name);
  };
  using Floats = RowsResults<float>;
  using Doubles = RowsResults<double>;
  expect_near(0, written.y.view(), std::pair(&Floats::y, &Doubles::y), "y");
  expect_near(1, written.of_weight.view(), std::pair(&Floats::of_weight, &Doubles::of_weight), "sums of weight");
  expect_near(2, written.of_bias.view(), std::pair(&Floats::of_bias, &Doubles::of_bias), "sums of bias");
  // A logarithm of a sum, and a difference of logits.
  if (!(std::abs(written.loss - truth.truth.loss) <= 16 * test::kUnitRoundoff * truth.sizes.loss)) {
    report.fail("loss is " + text_of(written.loss) + ", expected " + text_of(truth.truth.loss));
  }
}

// Matrices of the types of the case, by several workers: the bits of float32 over the same numbers, rounded.
template <class Operation>
void RowsSweep<Operation>::expect_typed(Report& report, Machine& machine) const {
  if constexpr (TakesAnyTypes<Operation>) {
    const std::int64_t written_rows = Operation::rows(*this);
    const RowsInput widened(*this, gap);
    TypedRowsInput in(*this, widened);
    take(in.x, widened.x.view());
    take(in.other, widened.other.view());
    if (!Operation::kWritesTable) take(in.table, widened.table.view());
    Written expected(widened, written_rows, gap);
    call(machine.engine(1), widened, expected, expected.y.view());

    test::Random random(seed);
    const test::GuardedMatrix y(Operation::kWritesTable ? NumberType::float32 : types[2], written_rows, columns, gap,
                                widened.side, random);
    const auto expect = [&](const test::GuardedMatrix& into, const std::string& way) {
      const Written sums(widened, 0, 0);
      const auto length = static_cast<std::size_t>(columns);
      call_typed(Operation(), machine.engine(threads), *this, in,
                 {into.view(), {sums.of_weight.view().data, length}, {sums.of_bias.view().data, length}});
      report.expect(into.holds(expected.y.template to<float>()), way + ": y");
      report.expect(test::same_bits(sums.of_weight.view(), expected.of_weight.view()), way + ": sums of weight");
      report.expect(test::same_bits(sums.of_bias.view(), expected.of_bias.view()), way + ": sums of bias");
    };
    expect(y, "of its types");
    if (Operation::kMayLieOnX && types[0] == types[2]) expect(in.x, "of its types, in place of x");
  }
}

template <class Operation>
void RowsSweep<Operation>::run(Report& report) const {
  const std::int64_t written_rows = Operation::rows(*this);
  const RowsInput in(*this, gap);
  Truth<Operation> truth(*this, in);
  for_each_machine(report, [&](Machine& machine, bool has_features) {
    if (has_features) return;  // they are for products
    Written once(in, written_rows, gap);
    call(machine.engine(1), in, once, once.y.view());
    if (!once.y.gaps_are_untouched()) report.fail("something was written between the rows");
    expect_near_the_truth(report, truth, once);

    const RowsInput without_gaps(*this, 0);
    Written again(without_gaps, written_rows, 0);
    call(machine.engine(threads), without_gaps, again, again.y.view());
    expect_same(report, again.y.view(), again, once, "several workers, without gaps");
    if (types != decltype(types)()) expect_typed(report, machine);
    if (!Operation::kMayLieOnX) return;
    const RowsInput overwritten(*this, gap);
    Written in_place(in, 0, gap);
    call(machine.engine(1), overwritten, in_place, overwritten.x.view());
    expect_same(report, overwritten.x.view(), in_place, once, "in place of x");
  });
}

template <class Operation>
std::unique_ptr<Case> make(const char* name) {
  return std::make_unique<RowsSweep<Operation>>(name);
}

constexpr std::int64_t kColumnEdges[] = {4, 8, 16, 32, 64, 128, 384};
constexpr std::int64_t kRowEdges[] = {2, 3, 16, 64};

template <class Operation>
std::unique_ptr<Case> draw(const char* name, test::Random& random) {
  auto made = std::make_unique<RowsSweep<Operation>>(name);
  const bool is_large = random.once_in(20);
  made->rows = is_large ? random.integer(100, 400) : draw_size(random, 70, kRowEdges);
  made->columns = is_large ? random.integer(100, 400) : draw_size(random, random.once_in(4) ? 400 : 130, kColumnEdges);
  if (random.once_in(40)) made->rows = 0;
  if (random.once_in(2)) made->gap = random.integer(1, 9);
  constexpr float kSizes[] = {0.1f, 3, 30, 1000};
  if (random.once_in(3)) made->size = kSizes[random.integer(0, 3)];
  if (random.once_in(4)) made->offset = 50 * random.uniform();
  made->weight = random.once_in(2);
  made->bias = random.once_in(2);
  made->residual = random.once_in(3);
  made->normalize = random.once_in(2);
  if (random.once_in(2)) made->probability = 0.5f + 0.4375f * random.uniform();
  made->groups = random.integer(1, 12);
  if (random.once_in(2)) made->tables = random.integer(1, 8);
  made->activation = static_cast<Activation>(random.integer(0, static_cast<int>(kLastActivation)));
  made->one_plus = random.once_in(2);
  made->heads = random.integer(1, 12);
  if (!random.once_in(4)) made->dims = random.once_in(3) ? random.integer(0, made->columns) : made->columns;
  made->norm = static_cast<NormKind>(random.integer(0, 2));
  made->pairing = static_cast<RotaryPairing>(random.integer(0, 1));
  made->make_valid();
  if (random.once_in(2)) {
    for (NumberType& type : made->types) type = static_cast<NumberType>(random.integer(0, 2));
  }
  return made;
}

constexpr sweep::Operation kOperations[] = {
    {"softmax", 1, make<Softmax>, draw<Softmax>},
    {"softmax_backward", 1, make<SoftmaxBackward>, draw<SoftmaxBackward>},
    {"layer_norm", 1, make<LayerNorm>, draw<LayerNorm>},
    {"layer_norm_backward", 1, make<LayerNormBackward>, draw<LayerNormBackward>},
    {"activate", 1, make<Activate>, draw<Activate>},
    {"activate_backward", 1, make<ActivateBackward>, draw<ActivateBackward>},
    {"dropout", 1, make<DropoutRows>, draw<DropoutRows>},
    {"embed", 1, make<Embed>, draw<Embed>},
    {"embed_backward", 1, make<EmbedBackward>, draw<EmbedBackward>},
    {"mean_pool", 1, make<MeanPool>, draw<MeanPool>},
    {"mean_pool_backward", 1, make<MeanPoolBackward>, draw<MeanPoolBackward>},
    {"bias_backward", 1, make<BiasBackward>, draw<BiasBackward>},
    {"cross_entropy", 1, make<CrossEntropyRows>, draw<CrossEntropyRows>},
    {"rms_norm", 1, make<RmsNorm>, draw<RmsNorm>},
    {"rms_norm_backward", 1, make<RmsNormBackward>, draw<RmsNormBackward>},
    {"gate", 1, make<Gate>, draw<Gate>},
    {"gate_backward", 1, make<GateBackward>, draw<GateBackward>},
    {"head_rows", 1, make<HeadRows>, draw<HeadRows>},
    {"head_rows_backward", 1, make<HeadRowsBackward>, draw<HeadRowsBackward>},
};

}  // namespace

std::span<const Operation> operations() { return kOperations; }

}  // namespace headlight::sweep::rows_sweep
