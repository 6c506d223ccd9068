#include "models/gguf/metadata.h"

#include <algorithm>
#include <array>
#include <utility>

#include "headlight/models/errors.h"

namespace headlight::models {
namespace {

constexpr std::array<std::string_view, 3> kWhole{"general.", "tokenizer.", "split."};
// What tells of the file and of how it was made.
constexpr std::array<std::string_view, 3> kOfTheFile{"general.", "split.", "quantize."};
constexpr std::size_t kMostUnread = 100, kLongestArchitecture = 64;

}  // namespace

GgufMetadata::GgufMetadata(const GgufFile& file) : file_(file) {
  constexpr std::string_view kKey = "general.architecture";
  const std::optional<std::string_view> name = needed(kKey).string();
  if (!name) fail(kKey, "is no string");
  if (name->size() > kLongestArchitecture) {
    fail(kKey,
         "has " + std::to_string(name->size()) + " bytes, expected at most " + std::to_string(kLongestArchitecture));
  }
  architecture_ = *name;
}

std::string GgufMetadata::whole(std::string_view key) const {
  const auto begins = [&](std::string_view one) { return key.starts_with(one); };
  if (std::any_of(kWhole.begin(), kWhole.end(), begins)) return std::string(key);
  return architecture_ + "." + std::string(key);
}

std::optional<GgufValue> GgufMetadata::find(std::string_view key) const {
  return file_.find_value(*asked_.insert(whole(key)).first);
}

GgufValue GgufMetadata::needed(std::string_view key) const {
  const std::optional<GgufValue> value = find(key);
  if (!value) fail(key, "is missing");
  return *value;
}

std::int64_t GgufMetadata::size(std::string_view key, std::int64_t least, std::optional<std::int64_t> otherwise,
                                std::int64_t most) const {
  if (otherwise && !has(key)) return *otherwise;
  const std::optional<std::int64_t> value = needed(key).integer();
  if (!value) fail(key, "is no integer");
  if (*value < least || *value > most) {
    fail(key, "is " + std::to_string(*value) + ", expected " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *value;
}

double GgufMetadata::number(std::string_view key, std::optional<double> otherwise, double least, double most) const {
  if (otherwise && !has(key)) return *otherwise;
  const std::optional<double> value = needed(key).number();
  if (!value) fail(key, "is no number");
  if (!(*value >= least && *value <= most)) {
    fail(key, "is " + std::to_string(*value) + ", expected " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *value;
}

bool GgufMetadata::flag(std::string_view key, bool otherwise) const {
  if (!has(key)) return otherwise;
  const std::optional<bool> value = needed(key).boolean();
  if (!value) fail(key, "is no boolean");
  return *value;
}

std::optional<std::string> GgufMetadata::text(std::string_view key) const {
  const std::optional<GgufValue> value = find(key);
  if (!value) return std::nullopt;
  const std::optional<std::string_view> found = value->string();
  if (!found) fail(key, "is no string");
  return std::string(*found);
}

template <class Fits>
GgufArray GgufMetadata::array(std::string_view key, const char* what, Fits fits) const {
  if (!has(key)) return {};
  const GgufValue value = needed(key);
  const GgufArray found(value);
  if (value.type() != GgufType::array || !fits(found)) fail(key, std::string("is no array of ") + what);
  return found;
}

GgufArray GgufMetadata::texts(std::string_view key) const {
  return array(key, "strings", [](const GgufArray& found) { return found.has_strings(); });
}

GgufArray GgufMetadata::integers(std::string_view key) const {
  return array(key, "integers", [](const GgufArray& found) { return found.has_integers(); });
}

GgufArray GgufMetadata::numbers(std::string_view key) const {
  return array(key, "numbers", [](const GgufArray& found) { return found.has_numbers(); });
}

void GgufMetadata::fail(std::string_view key, const std::string& message) const {
  throw FileError(file_.path(), printable(whole(key)) + " " + message);
}

std::vector<std::string> GgufMetadata::unread() const {
  std::vector<std::string> keys;
  for (const GgufEntry& entry : file_.metadata()) {
    const auto begins = [&](std::string_view one) { return entry.key().starts_with(one); };
    if (std::any_of(kOfTheFile.begin(), kOfTheFile.end(), begins) || asked_.contains(entry.key())) continue;
    if (keys.size() == kMostUnread) break;
    keys.push_back(printable(file_.path()) + ": " + printable(entry.key()));
  }
  return keys;
}

}  // namespace headlight::models
