// What libFuzzer calls, for the fuzzer whose namespace HEADLIGHT_FUZZER names.
#include <cstddef>
#include <cstdint>

namespace headlight::fuzz::HEADLIGHT_FUZZER {
void run(const std::uint8_t* data, std::size_t size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  headlight::fuzz::HEADLIGHT_FUZZER::run(data, size);
  return 0;
}
