#include "models/gguf_merges.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "files/json_value.h"
#include "models/json_text.h"

namespace headlight::models {
namespace {

constexpr std::size_t kMostMerges = std::size_t{1} << 21;

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

}  // namespace

std::optional<std::string> merges_text(const std::vector<std::string_view>& tokens, const std::vector<double>& scores) {
  struct Merge {
    double score;
    std::size_t left, right;                // ids
    std::size_t left_length, right_length;  // in characters
    std::size_t order;                      // as found
  };
  std::map<std::string_view, std::size_t> ids;
  for (std::size_t n = 0; n < tokens.size(); ++n) ids.emplace(tokens[n], n);
  std::vector<Merge> merges, of_token;
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const std::string_view token = tokens[n];
    of_token.clear();
    for (std::size_t at = 1; at < token.size(); ++at) {
      if ((token[at] & 0xC0) == 0x80) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      of_token.push_back(
          {scores[n], left->second, right->second, characters_of(left->first), characters_of(right->first), 0});
    }
    std::sort(of_token.begin(), of_token.end(),
              [](const Merge& a, const Merge& b) { return std::tie(a.left, a.right) < std::tie(b.left, b.right); });
    if (merges.size() + of_token.size() > kMostMerges) return std::nullopt;
    for (Merge& merge : of_token) {
      merge.order = merges.size();
      merges.push_back(merge);
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::tie(b.left_length, b.right_length, a.order) < std::tie(a.left_length, a.right_length, b.order);
  });
  std::string list("[");
  for (const Merge& merge : merges) {
    list.append(list.size() == 1 ? "[" : ",[").append(json_text(tokens[merge.left])).append(",");
    list.append(json_text(tokens[merge.right])) += ']';
    if (list.size() > files::JsonValue::kLargestFile) return std::nullopt;
  }
  return list.append("]");
}

}  // namespace headlight::models
