// Bytes as people type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headlight::program {

// "1GiB", "512 MiB", "300M", "65536": a whole number and a unit, B where there is none; K is KiB. Nothing for other
// texts, and for less than 1 MiB or more than 64 TiB.
[[nodiscard]] std::optional<std::int64_t> parse_bytes(const std::string& text);
// The check of an option that takes them: what is expected, or nothing.
[[nodiscard]] std::string expected_bytes(const std::string& text);

}  // namespace headlight::program
