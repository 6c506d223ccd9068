// What subcommands write: into a file, which appears whole or not at all, or straight to standard output.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/headlight/support/validators.h"

namespace headlight::program {

// "-", or a name of what standard output is, such as /dev/stdout: nothing else may be printed then.
[[nodiscard]] bool is_standard_output(const std::string& path);

// A file name, and another place than the one that `path` has by then, the value of `option`: two that are standard
// output would be mixed.
[[nodiscard]] Validator apart_from(const char* option, const std::string& path);

// All of `content`. Throws models::FileError, for standard output std::runtime_error.
void write_file(const std::string& path, std::string_view content);

// A file and what is in it now: "[1, 5, 2, 4] float32".
struct WrittenFile {
  std::string path, what;
};

// A file that may have been asked for (else its path is empty), and how its content is made.
struct AskedFile {
  std::string path;
  std::function<std::string()> content;
  std::string what;
};

// Writes those that were asked for; standard output comes last, for whoever reads it may have gone.
[[nodiscard]] std::vector<WrittenFile> write_files(std::vector<AskedFile> files);

// What a subcommand says at its end, on standard output: a line for each file, then the text. Nothing where one of the
// files is standard output.
void print_report(std::span<const WrittenFile> files, const std::string& text = {});

}  // namespace headlight::program
