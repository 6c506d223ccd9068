// The bounds that simd/math-inl.h documents, one row each, against double.
#include <string>

#include "simd/probe_fixture.h"
#include "support/quick.h"

namespace headlight::test::math_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double gelu_exact(double x) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double gelu_tanh_exact(double x) {
  // x/2 (1 + tanh u) = x / (1 + e⁻²ᵘ)
  const double u = std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return x / (1.0 + std::exp(-2.0 * u));
}

double gelu_derivative_exact(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5)) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0));
}
double gelu_tanh_derivative_exact(double x) {
  const double root = std::sqrt(2.0 / std::acos(-1.0));
  const double u = root * (x + 0.044715 * x * x * x);
  const double s = 1.0 / (1.0 + std::exp(-2.0 * u));
  const double across = 1.0 / ((1.0 + std::exp(-2.0 * std::abs(u))) * (1.0 + std::exp(2.0 * std::abs(u))));
  return s + x * across * 2.0 * root * (1.0 + 3.0 * 0.044715 * x * x);
}

double silu_exact(double x) { return x / (1.0 + std::exp(-x)); }
double silu_derivative_exact(double x) { return (1.0 + x / (1.0 + std::exp(x))) / (1.0 + std::exp(-x)); }

// On [from, to] the error is at most `ulp` (`ulp_without_fma` where that is another bound), or `relative` to the value,
// or `absolute`: one of them is enough.
struct Row {
  const char* name;
  VectorProbe::Unary VectorProbe::*function;
  double (*exact)(double);
  float from, to;
  double ulp;
  double ulp_without_fma = 0;
  double relative = 0;
  double absolute = 0;
};

