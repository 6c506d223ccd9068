// A model folder that scenes read, and what they say about files.
#pragma once

#include <cstdint>
#include <string>

namespace headlight::faults {

// Made before any fault, for as long as the program runs.
[[nodiscard]] const std::string& tiny_model();

// A digest of the names and bytes of everything in a folder; 0 for none.
[[nodiscard]] std::uint64_t digest_of_folder(const std::string& folder);

// Whether every file there is one of `whole`, byte for byte: none is a part, none has another name.
[[nodiscard]] bool only_whole_files(const std::string& folder, const std::string& whole);

}  // namespace headlight::faults
