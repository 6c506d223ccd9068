// A host that traps floating-point exceptions is not killed by calls whose numbers are finite, or −∞ where that means
// "not this key": rows that see nothing, biases of −FLT_MAX, scratch memory that holds anything.
#include <gtest/gtest.h>

#include <cfenv>
#include <cfloat>
#include <cstring>
#include <functional>
#include <string>

#include "runtime/parallel.h"
#include "soak/harsh_calls.h"
#include "support/isas.h"

namespace headlight::soak::trapping_host_test {

constexpr int kTrapped = FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID;
constexpr std::size_t kMemory = std::size_t{4} << 20;

// What a call before may have left: NaN that signals when it is read, and numbers whose sum overflows.
void spoil(void* memory, std::size_t bytes) {
  const float largest = FLT_MAX;
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uint32_t signalling = 0x7FA00000u;
    std::memcpy(static_cast<std::byte*>(memory) + at, &signalling, 4);
    std::memcpy(static_cast<std::byte*>(memory) + at + 4, &largest, 4);
  }
}
[[gnu::noinline]] void spoil_stack() {
  alignas(64) std::byte memory[48 << 10];
  spoil(memory, sizeof memory);
  asm volatile("" : : "r"(memory) : "memory");
}

std::string names_of(int exceptions) {
  std::string names;
  if (exceptions & FE_DIVBYZERO) names += " division by zero";
  if (exceptions & FE_OVERFLOW) names += " overflow";
  if (exceptions & FE_INVALID) names += " invalid operation";
  return names;
}

class TrappingHost : public test::EachIsaAndFeature {
 protected:
  // Flags of one thread say which exception it was. What raises none runs again on two threads, with traps.
  void expect_quiet(const std::string& name, const std::function<void(Engine&)>& call) {
    {
      const runtime::Scratch memory(engine_, kMemory, "test");
      spoil(memory.data(), kMemory);
    }
    spoil_stack();
    std::feclearexcept(FE_ALL_EXCEPT);
    call(engine_);
    const int raised = std::fetestexcept(kTrapped);
    EXPECT_EQ(raised, 0) << name << ":" << names_of(raised);
#if defined(__GLIBC__)
    if (raised != 0) return;  // the next line would end the test
    ::feenableexcept(kTrapped);
    call(workers_);
    ::fedisableexcept(kTrapped);
#endif
  }

 private:
  Engine engine_{options()}, workers_{options(2)};
};

TEST_P(TrappingHost, IsNotTrappedByAnyOperation) {
  for (const HarshCalls& calls : kHarshCalls) {
    SCOPED_TRACE(calls.name);
    calls.visit([this](const auto& name, const auto& call) { expect_quiet(name, call); });
  }
}

HEADLIGHT_ON_EVERY_FEATURE(TrappingHost);

}  // namespace headlight::soak::trapping_host_test
