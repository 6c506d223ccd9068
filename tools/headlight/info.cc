// headlight info: what this program is and what it found in this machine.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "headlight/engine.h"
#include "headlight/system.h"
#include "tools/headlight/commands.h"
#include "tools/headlight/engine_arguments.h"
#include "tools/headlight/process.h"

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

struct Arguments {
  EngineArguments engine;
  bool json = false;
};

}  // namespace

void add_info(Command& program) {
  Command command = program.add_subcommand("info", "Version, CPU, instruction sets found and chosen, threads, caches");
  const auto arguments = std::make_shared<Arguments>();
  arguments->engine.add_to(command);
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.footer("Example:\n  build/release/headlight info --json");
  command.callback([arguments] {
    const Engine engine(arguments->engine.options());
    const nlohmann::ordered_json info = collect(engine);
    print(arguments->json ? info.dump(2) + "\n" : as_text(info));
  });
}

}  // namespace headlight::program
