#include "tools/headlight/commands/attend_names.h"

#include <array>

namespace headlight::program {
namespace {

// An argument of the engine, or how a sentence about it begins.
struct OptionName {
  std::string_view argument, option;
};

constexpr std::array kNames{OptionName{"query", "--query"},
                            OptionName{"key", "--key"},
                            OptionName{"value", "--value"},
                            OptionName{"query_lengths", "--query-lengths"},
                            OptionName{"key_lengths", "--key-lengths"},
                            OptionName{"query_offsets given without key_offsets, but",
                                       "--cu-seqlens is given, expected as many keys as queries:"},
                            OptionName{"query_offsets", "--cu-seqlens"},
                            OptionName{"query_start", "--query-start"},
                            OptionName{"key_start", "--key-start"},
                            OptionName{"mask", "--mask"},
                            OptionName{"bias", "--bias"},
                            OptionName{"alibi", "--alibi"},
                            OptionName{"sinks", "--sinks"},
                            OptionName{"out_gradient", "--grad-out"}};

}  // namespace

std::string in_names_of_options(std::string_view message) {
  const std::size_t colon = message.find(": ");
  const std::string_view sentence = colon == message.npos ? message : message.substr(colon + 2);
  for (const OptionName& name : kNames) {
    if (!sentence.starts_with(name.argument)) continue;
    const std::string_view rest = sentence.substr(name.argument.size());
    if (rest.starts_with(' ') || rest.starts_with('[')) return std::string(name.option).append(rest);
  }
  return std::string(message);
}

}  // namespace headlight::program
