// headlight info: what this program is and what it found in this machine.
#include <memory>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/system.h"
#include "runtime/list_text.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/demonstration/grammar.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_types.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace info_command {
namespace {

// Those of a set that want --numerics fast.
std::vector<InstructionFeature> fast_features(Isa isa) {
  std::vector<InstructionFeature> found = available_features(isa, Numerics::fast).list();
  std::erase_if(found, [&](InstructionFeature feature) { return available_features(isa).has(feature); });
  return found;
}

std::string as_json(const Engine& engine, const SystemInfo& system, const std::vector<std::string>& words) {
  Json info;
  info["version"] = system.version;
  info["cpu"] = system.cpu_name;
  info["cores"] = system.cores;
  info["isa"] = name(engine.isa());
  info["available_isas"] = Json::list();
  for (const Isa isa : available_isas()) info["available_isas"].push_back(name(isa));
  // Instructions beyond the set's own that kernels use here.
  info["features"] = Json::list();
  for (const InstructionFeature feature : engine.features().list()) info["features"].push_back(name(feature));
  info["numerics"] = name(engine.numerics());
  // Those that this build and CPU have for --numerics fast alone.
  info["fast_features"] = Json::list();
  for (const InstructionFeature feature : fast_features(engine.isa())) info["fast_features"].push_back(name(feature));
  // The types of numbers that this build has, and what products and attention multiply each with.
  info["types"] = Json::list();
  for (const NumberType type : available_types()) info["types"].push_back(name(type));
  for (const NumberType type : available_types()) info["products"][name(type)] = instructions_of(engine, type);
  for (const NumberType type : cache_types()) info["attention"][name(type)] = attention_instructions_of(engine, type);
  info["simd"] = simd_library();
  info["threads"] = engine.threads();
  info["compiler"] = system.compiler;
  // Bytes; 0 where there is none.
  info["caches"] = {{"l1d", system.l1_data_bytes}, {"l2", system.l2_bytes}, {"l3", system.l3_bytes}};
  if (!words.empty()) info["words"] = words;
  return info.dump(2) + "\n";
}

std::string kibibytes(std::int64_t bytes) { return bytes == 0 ? "none" : std::to_string(bytes / 1024) + " KiB"; }

std::string as_text(const Engine& engine, const SystemInfo& system) {
  std::string sets, features;
  for (const Isa isa : available_isas()) runtime::append_item(sets, name(isa));
  for (const InstructionFeature feature : engine.features().list()) {
    features.append(features.empty() ? " with " : " and ").append(name(feature));
  }
  std::string text = "headlight " + system.version + ", " + std::string(simd_library()) + ", " + system.compiler;
  text += "\nCPU               " + (system.cpu_name.empty() ? "unknown" : system.cpu_name);
  text += "\ninstruction set   " + std::string(name(engine.isa())) + features + " (available: " + sets + ")";
  std::string fast;
  for (const InstructionFeature feature : fast_features(engine.isa())) runtime::append_item(fast, name(feature));
  text += "\nnumerics          " + std::string(name(engine.numerics())) +
          " (--numerics fast adds: " + (fast.empty() ? "none" : fast) + ")";
  std::string products, attention;
  for (const NumberType type : available_types()) {
    products.append(products.empty() ? "" : "; ").append(name(type)).append(": ");
    products.append(instructions_of(engine, type));
  }
  for (const NumberType type : cache_types()) {
    attention.append(attention.empty() ? "" : "; ").append(name(type));
    if (type == NumberType::int8) attention.append(" (keys and values)");
    attention.append(": ").append(attention_instructions_of(engine, type));
  }
  text += "\nproducts          " + products;
  text += "\nattention         " + attention;
  text += "\nthreads           " + std::to_string(engine.threads()) +
          " (cores granted: " + std::to_string(system.cores) + ")";
  text += "\ncaches            L1d " + kibibytes(system.l1_data_bytes) + ", L2 " + kibibytes(system.l2_bytes) +
          ", L3 " + kibibytes(system.l3_bytes) + "\n";
  return text;
}

// What the demonstration model was trained on, in the order of its vocabulary; without marks like [CLS].
std::vector<std::string> known_words() {
  std::vector<std::string> words;
  for (const std::string& word : demonstration::Grammar::vocabulary()) {
    if (!word.starts_with('[')) words.push_back(word);
  }
  return words;
}

// Filled up to the width of a terminal.
std::string in_lines(const std::vector<std::string>& words) {
  constexpr std::size_t kColumns = 100;
  std::string text;
  std::size_t column = 0;
  for (const std::string& word : words) {
    const std::size_t columns = columns_of(word);
    const bool fits = column > 0 && column + 1 + columns <= kColumns;
    text += (column == 0 ? "" : fits ? " " : "\n") + word;
    column = fits ? column + 1 + columns : columns;
  }
  return text + "\n";
}

struct Arguments {
  EngineArguments engine;
  bool json = false, words = false;
};

void show(const Arguments& arguments) {
  const Engine engine(arguments.engine.options());
  const SystemInfo system = system_info();
  if (arguments.json)
    return print(as_json(engine, system, arguments.words ? known_words() : std::vector<std::string>()));
  print(arguments.words ? in_lines(known_words()) : as_text(engine, system));
}

}  // namespace
}  // namespace info_command

void add_info(Command& program) {
  using namespace info_command;
  Command command = program.add_subcommand("info", "Version, CPU, instruction sets found and chosen, threads, caches");
  const auto arguments = std::make_shared<Arguments>();
  arguments->engine.add_to(command);
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.add_flag("--words", arguments->words, "Print the words that the demonstration model knows");
  command.example("--json");
  command.callback([arguments] { show(*arguments); });
}

}  // namespace headlight::program
