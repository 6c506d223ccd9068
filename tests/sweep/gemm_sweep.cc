// Matrix products: the float64 twin over what the type of B leaves of the operands, and the same bits however the
// product is cut, laid out or packed.
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/gemm_types.h"
#include "sweep/case.h"

namespace headlight::sweep::gemm_sweep {
namespace {

using test::GemmCase;
using test::GemmOperands;
using test::Matrix;

constexpr const char* kActivations[] = {"none", "relu", "gelu", "gelu_tanh", "silu"};
constexpr const char* kTransposes[] = {"no", "yes"};

// Of B, and whether it is packed.
enum class Operand : std::uint8_t { plain, float32, bfloat16, float16, int8, int4 };
constexpr const char* kOperands[] = {"plain", "float32", "bfloat16", "float16", "int8", "int4"};
NumberType type_of(Operand b) {
  switch (b) {
    case Operand::plain:
    case Operand::float32:
      break;
    case Operand::bfloat16:
      return NumberType::bfloat16;
    case Operand::float16:
      return NumberType::float16;
    case Operand::int8:
      return NumberType::int8;
    case Operand::int4:
      return NumberType::int4;
  }
  return NumberType::float32;
}

// What a product reads and writes, which can be copied and laid out anew; bias and residual stay where they were drawn.
struct Operands {
  Matrix a, b, c;
  GemmOptions options;
};

class GemmSweep : public Case {
 public:
  [[nodiscard]] std::string operation() const override { return "gemm"; }
  void make_valid() override {
    for (std::int64_t* extent : {&call.m, &call.n, &call.k, &call.gap}) *extent = std::max<std::int64_t>(*extent, 0);
    repeats = std::max<std::int64_t>(repeats, 0);
    if (b != Operand::plain) repeats = 0;
  }
  void run(Report& report) const override;

  GemmCase call;
  Operand b = Operand::plain;
  // Products of a batch that are all this one.
  std::int64_t repeats = 0;

 protected:
  void visit(Fields& fields) override {
    fields.number("M", call.m, std::int64_t{0});
    fields.number("N", call.n, std::int64_t{0});
    fields.number("K", call.k, std::int64_t{0});
    fields.choice("packed", b, kOperands);
    fields.choice("transpose_a", call.transpose_a, kTransposes);
    fields.choice("transpose_b", call.transpose_b, kTransposes);
    fields.number("alpha", call.alpha, 1.0f);
    fields.number("beta", call.beta, 0.0f);
    fields.flag("bias", call.bias);
    fields.flag("residual", call.residual);
    fields.choice("activation", call.activation, kActivations);
    fields.number("gap", call.gap, std::int64_t{0});
    fields.number("repeats", repeats, std::int64_t{0});
  }

