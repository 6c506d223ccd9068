// .npy files as the subcommands need them: of a known number of axes, or broadcast to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/models/npy.h"

namespace headlight::program {

// "[2, 5, 3, 64]"
[[nodiscard]] std::string describe(const std::vector<std::int64_t>& shape);

// The array in `path`, which has `axes` axes; `meaning` says which they are: "[B, Lq, Hq, D]". Throws FileError.
template <class T>
[[nodiscard]] models::Array<T> read_array(const std::string& path, std::size_t axes, const std::string& meaning);

// The array in `path` with axes of extent 1 put in front until there are `axes`, as broadcasting has it.
template <class T>
[[nodiscard]] models::Array<T> read_broadcast(const std::string& path, std::size_t axes, const std::string& meaning);

extern template models::Array<float> read_array(const std::string&, std::size_t, const std::string&);
extern template models::Array<std::int64_t> read_array(const std::string&, std::size_t, const std::string&);
extern template models::Array<float> read_broadcast(const std::string&, std::size_t, const std::string&);
extern template models::Array<std::uint8_t> read_broadcast(const std::string&, std::size_t, const std::string&);

}  // namespace headlight::program
