#include "faults/model_files.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "digests/digest.h"
#include "models/tiny_bert.h"

namespace headlight::faults {
namespace {

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).string()] = (std::ostringstream() << stream.rdbuf()).str();
  }
  return files;
}

}  // namespace

const std::string& tiny_model() {
  static const test::ScratchFolder folder;
  static const std::string path = test::TinyBert().write(folder);
  return path;
}

std::uint64_t digest_of_folder(const std::string& folder) {
  const auto files = files_in(folder);
  if (files.empty()) return 0;
  test::Digest digest;
  for (const auto& [name, content] : files) {
    for (const char byte : name + '\n' + content) digest.add(static_cast<std::uint64_t>(byte));
  }
  return digest.value();
}

bool only_whole_files(const std::string& folder, const std::string& whole) {
  const auto expected = files_in(whole);
  for (const auto& [name, content] : files_in(folder)) {
    const auto found = expected.find(name);
    if (found == expected.end() || found->second != content) return false;
  }
  return true;
}

}  // namespace headlight::faults
