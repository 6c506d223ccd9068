// The engine: which instruction set computes, on how many threads, with which scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "headlight/export.h"

namespace headlight {

// An instruction set that the kernels are compiled for. `scalar` runs everywhere.
enum class Isa : std::uint8_t { scalar, sse4, avx2, avx512, neon };

// "avx2"
[[nodiscard]] HEADLIGHT_API std::string_view name(Isa isa) noexcept;
// The set of that name ("avx2", "AVX2"), or nothing.
[[nodiscard]] HEADLIGHT_API std::optional<Isa> parse_isa(std::string_view name) noexcept;
// The sets that this build holds and this CPU runs, worst first.
[[nodiscard]] HEADLIGHT_API std::vector<Isa> available_isas();
// Instructions that some CPUs have beyond a set's own. Kernels that gain by one are compiled with it once more, and
// take the place of the set's where the CPU has it and gains by it.
enum class InstructionFeature : std::uint8_t {
  // AVX512-BF16, of avx512: products of pairs of bfloat16 numbers. Numbers and sums below 2⁻¹²⁶ count as 0 in them; but
  // for that products of matrices have the bits of the set. Attention rounds its weights (attention.h), and its
  // gradients score gradients, too (attention_backward.h). Intel's CPUs with AMX have it, but are faster in
  // float32: there an engine uses it only if `features` names it.
  avx512_bf16,
  // AVX512-VNNI, of avx512, AVX-VNNI, of avx2, and DotProd, of neon: products of fours of 8-bit integers, exactly.
  avx512_vnni,
  avx_vnni,
  neon_dotprod,
  // I8MM, of neon: the same, two rows by two columns at a time. As the next one checked under an emulator, never timed.
  neon_i8mm,
  // BF16, of neon, and wanting Numerics::fast: products of matrices of bfloat16 numbers, not attention. Their bits are
  // not those of the set, since the instructions add in another way: of each pair (k, k + 1) along K the two products,
  // and that to the sum before. Both are rounded to odd (what is inexact is cut off, and its last bit set), and what is
  // below 2⁻¹²⁶ counts as 0. Half as many additions, each off by twice as much: errors have the bound of the set's. On
  // the route they do not depend.
  neon_bf16,
  // AMX-BF16 and AMX-INT8, of avx512, on Linux alone: products of matrices by tile registers, and attention whose
  // queries, keys and values are bfloat16. Linux gives a process these registers when it is asked to, which an engine
  // does when it is made; that holds for all of the process and for good, and stacks of their own for signals must be
  // 8 KiB larger from then on. Where it says no, an engine goes without. Products of int8 and int4 have the bits of
  // every set. Those of bfloat16 sum the first and the second numbers of the pairs in each 32 along K apart: other bits
  // than the set's, but the same ones for few rows as for many. A call returns with the thread's tile registers
  // released; what the caller kept in them is lost.
  amx_bf16,
  amx_int8
};

// What a result's bits may depend on. With all of them: the build and the instructions in use. Never: threads, the run,
// the rest of the batch.
enum class Numerics : std::uint8_t {
  // On nothing else: few rows at a time give the bits of many, and a step of decoding those of a prefill.
  reproducible,
  // Also on the route that a call takes, such as how many rows it has. So features may be used that round in an order
  // of their own; each says in its comment what it does.
  fast
};

// Any number of them.
class InstructionFeatures {
 public:
  constexpr InstructionFeatures() noexcept = default;
  // Those of the list.
  constexpr InstructionFeatures(std::initializer_list<InstructionFeature> list) noexcept {
    for (const InstructionFeature feature : list) bits_ |= bit(feature);
  }
  // Whether it is among them, and whether all are; and these with one more.
  [[nodiscard]] constexpr bool has(InstructionFeature feature) const noexcept { return (bits_ & bit(feature)) != 0; }
  [[nodiscard]] constexpr bool has(InstructionFeatures all) const noexcept { return (bits_ & all.bits_) == all.bits_; }
  [[nodiscard]] constexpr InstructionFeatures operator|(InstructionFeature feature) const noexcept {
    return of_bits(bits_ | bit(feature));
  }
  [[nodiscard]] constexpr bool operator==(const InstructionFeatures&) const noexcept = default;
  // Bit i is number i of the enumeration; and back.
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  [[nodiscard]] static constexpr InstructionFeatures of_bits(std::uint32_t bits) noexcept {
    InstructionFeatures features;
    features.bits_ = bits;
    return features;
  }
  // In the order of the enumeration.
  [[nodiscard]] HEADLIGHT_API std::vector<InstructionFeature> list() const;