constexpr Row kRows[] = {
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, std::exp2, -kInfinity, 0.0f, 1.8, 2.1},
    {"exp2_nonpositive, near 0", &VectorProbe::exp2_nonpositive, std::exp2, -2.0f, 0.0f, 1.8, 2.1},
    {"exp2_nonpositive, a little above 0", &VectorProbe::exp2_nonpositive, std::exp2, 0.0f, 64.0f, 1.8, 2.1},
    {"exp2", &VectorProbe::exp2, std::exp2, -kInfinity, kInfinity, 1.8, 2.1},
    {"exp2, not saturated", &VectorProbe::exp2, std::exp2, -150.0f, 128.0f, 1.8, 2.1},
    {"exp", &VectorProbe::exp, std::exp, -kInfinity, kInfinity, 1.2},
    {"exp, not saturated", &VectorProbe::exp, std::exp, -105.0f, 89.0f, 1.2},
    {"log", &VectorProbe::log, std::log, 0.0f, kInfinity, 1.0},
    {"log, about 1", &VectorProbe::log, std::log, 0.5f, 2.0f, 1.0},
    {"tanh", &VectorProbe::tanh, std::tanh, -kInfinity, kInfinity, 2.5},
    {"tanh, where its two parts meet", &VectorProbe::tanh, std::tanh, 0.25f, 4.0f, 2.5},
    {"gelu, x ≥ 0", &VectorProbe::gelu, gelu_exact, 0.0f, std::numeric_limits<float>::max(), 2.7},
    {"gelu, 0.01 … 8", &VectorProbe::gelu, gelu_exact, 0.01f, 8.0f, 2.7},
    {"gelu, −1 … −0", &VectorProbe::gelu, gelu_exact, -1.0f, -0.0f, 5.0},
    {"gelu, −6 … −1", &VectorProbe::gelu, gelu_exact, -6.0f, -1.0f, 0, 0, 5e-6},
    {"gelu, x ≤ −6", &VectorProbe::gelu, gelu_exact, -std::numeric_limits<float>::max(), -6.0f, 0, 0, 5e-6, 1e-10},
    {"gelu_tanh, x ≥ 0", &VectorProbe::gelu_tanh, gelu_tanh_exact, 0.0f, 1e12f, 2.5},
    {"gelu_tanh, 0.01 … 8", &VectorProbe::gelu_tanh, gelu_tanh_exact, 0.01f, 8.0f, 2.5},
    {"gelu_tanh, −1 … −0", &VectorProbe::gelu_tanh, gelu_tanh_exact, -1.0f, -0.0f, 5.0},
    {"gelu_tanh, −6 … −1", &VectorProbe::gelu_tanh, gelu_tanh_exact, -6.0f, -1.0f, 0, 0, 5e-6},
    {"gelu_tanh, x ≤ −6", &VectorProbe::gelu_tanh, gelu_tanh_exact, -1e12f, -6.0f, 0, 0, 2e-5, 1.2e-36},
    {"gelu_derivative", &VectorProbe::gelu_derivative, gelu_derivative_exact, -1e12f, 1e12f, 0, 0, 0, 3e-7},
    {"gelu_derivative, −10 … 10", &VectorProbe::gelu_derivative, gelu_derivative_exact, -10, 10, 0, 0, 0, 3e-7},
    {"gelu_derivative, below −6", &VectorProbe::gelu_derivative, gelu_derivative_exact, -12, -6, 0, 0, 0, 2e-10},
    {"gelu_tanh_derivative", &VectorProbe::gelu_tanh_derivative, gelu_tanh_derivative_exact, -1e3f, 1e3f, 0, 0, 0,
     3e-7},
    {"gelu_tanh_derivative, −8 … 8", &VectorProbe::gelu_tanh_derivative, gelu_tanh_derivative_exact, -8, 8, 0, 0, 0,
     3e-7},
    {"silu, x ≥ 0", &VectorProbe::silu, silu_exact, 0.0f, std::numeric_limits<float>::max(), 2.5},
    {"silu, 0.01 … 20", &VectorProbe::silu, silu_exact, 0.01f, 20.0f, 2.5},
    {"silu, −1 … −0", &VectorProbe::silu, silu_exact, -1.0f, -0.0f, 3.5},
    {"silu, −30 … −1", &VectorProbe::silu, silu_exact, -30.0f, -1.0f, 0, 0, 2e-6},
    {"silu, x ≤ −30", &VectorProbe::silu, silu_exact, -1e12f, -30.0f, 0, 0, 5e-6, 1.5e-36},
    {"silu_derivative", &VectorProbe::silu_derivative, silu_derivative_exact, -1e12f, 1e12f, 0, 0, 0, 3e-7},
    {"silu_derivative, −20 … 20", &VectorProbe::silu_derivative, silu_derivative_exact, -20, 20, 0, 0, 0, 3e-7},
};

// Floats in their order, as integers.
std::int64_t place(float x) {
  const auto bits = static_cast<std::int64_t>(bits_of(x) & 0x7fffffffu);
  return std::signbit(x) ? -1 - bits : bits;
}
float at_place(std::int64_t place) {
  return place < 0 ? from_bits(static_cast<std::uint32_t>(-1 - place) | 0x80000000u)
                   : from_bits(static_cast<std::uint32_t>(place));
}

// A lattice over all floats of the row, subnormal ones included, both ends with their neighbours, and random ones
// between.
std::vector<float> inputs(const Row& row) {
  const std::int64_t first = place(row.from);
  const std::int64_t last = place(row.to);
  const std::int64_t samples = count(150000, 5000);
  std::vector<float> x;
  Random random(static_cast<std::uint64_t>(last));
  for (std::int64_t n = 0; n < samples; ++n) {
    const double share = static_cast<double>(n) / static_cast<double>(samples);
    x.push_back(at_place(first + static_cast<std::int64_t>(share * static_cast<double>(last - first))));
    x.push_back(at_place(random.integer(first, last)));
  }
  for (std::int64_t n = 0; n < 16; ++n) {
    x.push_back(at_place(first + n));
    x.push_back(at_place(last - n));
  }
  x.resize((x.size() + 15) / 16 * 16, row.to);
  return x;
}

