// Every key that published model folders hold, and what loading makes of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_value.h"

namespace headlight::models {

enum class Treatment : std::uint8_t {
  read,       // what it says is done; the code that reads a file refuses values that it cannot follow
  no_effect,  // whatever it says, vectors and hidden states are the same
  refused,    // every value but the accepted ones would change the result in a way that is not built
};

// What becomes of a key that a file's part of the table does not know.
enum class Unknown : std::uint8_t {
  reported,  // those who published the folder may have put it there for themselves: ModelOptions::unknown_keys
  refused,   // every key of this file says how to compute
};

struct FolderKey {
  const char*
      file;  // "config.json"; of a module's file the name that sentence-transformers gives it, "1_Pooling/config.json"
  const char* key;  // with those of the objects around it, "model.vocab"; [] stands for each entry of a list
  Treatment treatment;
  const char*
      accepted;  // of a refused key: values that are taken nevertheless, as described() says them, "|" between two
  const char* note;
};

// By file, in the order of the page docs/model-folders.md, which a test holds to it. Of config.json those of every
// family.
[[nodiscard]] std::span<const FolderKey> folder_keys() noexcept;

// Whether one of some values, "|" between two, is `value`.
[[nodiscard]] bool is_among(std::string_view values, std::string_view value) noexcept;

[[nodiscard]] Unknown unknown_keys_of(std::string_view file) noexcept;

// Goes through the members of `object`, which is `prefix` ("normalizer.") in a file of that kind: throws FileError
// naming the key where one is refused. An unknown key is no error where it is null, nor, where it would be refused, if
// it is false, {} or []: options that are off. Appends "PATH: KEY" for those that are reported. What `own` says of a
// key comes before the table.
void check_keys(const files::JsonValue& object, std::string_view file, std::string_view prefix,
                std::vector<std::string>& unknown, std::span<const FolderKey> own = {});

}  // namespace headlight::models
