// What is asked of numbers in a storage format before anybody reads them.
#pragma once

#include <cstdint>
#include <string_view>

#include "headlight/storage_format.h"
#include "ops/check.h"

namespace headlight::ops {

inline void check_stored_numbers(std::string_view operation, std::string_view argument, const StoredNumbers& stored,
                                 std::int64_t columns) {
  const auto number = static_cast<std::size_t>(stored.format);
  if (number >= storage_formats().size()) {
    fail(operation, argument, " is stored in the format ", number, ", which is none");
  }
  const StorageFormatInfo& of = info(stored.format);
  if (of.has_whole_blocks && columns % of.numbers != 0) {
    fail(operation, argument, " is stored as ", of.name, " in rows of ", columns, " numbers, expected a multiple of ",
         of.numbers);
  }
  if (of.beside && stored.scales == nullptr) fail(operation, argument, " is stored as ", of.name, " without scales");
  if (reinterpret_cast<std::uintptr_t>(stored.data) % of.alignment != 0) {
    fail(operation, argument, " lies at an address that is no multiple of a number's ", of.alignment, " bytes");
  }
}

}  // namespace headlight::ops
