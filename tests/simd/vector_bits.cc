// Writes what every operation gives for a fixed set of inputs, as raw bits, to the file named: built once over each
// SIMD library, so that the two can be compared. Exits with 77 where the machine lacks the instruction set.
#include <cstdio>
#include <string>

#include "simd/probe_fixture.h"

namespace headlight::test {
namespace {

class Output {
 public:
  explicit Output(const char* path) : file_(std::fopen(path, "wb")) {}
  ~Output() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write(const std::vector<float>& values) {
    std::vector<std::uint32_t> bits;
    // Which of two NaN an instruction hands on depends on the order of its operands, which compilers may choose.
    for (const float x : values) bits.push_back(std::isnan(x) ? 0x7fc00000u : bits_of(x));
    good_ = good_ && file_ != nullptr && std::fwrite(bits.data(), 4, bits.size(), file_) == bits.size();
  }
  [[nodiscard]] bool finish() {
    good_ = good_ && file_ != nullptr && std::fclose(file_) == 0;
    file_ = nullptr;
    return good_;
  }

 private:
  std::FILE* file_;
  bool good_ = true;
};

// Special values, any bits, and numbers of every size that functions are used at.
std::vector<float> numbers(std::uint64_t seed) {
  std::vector<float> x;
  Random random(seed);
  const std::vector<float> special = special_values();
  for (int n = 0; n < 40000; ++n) {
    const auto pick = static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(special.size()) - 1));
    const float scale = std::ldexp(1.0f, static_cast<int>(random.integer(-30, 8)));
    x.push_back(n % 4 == 0 ? special[pick] : n % 4 == 1 ? random_bits(random) : scale * random.normal());
  }
  return x;
}

void write_elementwise(Output& output) {
  const std::vector<float> a = numbers(11), b = numbers(12), c = numbers(13);
  std::vector<float> out(a.size());
  const auto size = static_cast<std::int64_t>(a.size());
#define HEADLIGHT_WRITE(name)               \
  probe().name(a.data(), out.data(), size); \
  output.write(out);
  HEADLIGHT_UNARY(HEADLIGHT_WRITE)
#undef HEADLIGHT_WRITE
  // Scaling by what is no integer in range is nobody's business.
  std::vector<float> mantissas, exponents;
  Random random(14);
  for (std::int64_t n = 0; n < size; ++n) {
    mantissas.push_back(1.0f + 0.5f * random.uniform());
    exponents.push_back(static_cast<float>(random.integer(-252, 254)));
  }
  const auto binary = [&](VectorProbe::Binary operation) {
    const bool scales = operation == probe().scale_by_power_of_two;
    operation((scales ? mantissas : a).data(), (scales ? exponents : b).data(), out.data(), size);
    output.write(out);
  };
#define HEADLIGHT_WRITE(name) binary(probe().name);
  HEADLIGHT_BINARY(HEADLIGHT_WRITE)
#undef HEADLIGHT_WRITE
#define HEADLIGHT_WRITE(name)                                   \
  probe().name(a.data(), b.data(), c.data(), out.data(), size); \
  output.write(out);
  HEADLIGHT_TERNARY(HEADLIGHT_WRITE)
#undef HEADLIGHT_WRITE
  probe().select_less(a.data(), b.data(), c.data(), out.data(), size);
  output.write(out);
}

void write_whole_vectors(Output& output) {
  const std::vector<float> a = numbers(15);
  const auto lanes = static_cast<std::size_t>(probe().lanes);
  std::vector<float> folded;
  for (std::size_t i = 0; i + lanes <= a.size(); i += lanes) {
    folded.push_back(probe().sum_of_lanes(a.data() + i));
    folded.push_back(probe().max_of_lanes(a.data() + i));
  }
  output.write(folded);
  const std::vector<float> b = numbers(16), c = numbers(17);
  std::vector<float> product(16), even(16), odd(16), dot(16), number(16);
  for (std::size_t i = 0; i + lanes <= a.size(); i += lanes) {
    probe().small_integers(a.data() + i, b.data() + i, c.data() + i, product.data(), even.data(), odd.data(),
                           dot.data(), number.data());
    for (const std::vector<float>& out : {product, even, odd, dot, number}) output.write(out);
  }
  std::vector<std::uint16_t> halves(16);
  std::vector<float> wide(16);
  for (std::uint32_t first = 0; first < 65536; first += static_cast<std::uint32_t>(lanes)) {
    for (std::uint32_t i = 0; i < lanes; ++i) halves[i] = static_cast<std::uint16_t>(first + i);
    probe().load_f16(halves.data(), wide.data());
    output.write(wide);
    probe().load_bf16(halves.data(), wide.data());
    output.write(wide);
  }
  for (std::size_t i = 0; i + lanes <= a.size(); i += lanes) {
    for (const auto& store : {probe().store_bf16, probe().store_f16}) {
      store(a.data() + i, halves.data());
      for (std::size_t lane = 0; lane < lanes; ++lane) wide[lane] = static_cast<float>(halves[lane]);
      output.write(wide);
    }
  }
}

}  // namespace
}  // namespace headlight::test

int main(int argc, char** argv) {
  using namespace headlight::test;
  if (argc != 2) {
    std::fputs("usage: vector_bits FILE\n", stderr);
    return 2;
  }
  if (!machine_has_it()) return 77;
  Output output(argv[1]);
  write_elementwise(output);
  write_whole_vectors(output);
  if (output.finish()) return 0;
  std::fprintf(stderr, "cannot write %s\n", argv[1]);
  return 1;
}
