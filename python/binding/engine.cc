#include "engine.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "arguments.h"
#include "errors.h"
#include "interruptible.h"
#include "runtime/engine_state.h"
#include "values.h"

namespace headlight::python {
namespace {

constexpr const char* kName = "Engine";
constexpr std::int64_t kMostThreads = 4096;  // of any engine (headlight/engine.h)
constexpr std::array kWords{EngineWord{"option isa", "isa"}};
constexpr const char* kSignature =
    "def __init__(self, threads: int | None = None, isa: str | None = None, "
    "numerics: Literal['reproducible', 'fast'] = 'reproducible') -> None";

// A list of Python for what has a name().
template <class List>
nb::list names(const List& list) {
  nb::list words;
  for (const auto& one : list) words.append(nb::str(name(one).data(), name(one).size()));
  return words;
}

constexpr std::array<Name<Numerics>, 2> kNumerics = {
    {{"reproducible", Numerics::reproducible}, {"fast", Numerics::fast}}};

EngineOptions engine_options(nb::handle threads, nb::handle isa, nb::handle numerics) {
  EngineOptions options;
  options.numerics = one_of(kName, "numerics", numerics, kNumerics);
  if (!threads.is_none()) {
    const std::int64_t given = integer(kName, "threads", threads);
    if (given < 1 || given > kMostThreads) {  // 0, which in C++ is what None is here, mostly is a sum that went wrong
      refuse_value(kName, "threads is " + std::to_string(given) + ", expected 1 to " + std::to_string(kMostThreads) +
                              ", or None for as many as the process may use");
    }
    options.threads = static_cast<int>(given);
  }
  if (!isa.is_none()) {
    const std::string_view given = text(kName, "isa", isa);
    options.isa = parse_isa(given);
    if (!options.isa) {
      std::string expected;
      for (const Isa one : available_isas())
        expected += (expected.empty() ? "'" : ", '") + std::string(name(one)) + "'";
      refuse_value(kName, "isa is '" + std::string(given) + "', expected one of " + expected);
    }
  }
  return options;
}

void cancel_on_signals(Engine& engine) noexcept { engine.state().cancellation_check = &is_interrupted; }

// Made on first use and never destroyed: its workers sleep until the process ends, when no call of Python's needs it
// any more but some may still run in other threads.
Engine& default_engine() {
  static std::atomic<Engine*> made{nullptr};
  static nb::ft_mutex making;
  Engine* engine = made.load(std::memory_order_acquire);
  if (engine != nullptr) return *engine;
  nb::ft_lock_guard only_one(making);
  engine = made.load(std::memory_order_acquire);
  if (engine == nullptr) {
    engine = new Engine;
    cancel_on_signals(*engine);
    made.store(engine, std::memory_order_release);
  }
  return *engine;
}

void release_scratch(Engine& engine) { engine.release_scratch(); }

}  // namespace

Engine& engine_of(const char* operation, nb::handle engine) {
  if (engine.is_none()) return default_engine();
  Engine* given = nullptr;
  if (!nb::try_cast(engine, given, false) || given == nullptr) {
    refuse_type(operation, "engine is " + kind_of(engine) + ", expected a headlight.Engine or None");
  }
  return *given;
}

void define_engine(nb::module_& module) {
  nb::class_<Engine> type(
      module, "Engine",
      "Which instruction set computes, on how many threads, with which scratch memory.\n\n"
      "threads: 1 to 4096; None takes HEADLIGHT_NUM_THREADS if that is set, else what the process may use.\n"
      "isa: 'scalar', 'sse4', 'avx2', 'avx512' or 'neon'; None takes HEADLIGHT_ISA if that is set, else\n"
      "the best that the CPU has. ValueError for what the CPU or the build lacks.\n"
      "numerics: 'fast' also uses instructions with which the bits of a result may depend on the shape of a call,\n"
      "such as neon_bf16; with 'reproducible' few rows at a time give the bits of many.\n\n"
      "Any number of threads may use one at once; results do not depend on threads.");
  define(
      type, "__init__", kSignature,
      [](Engine* self, nb::handle threads, nb::handle isa, nb::handle numerics) {
        const EngineOptions options = engine_options(threads, isa, numerics);
        with_names_of_python(kName, kWords, [&] { cancel_on_signals(*new (self) Engine(options)); });
      },
      "Takes what the class tells of.", argument("threads") = nb::none(), argument("isa") = nb::none(),
      argument("numerics") = "reproducible");
  define(type, "release_scratch", "def release_scratch(self) -> None", &release_scratch,
         "Gives scratch memory that no call uses back to the system.");
  type.def_prop_ro("threads", &Engine::threads, "Threads that compute, the caller included.")
      .def_prop_ro(
          "isa", [](const Engine& engine) { return name(engine.isa()); }, "The instruction set: 'avx2'.")
      .def_prop_ro(
          "features", [](const Engine& engine) { return names(engine.features().list()); },
          "Instructions beyond the set that are used: ['avx512_bf16', 'avx512_vnni'].")
      .def_prop_ro(
          "numerics", [](const Engine& engine) { return name(engine.numerics()); }, "'reproducible' or 'fast'.")
      .def_prop_ro("scratch_bytes", &Engine::scratch_bytes, "Bytes of scratch memory that the engine keeps.")
      .def("__repr__", [](const Engine& engine) {
        return "headlight.Engine(threads=" + std::to_string(engine.threads()) + ", isa='" +
               std::string(name(engine.isa())) + "', numerics='" + std::string(name(engine.numerics())) + "')";
      });
  // One object, so that it is itself whenever somebody asks.
  static PyObject* shown = nullptr;
  define(
      module, "default_engine", "def default_engine() -> Engine",
      [] {
        static nb::ft_mutex showing;
        Engine& engine = default_engine();
        nb::ft_lock_guard only_one(showing);
        if (shown == nullptr) shown = nb::cast(&engine, nb::rv_policy::reference).release().ptr();
        return nb::borrow(shown);
      },
      "The engine of every call that names none. Made on first use, with the threads and the instruction set of\n"
      "Engine().");
  define(
      module, "available_isas", "def available_isas() -> list[str]", [] { return names(available_isas()); },
      "The instruction sets that this build holds and this CPU runs, worst first.");
}

}  // namespace headlight::python