 private:
  [[nodiscard]] Matrix product(Report& report, Engine& engine, Operands operands, Operand as) const;
  void expect_other_ways(Report& report, Machine& machine, Operands operands, Matrix& expected) const;
  void expect_batch(Report& report, Engine& engine, Operands operands, Matrix& expected) const;
  // Sums of rounded operands are the same on every instruction set, and so is what adds to them without rounding on the
  // way.
  [[nodiscard]] bool has_the_bits_of_all() const {
    const bool exact_epilogue = call.activation == Activation::none || call.activation == Activation::relu;
    const bool is_rounded = b == Operand::bfloat16 || b == Operand::int8 || b == Operand::int4;
    return is_rounded && exact_epilogue && call.alpha == 1 && call.beta == 0;
  }
};

// Into a copy of C.
Matrix GemmSweep::product(Report& report, Engine& engine, Operands operands, Operand as) const {
  Matrix& c = operands.c;
  if (as == Operand::plain) {
    gemm(engine, operands.a.view(), operands.b.view(), c.view(), operands.options);
  } else {
    const PackedMatrix packed(engine, operands.b.view(), operands.options.transpose_b, type_of(as));
    gemm(engine, operands.a.view(), packed, c.view(), operands.options);
  }
  report.expect(test::gaps_are_untouched(c), "C");
  return std::move(c);
}

// The matrix turned, in one piece.
Matrix turned(Matrix from) {
  test::Random random(0);
  const View<float, 2> view = from.view();
  Matrix made(random, view.extent(1), view.extent(0), 0);
  for (std::int64_t i = 0; i < view.extent(0); ++i) {
    for (std::int64_t j = 0; j < view.extent(1); ++j) made.view()(j, i) = view(i, j);
  }
  return made;
}
Transpose other(Transpose transpose) { return transpose == Transpose::no ? Transpose::yes : Transpose::no; }

void GemmSweep::expect_other_ways(Report& report, Machine& machine, Operands operands, Matrix& expected) const {
  const auto same = [&](Matrix c, const char* way) { report.expect(test::same_bits(c.view(), expected.view()), way); };
  same(product(report, machine.engine(threads), operands, b), "several workers");
  if (b == Operand::plain) same(product(report, machine.engine(1), operands, Operand::float32), "packed");
  if (b == Operand::float32) same(product(report, machine.engine(1), operands, Operand::plain), "not packed");
  Operands turned_around = operands;
  turned_around.a = turned(operands.a);
  turned_around.b = turned(operands.b);
  turned_around.options.transpose_a = other(call.transpose_a);
  turned_around.options.transpose_b = other(call.transpose_b);
  same(product(report, machine.engine(threads), turned_around, b), "operands turned");
  if (repeats > 0) expect_batch(report, machine.engine(threads), operands, expected);
}

// Inputs that a stride of 0 repeats.
void GemmSweep::expect_batch(Report& report, Engine& engine, Operands operands, Matrix& expected) const {
  const auto repeated = [&](View<float, 2> view) {
    return View<const float, 3>(view.data, {repeats, view.extent(0), view.extent(1)}, {0, view.stride(0), 1});
  };
  const View<float, 2> first = operands.c.view();
  const std::vector<float>& one = operands.c.memory();
  const auto step = static_cast<std::int64_t>(one.size());
  std::vector<float> memory;
  for (std::int64_t item = 0; item < repeats; ++item) memory.insert(memory.end(), one.begin(), one.end());
  GemmOptions options = operands.options;
  if (options.residual) {
    options.batched_residual = {options.residual.data, {repeats, call.m, call.n}, {0, options.residual.stride(0), 1}};
    options.residual = {};
  }
  gemm(engine, repeated(operands.a.view()), repeated(operands.b.view()),
       View<float, 3>(memory.data(), {repeats, call.m, call.n}, {step, first.stride(0), 1}), options);
  for (std::int64_t item = 0; item < repeats; ++item) {
    const View<float, 2> c(memory.data() + item * step, {call.m, call.n}, {first.stride(0), 1});
    report.expect(test::same_bits(c, expected.view()), "product " + std::to_string(item) + " of a batch");
  }
}

void GemmSweep::run(Report& report) const {
  test::Random random(seed);
  GemmOperands drawn(random, call);
  const test::GemmTruth truth = gemm_truth(drawn, type_of(b));
  const Operands operands{drawn.a, drawn.b, drawn.c, drawn.options};
  std::optional<Matrix> before;
  for_each_machine(report, [&](Machine& machine, bool has_features) {
    Matrix c = product(report, machine.engine(1), operands, b);
    report.expect(test::agrees(c.view(), truth), "C");
    if (before && machine.has_bits_of_set(type_of(b)) && (has_features || has_the_bits_of_all())) {
      report.expect(test::same_bits(c.view(), before->view()), "with other instructions");
    }
    expect_other_ways(report, machine, operands, c);
    before.emplace(std::move(c));
  });
}

// Lanes, tiles, panels, what is small, and blocks of K.
constexpr std::int64_t kEdges[] = {4, 6, 8, 12, 14, 16, 24, 32, 48, 64};
constexpr std::int64_t kDepthEdges[] = {2, 4, 8, 16, 32, 64};

std::unique_ptr<Case> draw_gemm(const char*, test::Random& random) {
  auto made = std::make_unique<GemmSweep>();
  GemmCase& c = made->call;
  const std::int64_t kind = random.integer(1, 20);
  if (kind == 1) {  // enough to wake every worker
    c = GemmCase::random(random, {97, 130, 201, 260});
  } else if (kind <= 3) {  // several blocks of K
    c = GemmCase::random(random, {1, 2, 5, 14, 33});
    c.k = 768 * random.integer(1, 2) + random.integer(-9, 9);
  } else if (kind == 4) {  // one of which is empty
    c = GemmCase::random(random, {0, 1, 3, 20});
  } else {
    c = GemmCase::random(random, {1});
    c.m = draw_size(random, 60, kEdges);
    c.n = draw_size(random, 140, kEdges);
    c.k = draw_size(random, 140, kDepthEdges);
  }
  if (random.once_in(4)) {
    const GemmCase all = c;
    c = GemmCase();
    c.m = all.m;
    c.n = all.n;
    c.k = all.k;
  }
  made->b = static_cast<Operand>(random.integer(0, 5));
  if (random.once_in(3)) made->repeats = random.integer(1, 4);
  return made;
}

constexpr Operation kOperations[] = {
    {"gemm", 16, [](const char*) -> std::unique_ptr<Case> { return std::make_unique<GemmSweep>(); }, draw_gemm}};

}  // namespace

std::span<const Operation> operations() { return kOperations; }

}  // namespace headlight::sweep::gemm_sweep
