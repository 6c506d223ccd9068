#include "tools/headlight/support/output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "headlight/models/atomic_file.h"
#include "headlight/models/errors.h"
#include "tools/headlight/support/process.h"

namespace headlight::program {

bool is_standard_output(const std::string& path) {
  if (path == "-") return true;
  struct stat named {};
  struct stat standard {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0 &&
         named.st_dev == standard.st_dev && named.st_ino == standard.st_ino;
}

Validator apart_from(const char* option, const std::string& path) {
  return [option, &path](const std::string& name) -> std::string {
    if (name.empty()) return "a name";
    if (path.empty() || !is_standard_output(path) || !is_standard_output(name)) return "";
    return std::string("the name of a file, for ") + option + " goes to standard output";
  };
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") return print(content);
  models::AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit();
}

std::vector<WrittenFile> write_files(std::vector<AskedFile> files) {
  std::erase_if(files, [](const AskedFile& file) { return file.path.empty(); });
  std::stable_partition(files.begin(), files.end(),
                        [](const AskedFile& file) { return !is_standard_output(file.path); });
  std::vector<WrittenFile> written;
  for (const AskedFile& file : files) {
    write_file(file.path, file.content());
    written.push_back({file.path, file.what});
  }
  return written;
}

void print_report(std::span<const WrittenFile> files, const std::string& text) {
  const auto is_standard = [](const WrittenFile& file) { return is_standard_output(file.path); };
  if (std::any_of(files.begin(), files.end(), is_standard)) return;
  std::string lines;
  for (const WrittenFile& file : files) lines += models::printable(file.path) + ": " + file.what + "\n";
  if (!lines.empty() && !text.empty()) lines += "\n";
  print(lines + text);
}

}  // namespace headlight::program
