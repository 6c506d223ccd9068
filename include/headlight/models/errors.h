// What a file that cannot be used says.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "headlight/export.h"

namespace headlight::models {

// A file, or a folder of them, could not be read, understood or written. what() is one line: the file, the tensor, key
// or line, what it was and what was expected. Whatever the file says, the line holds printable UTF-8 only.
class HEADLIGHT_API FileError : public std::runtime_error {
 public:
  // `message` goes on after "path: "; text out of a file enters it through in_quotes().
  FileError(std::string_view path, std::string_view message);
};

// A pipe or socket that was to be written into has lost its reader, as `program | head` does: the end of the work to
// many.
class HEADLIGHT_API NobodyReads : public FileError {
 public:
  using FileError::FileError;
};

// `text` fit for one line of a message: control and format characters, line separators and bytes that are not UTF-8
// become \n, \t, \xNN or \u{NNNN}; a text of more than about 200 bytes is cut and ends in "…".
[[nodiscard]] HEADLIGHT_API std::string printable(std::string_view text);

// The same between single quotes.
[[nodiscard]] HEADLIGHT_API std::string in_quotes(std::string_view text);

}  // namespace headlight::models
