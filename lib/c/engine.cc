#include "headlight/engine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "c/handles.h"
#include "headlight/system.h"

namespace headlight::c {
namespace {

#define HEADLIGHT_C_TEXT(number) HEADLIGHT_C_QUOTED(number)
#define HEADLIGHT_C_QUOTED(number) #number

static_assert(isa_in_c(Isa::scalar) == HEADLIGHT_ISA_SCALAR && isa_in_c(Isa::sse4) == HEADLIGHT_ISA_SSE4 &&
              isa_in_c(Isa::avx2) == HEADLIGHT_ISA_AVX2 && isa_in_c(Isa::avx512) == HEADLIGHT_ISA_AVX512 &&
              isa_in_c(Isa::neon) == HEADLIGHT_ISA_NEON);

static_assert(InstructionFeatures{InstructionFeature::avx512_bf16}.bits() == HEADLIGHT_FEATURE_AVX512_BF16);
static_assert(InstructionFeatures{InstructionFeature::amx_int8}.bits() == HEADLIGHT_FEATURE_AMX_INT8);
constexpr headlight_features kKnownFeatures = HEADLIGHT_FEATURE_AVX512_BF16 | HEADLIGHT_FEATURE_AVX512_VNNI |
                                              HEADLIGHT_FEATURE_AVX_VNNI | HEADLIGHT_FEATURE_NEON_DOTPROD |
                                              HEADLIGHT_FEATURE_NEON_I8MM | HEADLIGHT_FEATURE_NEON_BF16 |
                                              HEADLIGHT_FEATURE_AMX_BF16 | HEADLIGHT_FEATURE_AMX_INT8;

constexpr bool is_numerics(headlight_numerics numerics) {
  return numerics >= HEADLIGHT_NUMERICS_REPRODUCIBLE && numerics <= HEADLIGHT_NUMERICS_FAST;
}
static_assert(static_cast<headlight_numerics>(Numerics::fast) == HEADLIGHT_NUMERICS_FAST);

// `text`, cut where it is too long, and zeros.
template <std::size_t Size>
void copy_text(char (&to)[Size], std::string_view text) {
  const std::size_t length = std::min(text.size(), Size - 1);
  std::memcpy(to, text.data(), length);
  std::memset(to + length, 0, Size - length);
}

// What a build has of something, into a caller's array: *count is how many, and the first `capacity` are written.
template <class Value, class InC>
void show_all(const char* operation, const std::vector<Value>& found, const char* argument, std::int32_t* values,
              std::size_t capacity, std::size_t* count, InC in_c) {
  required(operation, "count", count) = found.size();
  const std::size_t room = std::min(capacity, found.size());
  if (room > 0) required(operation, argument, values);
  std::transform(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(room), values, in_c);
}

EngineOptions engine_options(const char* operation, const headlight_engine_options* given, Executor& executor) {
  const Fields fields(operation, "options", given, HEADLIGHT_C_FIELDS(headlight_engine_options));
  EngineOptions options;
  options.threads = fields->threads;
  if (fields->isa != HEADLIGHT_ISA_BEST) {
    options.isa = enumerated<Isa>(operation, "isa", fields->isa, HEADLIGHT_ISA_SCALAR, HEADLIGHT_ISA_NEON);
  }
  if (fields->spin_microseconds != nullptr) options.spin_microseconds = *fields->spin_microseconds;
  if (fields->executor != nullptr) {
    const Fields pool(operation, "executor", fields->executor);
    executor = {pool->context, pool->worker_count, pool->inside_worker, pool->run, pool->wait};
    options.executor = &executor;
  }
  if (fields->features != nullptr) {
    if ((*fields->features & ~kKnownFeatures) != 0) {
      refuse(operation, "features is ", *fields->features, ", expected bits of ", kKnownFeatures);
    }
    options.features = InstructionFeatures::of_bits(*fields->features);
  }
  options.numerics = enumerated<Numerics>(operation, "numerics", fields->numerics, HEADLIGHT_NUMERICS_REPRODUCIBLE,
                                          HEADLIGHT_NUMERICS_FAST);
  return options;
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

const char* headlight_status_name(headlight_status status) {
  static constexpr std::array kNames = {"ok",           "invalid argument", "out of memory",
                                        "system error", "file error",       "internal error"};
  return status < 0 || status >= static_cast<headlight_status>(kNames.size())
             ? ""
             : kNames[static_cast<std::size_t>(status)];
}

const char* headlight_version(void) {
  return HEADLIGHT_C_TEXT(HEADLIGHT_VERSION_MAJOR) "." HEADLIGHT_C_TEXT(HEADLIGHT_VERSION_MINOR) "." HEADLIGHT_C_TEXT(
      HEADLIGHT_VERSION_PATCH);
}

// These views are of string literals, which end in a zero byte.
const char* headlight_simd_library(void) { return simd_library().data(); }

const char* headlight_isa_name(headlight_isa isa) {
  if (isa < HEADLIGHT_ISA_SCALAR || isa > HEADLIGHT_ISA_NEON) return "";
  return name(static_cast<Isa>(isa - HEADLIGHT_ISA_SCALAR)).data();
}

headlight_isa headlight_isa_from_name(const char* name) {
  const std::optional<Isa> isa = parse_isa(name == nullptr ? "" : name);
  return isa ? isa_in_c(*isa) : HEADLIGHT_ISA_BEST;
}

headlight_status headlight_available_isas(headlight_isa* isas, size_t capacity, size_t* count, headlight_error* error) {
  return call(error, [&] { show_all("available_isas", available_isas(), "isas", isas, capacity, count, isa_in_c); });
}

headlight_status headlight_available_types(headlight_type* types, size_t capacity, size_t* count,
                                           headlight_error* error) {
  return call(error,
              [&] { show_all("available_types", available_types(), "types", types, capacity, count, type_in_c); });
}

const char* headlight_feature_name(headlight_features feature) {
  if (!std::has_single_bit(feature)) return "";
  return name(static_cast<InstructionFeature>(std::countr_zero(feature))).data();
}

const char* headlight_numerics_name(headlight_numerics numerics) {
  if (!is_numerics(numerics)) return "";
  return name(static_cast<Numerics>(numerics)).data();
}

headlight_features headlight_available_features(headlight_isa isa) {
  return headlight_available_features_with(isa, HEADLIGHT_NUMERICS_REPRODUCIBLE);
}

headlight_features headlight_available_features_with(headlight_isa isa, headlight_numerics numerics) {
  if (isa < HEADLIGHT_ISA_SCALAR || isa > HEADLIGHT_ISA_NEON || !is_numerics(numerics)) return 0;
  return available_features(static_cast<Isa>(isa - HEADLIGHT_ISA_SCALAR), static_cast<Numerics>(numerics)).bits();
}

headlight_status headlight_system_info(headlight_system* system, headlight_error* error) {
  constexpr const char* kName = "system_info";
  return call(error, [&] {
    const std::size_t size = size_of_struct(kName, "system", required(kName, "system", system));
    const SystemInfo info = system_info();
    headlight_system found{};
    found.struct_size = size;
    found.l1_data_bytes = info.l1_data_bytes;
    found.l2_bytes = info.l2_bytes;
    found.l3_bytes = info.l3_bytes;
    found.cores = info.cores;
    copy_text(found.compiler, info.compiler);
    copy_text(found.cpu_name, info.cpu_name);
    std::memcpy(system, &found, std::min(size, sizeof found));
  });
}

headlight_status headlight_engine_create(const headlight_engine_options* options, headlight_engine** engine,
                                         headlight_error* error) {
  constexpr const char* kName = "engine";
  return create(kName, engine, error, [&] {
    Executor executor;
    return std::make_unique<headlight_engine>(engine_options(kName, options, executor));
  });
}

void headlight_engine_destroy(headlight_engine* engine) { delete engine; }

int32_t headlight_engine_threads(const headlight_engine* engine) {
  return engine == nullptr ? 0 : engine->engine.threads();
}

headlight_isa headlight_engine_isa(const headlight_engine* engine) {
  return engine == nullptr ? HEADLIGHT_ISA_BEST : isa_in_c(engine->engine.isa());
}

headlight_features headlight_engine_features(const headlight_engine* engine) {
  return engine == nullptr ? 0 : engine->engine.features().bits();
}

headlight_numerics headlight_engine_numerics(const headlight_engine* engine) {
  return engine == nullptr ? HEADLIGHT_NUMERICS_REPRODUCIBLE
                           : static_cast<headlight_numerics>(engine->engine.numerics());
}

size_t headlight_engine_scratch_bytes(const headlight_engine* engine) {
  return engine == nullptr ? 0 : engine->engine.scratch_bytes();
}

void headlight_engine_release_scratch(headlight_engine* engine) {
  if (engine != nullptr) engine->engine.release_scratch();
}
