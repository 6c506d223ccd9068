#include "tools/headlight/support/text_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "headlight/models/errors.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight/support/resident_memory.h"

namespace headlight::program {
namespace {

// A text, the buffer that it was read into, which grows by doubling, and twice what is in front of it and it.
constexpr std::int64_t kCopies = 6;
// Of the shortest texts that are worth reading.
constexpr std::int64_t kLeastTextBytes = std::int64_t{1} << 16;
// Words that were counted, buffers of files, and what an allocator keeps.
constexpr std::int64_t kSpare = std::int64_t{6} << 20;

// What is measured differs from run to run, by a huge page of 2 MiB or two.
std::string mebibytes(std::int64_t bytes) { return std::to_string((bytes >> 20) + 5) + "MiB"; }

// Bytes of the model's mapped files that are not resident yet, of which a call may touch `touched` at most.
std::int64_t bytes_to_come(const std::string& folder, std::int64_t touched) {
  std::error_code none;
  const std::string place = std::filesystem::canonical(folder, none).string();
  std::ifstream maps("/proc/self/smaps");
  bool of_model = false;
  std::int64_t missing = 0;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    const bool heading = line.find('-') < line.find(' ');  // addresses
    if (heading) of_model = !place.empty() && path < line.size() && line.compare(path, place.size(), place) == 0;
    long long kibibytes = 0;
    if (!of_model || heading) continue;
    if (std::sscanf(line.c_str(), "Size: %lld kB", &kibibytes) == 1) missing += kibibytes * 1024;
    if (std::sscanf(line.c_str(), "Rss: %lld kB", &kibibytes) == 1) missing -= kibibytes * 1024;
  }
  return std::min(missing, touched);
}

// The longest sequence that embed() runs, so that all that it works in is there, and all weights are read.
void run_longest(Engine& engine, const models::TextEncoder& model) {
  const std::vector<std::int64_t> ids(static_cast<std::size_t>(model.options().embed_max_length));
  static_cast<void>(model.embed(engine, {ids.data(), {1, model.options().embed_max_length}}));
}

}  // namespace

TextMemory::TextMemory(std::int64_t bytes, Engine& engine, const models::TextEncoder& model, const std::string& folder)
    : allowed_(bytes) {
  run_longest(engine, model);
  const auto resident = resident_bytes("VmRSS"), peak = resident_bytes("VmHWM");
  if (!resident || !peak) throw std::runtime_error("--memory needs /proc/self/status, which is not there");
  const EncoderOptions& sizes = model.options().encoder;
  const std::int64_t width = std::max<std::int64_t>(sizes.width, model.embed_width());
  const std::int64_t table =
      (sizes.vocabulary + sizes.max_positions) * width * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t model_bytes = *resident + bytes_to_come(folder, table) + kSpare;
  // Of each further text the same again as of the first: buffers grow with tokens, but for those that do not.
  const auto longest = static_cast<std::int64_t>(model.options().embed_max_length);
  const std::int64_t of_text = static_cast<std::int64_t>(engine.scratch_bytes()) +
                               longest * (width + 16) * static_cast<std::int64_t>(sizeof(float)) + 32 * width;
  const std::int64_t least = kCopies * kLeastTextBytes;
  const std::int64_t needed = std::max(*peak, model_bytes + least);
  if (bytes < needed) {
    throw std::runtime_error("--memory is " + bytes_text(static_cast<double>(bytes)) + ", expected at least " +
                             mebibytes(needed) + " for the model and one text");
  }
  // A quarter of what is left at most for more texts at a time, the rest for long ones.
  const std::int64_t spare = bytes - model_bytes - least;
  texts_ = static_cast<std::size_t>(std::clamp<std::int64_t>(1 + spare / 4 / of_text, 1, kTexts));
  text_bytes_ =
      static_cast<std::size_t>((bytes - model_bytes - static_cast<std::int64_t>(texts_ - 1) * of_text) / kCopies);
  model_bytes_ = model_bytes;
  of_more_texts_ = (kTexts - 1) * of_text;
}

void TextMemory::fail_by_size(const std::string& name, std::size_t number, std::size_t size) const {
  const std::int64_t of_text = kCopies * static_cast<std::int64_t>(size);
  const std::int64_t needed = model_bytes_ + of_text + std::min(of_text / 3 + 1, of_more_texts_);
  throw models::FileError(name, "line " + std::to_string(number) + " has " + std::to_string(size) +
                                    " bytes, more than --memory " + bytes_text(static_cast<double>(allowed_)) +
                                    " has room for, expected at least " + mebibytes(needed));
}

}  // namespace headlight::program
