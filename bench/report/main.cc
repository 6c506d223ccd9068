// Makes one report of what suites and peers measured.
//   bench_report --out=FOLDER [--goals=FILE] [--reasons=FILE] [--peers=FILE] [--latency=FILE] [--note=TEXT]
//                [--build=NAME:OURS.json:THEIRS.json …] SUITE.json …
// writes report.md, report.json and pictures beside them. --peers holds one JSON list, or one row a line.
#include <sys/utsname.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "report/json_report.h"
#include "report/pictures.h"

namespace headlight::bench::report {
namespace {

using nlohmann::json;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

json parsed(const std::string& path) {
  const json value = json::parse(text_of(path), nullptr, false);
  if (value.is_discarded()) throw std::runtime_error(path + ": not JSON");
  return value;
}

json parsed_list(const std::string& path) {
  const std::string text = text_of(path);
  if (json whole = json::parse(text, nullptr, false); whole.is_array()) return whole;
  json list = json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    list.push_back(json::parse(line, nullptr, false));
    if (list.back().is_discarded()) throw std::runtime_error(path + ": neither a JSON list nor a row a line");
  }
  return list;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
}

struct Arguments {
  std::string out, goals, reasons, peers, latency, note;
  std::vector<std::string> suites;
  std::vector<std::array<std::string, 3>> builds;  // name, our file of that turn, theirs
};

std::array<std::string, 3> build_of(std::string_view text) {
  const std::size_t first = text.find(':'), second = text.find(':', first + 1);
  if (second == text.npos) throw std::runtime_error("--build: expected NAME:OURS.json:THEIRS.json");
  return {std::string(text.substr(0, first)), std::string(text.substr(first + 1, second - first - 1)),
          std::string(text.substr(second + 1))};
}

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  const std::pair<std::string_view, std::string*> options[] = {
      {"--out=", &arguments.out},     {"--goals=", &arguments.goals},     {"--reasons=", &arguments.reasons},
      {"--peers=", &arguments.peers}, {"--latency=", &arguments.latency}, {"--note=", &arguments.note}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    bool taken = false;
    for (const auto& [option, value] : options) {
      if (!argument.starts_with(option)) continue;
      *value = argument.substr(option.size());
      taken = true;
    }
    if (taken) continue;
    if (argument.starts_with("--build=")) {
      arguments.builds.push_back(build_of(argument.substr(8)));
      continue;
    }
    if (argument.starts_with("--")) throw std::runtime_error("unknown option " + std::string(argument));
    arguments.suites.emplace_back(argument);
  }
  if (arguments.out.empty()) throw std::runtime_error("--out=FOLDER is missing");
  return arguments;
}

int run(const Arguments& arguments) {
  Measured measured;
  const auto add = [&](const std::string& path, const json& file, void (*take)(const json&, Measured&)) {
    try {
      take(file, measured);
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ": " + error.what());
    }
  };
  for (const std::string& path : arguments.suites) add(path, parsed(path), add_suite);
  for (const auto& [name, ours, theirs] : arguments.builds) add_build(name, parsed(ours), parsed(theirs), measured);
  if (!arguments.peers.empty()) add(arguments.peers, parsed_list(arguments.peers), add_peers);
  if (!arguments.latency.empty()) add(arguments.latency, parsed(arguments.latency), add_latency);
  utsname system{};
  if (::uname(&system) == 0)
    measured.context["system"] = std::string(system.sysname) + " " + system.release + " " + system.machine;

  const std::filesystem::path folder = arguments.out;
  std::filesystem::create_directories(folder);
  PageInput input{measured};
  if (!arguments.goals.empty()) input.goals = parsed(arguments.goals);
  if (!arguments.reasons.empty()) input.reasons = parsed(arguments.reasons);
  input.note = arguments.note;
  for (const Picture& picture : pictures_of(measured)) {
    write(folder / picture.file, picture.svg);
    input.charts.emplace_back(picture.title, picture.file);
  }
  write(folder / "report.json", json_report(input).dump(1) + "\n");
  write(folder / "report.md", markdown_page(input));
  return 0;
}

}  // namespace
}  // namespace headlight::bench::report

int main(int argc, char** argv) try {
  return headlight::bench::report::run(headlight::bench::report::arguments_of(argc, argv));
} catch (const std::exception& error) {
  std::cerr << "bench_report: " << error.what() << '\n';
  return 1;
}
