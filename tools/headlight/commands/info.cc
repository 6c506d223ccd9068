// headlight info: what this program is and what it found in this machine.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/system.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/demonstration/grammar.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {
namespace {

nlohmann::ordered_json collect(const Engine& engine) {
  const SystemInfo system = system_info();
  nlohmann::ordered_json info;
  info["version"] = system.version;
  info["cpu"] = system.cpu_name;
  info["cores"] = system.cores;
  info["isa"] = name(engine.isa());
  info["available_isas"] = nlohmann::ordered_json::array();
  for (const Isa isa : available_isas()) info["available_isas"].push_back(name(isa));
  info["simd"] = simd_library();
  info["threads"] = engine.threads();
  info["compiler"] = system.compiler;
  // Bytes; 0 where there is none.
  info["caches"] = {{"l1d", system.l1_data_bytes}, {"l2", system.l2_bytes}, {"l3", system.l3_bytes}};
  return info;
}

std::string kibibytes(const nlohmann::ordered_json& bytes) {
  return bytes == 0 ? "none" : std::to_string(bytes.get<long>() / 1024) + " KiB";
}

std::string as_text(const nlohmann::ordered_json& info) {
  std::string sets;
  for (const auto& isa : info["available_isas"]) sets += (sets.empty() ? "" : ", ") + isa.get<std::string>();
  const auto& caches = info["caches"];
  const auto text = [&](const char* key) { return info[key].get<std::string>(); };
  return "headlight " + text("version") + ", " + text("simd") + ", " + text("compiler") + "\nCPU               " +
         (text("cpu").empty() ? "unknown" : text("cpu")) + "\ninstruction set   " + text("isa") +
         " (available: " + sets + ")" + "\nthreads           " + std::to_string(info["threads"].get<int>()) +
         " (cores granted: " + std::to_string(info["cores"].get<int>()) + ")" + "\ncaches            L1d " +
         kibibytes(caches["l1d"]) + ", L2 " + kibibytes(caches["l2"]) + ", L3 " + kibibytes(caches["l3"]) + "\n";
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
  nlohmann::ordered_json info = collect(engine);
  if (!arguments.json) return print(arguments.words ? in_lines(known_words()) : as_text(info));
  if (arguments.words) info["words"] = known_words();
  print(info.dump(2) + "\n");
}

}  // namespace

void add_info(Command& program) {
  Command command = program.add_subcommand("info", "Version, CPU, instruction sets found and chosen, threads, caches");
  const auto arguments = std::make_shared<Arguments>();
  arguments->engine.add_to(command);
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.add_flag("--words", arguments->words, "Print the words that the demonstration model knows");
  command.example("--json");
  command.callback([arguments] { show(*arguments); });
}

}  // namespace headlight::program
