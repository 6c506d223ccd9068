// What can be wrong with texts that are read one a line, from a file or as they come.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "headlight/models/errors.h"

namespace headlight::program {

// The last call of the system failed.
[[noreturn]] inline void fail_to_read(const std::string& name) {
  throw models::FileError(name, std::string("cannot be read: ") + std::strerror(errno));
}

// Lines are counted from 1.
[[noreturn]] inline void fail_by_encoding(const std::string& name, std::size_t number, const std::string& line) {
  throw models::FileError(name, "line " + std::to_string(number) + " is not UTF-8: " + models::printable(line));
}

[[noreturn]] inline void fail_as_empty(const std::string& name) {
  throw models::FileError(name, "is empty, expected one text a line");
}

}  // namespace headlight::program
