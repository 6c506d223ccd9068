#include "runtime/environment.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "runtime/cpu.h"

namespace headlight::runtime {
namespace {

// Empty counts as unset: that is how a shell takes a variable away from one command.
std::string_view read(const char* variable) noexcept {
  const char* const value = std::getenv(variable);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

[[noreturn]] void refuse(const char* variable, std::string_view value, const std::string& expected) {
  throw std::invalid_argument(std::string(variable) + " is '" + std::string(value) + "', expected " + expected);
}

}  // namespace

std::optional<int> threads_from_environment() {
  static constexpr const char* kVariable = "HEADLIGHT_NUM_THREADS";
  const std::string_view value = read(kVariable);
  if (value.empty()) return std::nullopt;
  int threads = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), threads);
  if (error != std::errc() || end != value.data() + value.size() || threads < 1 || threads > kMaxThreads) {
    refuse(kVariable, value, "a whole number from 1 to " + std::to_string(kMaxThreads));
  }
  return threads;
}

std::optional<Isa> isa_from_environment(const CpuFeatures& cpu) {
  static constexpr const char* kVariable = "HEADLIGHT_ISA";
  const std::string_view value = read(kVariable);
  if (value.empty()) return std::nullopt;
  const std::optional<Isa> isa = parse_isa(value);
  if (!isa || !is_available(cpu, *isa))
    refuse(kVariable, value, "one that this build and CPU have: " + list_of_available_isas());
  return isa;
}

}  // namespace headlight::runtime