double ulp_error(double got, double want) {
  if (want == got) return 0;
  // An infinity stands where the next float would be.
  const double limit = 0x1p128;
  const double bounded = std::isinf(got) ? std::copysign(limit, got) : got;
  const double target = std::abs(want) > limit ? std::copysign(limit, want) : want;
  const int exponent = target == 0 ? -149 : std::max(std::min(std::ilogb(target), 127) - 23, -149);
  return std::abs(bounded - target) / std::ldexp(1.0, exponent);
}

using MathTest = OnIsa;

TEST_F(MathTest, KeepsItsDocumentedBounds) {
  for (const Row& row : kRows) {
    const double bound = probe().has_fma || row.ulp_without_fma == 0 ? row.ulp : row.ulp_without_fma;
    const std::vector<float> x = inputs(row);
    std::vector<float> y(x.size());
    (probe().*row.function)(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    double worst = 0;
    int shown = 0;
    for (std::size_t i = 0; i < x.size() && shown < 3; ++i) {
      const double want = row.exact(static_cast<double>(x[i]));
      const double error = std::abs(static_cast<double>(y[i]) - want);
      const double ulps = ulp_error(static_cast<double>(y[i]), want);
      if (!std::isnan(y[i]) && (error <= row.relative * std::abs(want) || error <= row.absolute)) continue;
      worst = std::max(worst, ulps);
      if (ulps <= bound) continue;  // false for NaN
      ADD_FAILURE() << row.name << " of " << x[i] << " is " << y[i] << ", not " << want << ": " << ulps << " ULP";
      ++shown;
    }
    RecordProperty(std::string("ulp of ") + row.name, std::to_string(worst));
  }
}

float value(VectorProbe::Unary function, float x) {
  const std::vector<float> in(16, x);
  std::vector<float> out(16);
  function(in.data(), out.data(), probe().lanes);
  return out[static_cast<std::size_t>(probe().lanes - 1)];
}

TEST_F(MathTest, NanGoesThroughEveryFunction) {
#define HEADLIGHT_ENTRY(name) {#name, probe().name},
  const std::pair<const char*, VectorProbe::Unary> all[] = {HEADLIGHT_UNARY(HEADLIGHT_ENTRY)};
#undef HEADLIGHT_ENTRY
  for (const auto& [name, function] : all) {
    if (function == probe().is_nan) continue;
    // Payloads in every position, for the exponential shifts them about.
    for (int bit = 0; bit < 23; ++bit) {
      for (const std::uint32_t sign : {0u, 0x80000000u}) {
        EXPECT_TRUE(std::isnan(value(function, from_bits(sign | 0x7f800000u | 1u << bit)))) << name << " " << bit;
        EXPECT_TRUE(std::isnan(value(function, from_bits(sign | 0x7fc00000u | 1u << bit)))) << name << " " << bit;
      }
    }
  }
}

struct Exact {
  const char* name;
  VectorProbe::Unary VectorProbe::*function;
  float x, y;
};

constexpr Exact kExact[] = {
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, 0.0f, 1.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -0.0f, 1.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -1e-40f, 1.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -126.0f, 0x1p-126f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -149.0f, 0x1p-149f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -150.0f, 0.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -151.5f, 0.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -152.0f, 0.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -1e30f, 0.0f},
    {"exp2_nonpositive", &VectorProbe::exp2_nonpositive, -kInfinity, 0.0f},
    {"exp2", &VectorProbe::exp2, 127.0f, 0x1p127f},
    {"exp2", &VectorProbe::exp2, 128.0f, kInfinity},
    {"exp2", &VectorProbe::exp2, kInfinity, kInfinity},
    {"exp2", &VectorProbe::exp2, -149.0f, 0x1p-149f},
    {"exp2", &VectorProbe::exp2, -150.0f, 0.0f},
    {"exp2", &VectorProbe::exp2, -kInfinity, 0.0f},
    {"exp", &VectorProbe::exp, 0.0f, 1.0f},
    {"exp", &VectorProbe::exp, -0.0f, 1.0f},
    {"exp", &VectorProbe::exp, 88.75f, kInfinity},
    {"exp", &VectorProbe::exp, kInfinity, kInfinity},
    {"exp", &VectorProbe::exp, -104.0f, 0.0f},
    {"exp", &VectorProbe::exp, -kInfinity, 0.0f},
    {"log", &VectorProbe::log, 1.0f, 0.0f},
    {"log", &VectorProbe::log, 0.0f, -kInfinity},
    {"log", &VectorProbe::log, -0.0f, -kInfinity},
    {"log", &VectorProbe::log, kInfinity, kInfinity},
    {"log", &VectorProbe::log, -1e-45f, kNan},
    {"log", &VectorProbe::log, -1.0f, kNan},
    {"log", &VectorProbe::log, -kInfinity, kNan},
    {"tanh", &VectorProbe::tanh, 0.0f, 0.0f},
    {"tanh", &VectorProbe::tanh, -0.0f, -0.0f},
    {"tanh", &VectorProbe::tanh, 1e-45f, 1e-45f},
    {"tanh", &VectorProbe::tanh, 9.02f, 1.0f},
    {"tanh", &VectorProbe::tanh, kInfinity, 1.0f},
    {"tanh", &VectorProbe::tanh, -kInfinity, -1.0f},
    {"relu", &VectorProbe::relu, 3.0f, 3.0f},
    {"relu", &VectorProbe::relu, -3.0f, 0.0f},
    {"relu", &VectorProbe::relu, -0.0f, -0.0f},
    {"relu", &VectorProbe::relu, kInfinity, kInfinity},
    {"relu", &VectorProbe::relu, -kInfinity, 0.0f},
    {"gelu", &VectorProbe::gelu, 0.0f, 0.0f},
    {"gelu", &VectorProbe::gelu, 30.0f, 30.0f},
    {"gelu", &VectorProbe::gelu, -11.4f, 0.0f},
    {"gelu", &VectorProbe::gelu, kInfinity, kInfinity},
    {"gelu", &VectorProbe::gelu, -kInfinity, 0.0f},
    {"gelu_tanh", &VectorProbe::gelu_tanh, 0.0f, 0.0f},
    {"gelu_tanh", &VectorProbe::gelu_tanh, 30.0f, 30.0f},
    {"gelu_tanh", &VectorProbe::gelu_tanh, -9.9f, 0.0f},
    {"gelu_tanh", &VectorProbe::gelu_tanh, kInfinity, kInfinity},
    {"gelu_tanh", &VectorProbe::gelu_tanh, -kInfinity, 0.0f},
    {"silu", &VectorProbe::silu, 0.0f, 0.0f},
    {"silu", &VectorProbe::silu, 100.0f, 100.0f},
    {"silu", &VectorProbe::silu, -87.0f, 0.0f},
    {"silu", &VectorProbe::silu, kInfinity, kInfinity},
    {"silu", &VectorProbe::silu, -kInfinity, 0.0f},
};

TEST_F(MathTest, IsExactWhereItSaysSo) {
  for (const Exact& row : kExact) {
    const float got = value(probe().*row.function, row.x);
    EXPECT_TRUE(same(got, row.y)) << row.name << "(" << row.x << ") is " << got << ", not " << row.y;
  }
}

TEST_F(MathTest, TanhIsOdd) {
  Random random(5);
  for (int n = 0; n < 2000; ++n) {
    const float x = 3.0f * random.normal();
    EXPECT_TRUE(same(value(probe().tanh, -x), -value(probe().tanh, x))) << x;
  }
}

}  // namespace headlight::test::math_test
