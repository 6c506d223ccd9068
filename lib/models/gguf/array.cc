#include "models/gguf/array.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "models/gguf/header.h"

namespace headlight::models {
namespace {

constexpr std::size_t kCountBytes = sizeof(std::uint64_t);
constexpr std::size_t kHeadBytes = sizeof(std::uint32_t) + kCountBytes;  // the type of elements, and how many

// f(number of a type) of a value of that type; false of what is no number.
template <class Function>
bool with_number(GgufType type, std::span<const std::byte> from, const Function& f) {
  const auto call = [&](auto value) {
    if (from.size() < sizeof value) return false;
    f(read_number<decltype(value)>(from.data()));
    return true;
  };
  switch (type) {
    case GgufType::uint8:
      return call(std::uint8_t());
    case GgufType::int8:
      return call(std::int8_t());
    case GgufType::uint16:
      return call(std::uint16_t());
    case GgufType::int16:
      return call(std::int16_t());
    case GgufType::uint32:
      return call(std::uint32_t());
    case GgufType::int32:
      return call(std::int32_t());
    case GgufType::uint64:
      return call(std::uint64_t());
    case GgufType::int64:
      return call(std::int64_t());
    case GgufType::float32:
      return call(float());
    case GgufType::float64:
      return call(double());
    case GgufType::boolean:
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return false;
}

// Whether at(number) is something for all elements.
template <class At>
bool are_all(const GgufArray& array, const At& at) {
  for (std::size_t n = 0; n < array.size(); ++n) {
    if (!at(n)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> gguf_integer(GgufType type, std::span<const std::byte> from) noexcept {
  std::optional<std::int64_t> found;
  (void)with_number(type, from, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (std::in_range<std::int64_t>(value)) found = static_cast<std::int64_t>(value);
    }
  });
  return found;
}

std::optional<double> gguf_number(GgufType type, std::span<const std::byte> from) noexcept {
  std::optional<double> found;
  (void)with_number(type, from, [&](auto value) { found = static_cast<double>(value); });
  return found;
}

std::string_view gguf_string(std::span<const std::byte> from) noexcept {
  if (from.size() < kCountBytes) return {reinterpret_cast<const char*>(from.data() + from.size()), 0};
  const std::span<const std::byte> follow = from.subspan(kCountBytes);
  const auto length = std::min<std::uint64_t>(read_number<std::uint64_t>(from.data()), follow.size());
  return {reinterpret_cast<const char*>(follow.data()), static_cast<std::size_t>(length)};
}

GgufArray::GgufArray(const GgufValue& value) noexcept {
  const std::span<const std::byte> all = value.behind_type();
  if (value.type() != GgufType::array || all.size() < kHeadBytes) return;
  type_ = static_cast<GgufType>(read_number<std::uint32_t>(all.data()));
  bytes_ = all.subspan(kHeadBytes);
  const std::uint64_t least = type_ == GgufType::string ? kCountBytes : std::max<std::uint64_t>(size_of(type_), 1);
  const auto count = read_number<std::uint64_t>(all.data() + sizeof(std::uint32_t));
  size_ = static_cast<std::size_t>(std::min<std::uint64_t>(count, bytes_.size() / least));
}

std::span<const std::byte> GgufArray::from(std::size_t number) const noexcept {
  return bytes_.subspan(number * static_cast<std::size_t>(size_of(type_)));
}

std::optional<std::int64_t> GgufArray::integer(std::size_t number) const noexcept {
  return gguf_integer(type_, from(number));
}

std::optional<double> GgufArray::number(std::size_t number) const noexcept { return gguf_number(type_, from(number)); }

bool GgufArray::has_integers() const noexcept {
  return are_all(*this, [&](std::size_t n) { return integer(n).has_value(); });
}

bool GgufArray::has_numbers() const noexcept {
  return are_all(*this, [&](std::size_t n) { return number(n).has_value(); });
}

std::string gguf_bytes(const GgufArray& integers) {
  std::string bytes;
  bytes.reserve(integers.size());
  for (std::size_t n = 0; n < integers.size(); ++n) bytes += static_cast<char>(integers.integer(n).value_or(0) & 0xFF);
  return bytes;
}

}  // namespace headlight::models
