// A folder of its own for each test, and what tests over files need: bytes in, bytes out, and the one line of a
// FileError.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/models/errors.h"

namespace headlight::test {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headlight-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] std::string path(std::string_view name = "") const {
    return name.empty() ? path_ : path_ + "/" + std::string(name);
  }

  std::string write(std::string_view name, std::string_view bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream stream(path(name), std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }

  [[nodiscard]] std::string read(std::string_view name) const {
    std::ifstream stream(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // How many files lie in it, hidden ones included.
  [[nodiscard]] std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::string path_;
};

// What the FileError of `action` says; "" (and a failed test) without one. A message must be one printable line.
template <class Action>
std::string file_error(Action action) {
  try {
    action();
  } catch (const models::FileError& error) {
    const std::string line = error.what();
    for (const char byte : line) EXPECT_GE(static_cast<unsigned char>(byte), 0x20) << line;
    EXPECT_LT(line.size(), 2000u);
    return line;
  }
  ADD_FAILURE() << "no FileError";
  return "";
}

// Whether `text` holds all of `parts`.
template <class... Part>
testing::AssertionResult contains(const std::string& text, const Part&... parts) {
  for (const std::string_view part : {std::string_view(parts)...}) {
    if (text.find(part) == std::string::npos) return testing::AssertionFailure() << text << "\nlacks " << part;
  }
  return testing::AssertionSuccess();
}

// Whether `range` is `expected`, element by element.
template <class Range>
testing::AssertionResult holds(const Range& range, std::initializer_list<typename Range::value_type> expected) {
  if (std::equal(range.begin(), range.end(), expected.begin(), expected.end())) return testing::AssertionSuccess();
  return testing::AssertionFailure() << testing::PrintToString(std::vector(range.begin(), range.end())) << "\nis not "
                                     << testing::PrintToString(std::vector(expected));
}

// Reads every truncation of `bytes` and every one of its bytes changed in several ways, through read(path): each
// must either work or say so.
template <class Read>
void expect_no_crash_on_mutations(const ScratchFolder& folder, const std::string& bytes, Read read) {
  const auto attempt = [&](const std::string& mutated) {
    const std::string path = folder.write("mutated", mutated);
    try {
      read(path);
      return true;
    } catch (const models::FileError&) {
      return false;
    }
  };
  ASSERT_TRUE(attempt(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(attempt(bytes.substr(0, length))) << length;
  EXPECT_FALSE(attempt(bytes + "x"));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      std::string mutated = bytes;
      mutated[at] = static_cast<char>(mutated[at] ^ flip);
      attempt(mutated);
    }
  }
}

}  // namespace headlight::test