 private:
  static constexpr std::uint32_t bit(InstructionFeature feature) noexcept {
    return std::uint32_t{1} << static_cast<unsigned>(feature);
  }
  std::uint32_t bits_ = 0;
};

// "avx512_bf16"; "" for what is none.
[[nodiscard]] HEADLIGHT_API std::string_view name(InstructionFeature feature) noexcept;
// "fast"; "" for what is none. And back.
[[nodiscard]] HEADLIGHT_API std::string_view name(Numerics numerics) noexcept;
[[nodiscard]] HEADLIGHT_API std::optional<Numerics> parse_numerics(std::string_view name) noexcept;
// Those beyond an instruction set that this build holds, this CPU has and these numerics allow (reproducible, where
// none are given).
[[nodiscard]] HEADLIGHT_API InstructionFeatures available_features(Isa isa) noexcept;
[[nodiscard]] HEADLIGHT_API InstructionFeatures available_features(Isa isa, Numerics numerics) noexcept;
// "highway" or "xsimd": the library behind the kernels of this build.
[[nodiscard]] HEADLIGHT_API std::string_view simd_library() noexcept;

// The caller's own thread pool, for programs that must not get a second one. All four functions are needed, must not
// throw, and may be called from several threads at once when the engine is.
struct Executor {
  void* context = nullptr;  // the first argument of each
  // How many tasks can make progress at once (≥ 1), the calling thread included.
  int (*worker_count)(void* context) = nullptr;
  // Whether the calling thread is one of the pool's workers: the engine then computes inline.
  bool (*inside_worker)(void* context) = nullptr;
  // Starts task(argument, 0) … task(argument, count − 1), in any order, and returns a ticket; may run some before it
  // returns.
  void* (*run)(void* context, int count, void (*task)(void* argument, int index), void* argument) = nullptr;
  // Returns when all tasks of that ticket have ended; may run some of them on the calling thread.
  void (*wait)(void* context, void* ticket) = nullptr;
};

// What an engine may be told.
struct EngineOptions {
  // Threads that compute, the caller included: 0 … 4096. 0: HEADLIGHT_NUM_THREADS if set and not empty, else what the
  // affinity mask and the cgroup quota grant.
  int threads = 0;
  // Unset: HEADLIGHT_ISA if set, else the best that the CPU has. std::invalid_argument if the CPU or the build lacks
  // it.
  std::optional<Isa> isa{};
  // Unset: all that the CPU has beyond that set, `numerics` allows and make it faster. Else these and no others;
  // std::invalid_argument if the CPU, the build or the set lacks one, or if one wants Numerics::fast and that is not
  // asked for, or a permission that the operating system does not give.
  std::optional<InstructionFeatures> features{};
  Numerics numerics = Numerics::reproducible;
  // How long an idle worker spins before it sleeps, and the caller before it does while others finish; ≥ 0. After the
  // first 10 of these microseconds it yields to other threads.
  int spin_microseconds = 50;
  // Borrow this pool instead of starting workers (`threads`, or HEADLIGHT_NUM_THREADS, then only lowers its worker
  // count). The functions are copied; their context must outlive the engine.
  const Executor* executor = nullptr;
};

namespace runtime {
struct EngineState;
}

// Owns the workers and the scratch memory of every operation. Making one starts threads() − 1 workers.
//
// Thread-safe: any number of threads may call operations on one engine at once. The workers serve one call at a time; a
// call that finds them busy computes on its own thread, with the same bits; so does a call made from inside a task.
// Workers compute in the floating-point mode of the calling thread. After fork() the child's copy computes inline. An
// engine made inside a worker of another engine (or of its executor) has one thread. Throws
// std::invalid_argument for bad options or environment values, std::system_error when a thread cannot be started and
// std::bad_alloc when memory cannot be had; nothing is left behind then.
//
// A host may trap division by zero, overflow and invalid operations (feenableexcept(3)): a call raises none of them
// unless a number that it reads is NaN or infinite, other than −∞ for a key that is hidden, or a sum or product of its
// numbers is too large for float32, or a result for its type. Attention multiplies scores by scale · log₂ e: a product
// below −FLT_MAX is too large beside a greater one of its row that is not. The norms of normalization.h do with an
// epsilon of 0, of rows that vary in nothing or are 0.
//
// A call takes at most 24 KiB of the stack, of the thread that makes it and of each worker: a thread of 32 KiB is
// enough.
class HEADLIGHT_API Engine {
 public:
  // Starts the workers, and ends them.
  explicit Engine(const EngineOptions& options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // What it computes with: threads, the caller included; instruction set; instructions beyond that set.
  [[nodiscard]] int threads() const noexcept;
  [[nodiscard]] Isa isa() const noexcept;
  [[nodiscard]] InstructionFeatures features() const noexcept;
  // As it was asked for.
  [[nodiscard]] Numerics numerics() const noexcept;
  // Bytes of scratch memory held now; released with the engine or by release_scratch().
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  // Gives idle scratch memory back to the system.
  void release_scratch() noexcept;

  // Internal: the state that the operations use.
  [[nodiscard]] runtime::EngineState& state() noexcept { return *state_; }

 private:
  std::unique_ptr<runtime::EngineState> state_;
};

}  // namespace headlight
