#include "harness/options.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "headlight/system.h"

namespace headlight::bench {
namespace {

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  for (std::size_t comma; (comma = list.find(',')) != std::string_view::npos; list.remove_prefix(comma + 1))
    parts.push_back(list.substr(0, comma));
  parts.push_back(list);
  return parts;
}

template <class Number>
Number number(std::string_view option, std::string_view text, Number least) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least))
    throw std::invalid_argument(std::string(option) + ": '" + std::string(text) + "' is not a number that it takes");
  return value;
}

std::vector<Isa> isas(std::string_view list) {
  const std::vector<Isa> available = available_isas();
  if (list == "all") return available;
  std::vector<Isa> wanted;
  for (const std::string_view part : split(list)) {
    const std::optional<Isa> isa = part == "best" ? available.back() : parse_isa(part);
    bool found = false;
    for (const Isa one : available) found = found || (isa && one == *isa);
    if (!found) throw std::invalid_argument("--isa: this machine or build has no '" + std::string(part) + "'");
    wanted.push_back(*isa);
  }
  return wanted;
}

bool take(Options& options, std::string_view argument) {
  const std::size_t equals = argument.find('=');
  const std::string_view option = argument.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : argument.substr(equals + 1);
  if (option == "--isa") {
    options.isas = isas(value);
  } else if (option == "--threads") {
    options.threads.clear();
    for (const std::string_view part : split(value)) options.threads.push_back(number(option, part, 1));
  } else if (option == "--numerics") {
    const std::optional<Numerics> numerics = parse_numerics(value);
    if (!numerics) throw std::invalid_argument("--numerics: '" + std::string(value) + "' is not reproducible or fast");
    options.numerics = *numerics;
  } else if (option == "--seconds") {
    options.seconds = number(option, value, 0.0);
  } else if (option == "--model") {
    options.model = value;
  } else if (argument == "--no-peers") {
    options.peers = false;
  } else if (argument == "--quick") {
    options.quick = true;
  } else if (argument == "--smoke") {
    options.smoke = true;
  } else {
    return false;
  }
  return true;
}

}  // namespace

const char* const kOptionsHelp =
    "  --isa=LIST        instruction sets (best,avx2), or all; the best one\n"
    "  --threads=LIST    1,2; one thread, and all cores\n"
    "  --numerics=fast   with instructions that want it; reproducible\n"
    "  --seconds=S       what a case may take; 0.5, with --quick 0.2\n"
    "  --quick           fewer cases\n"
    "  --smoke           one small case and no figures worth keeping: for tests\n"
    "  --no-peers        no other library beside ours\n"
    "  --model=FOLDER    a published model's files; downloads/all-MiniLM-L6-v2\n"
    "  --benchmark_filter=REGEX, --benchmark_out=FILE and all others of Google Benchmark\n";

Options parse_options(int& argc, char** argv) {
  Options options;
  options.isas = {available_isas().back()};
  options.threads = {1};
  if (const int cores = system_info().cores; cores > 1) options.threads.push_back(cores);
  options.model = "downloads/all-MiniLM-L6-v2";
  bool seconds_given = false;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    seconds_given = seconds_given || std::string_view(argv[i]).starts_with("--seconds");
    if (!take(options, argv[i])) argv[kept++] = argv[i];
  }
  argc = kept;
  argv[argc] = nullptr;
  if (options.quick && !seconds_given) options.seconds = 0.2;
  return options;
}

}  // namespace headlight::bench
