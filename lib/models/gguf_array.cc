#include "models/gguf_array.h"

#include <type_traits>
#include <utility>

#include "models/gguf_header.h"

namespace headlight::models {
namespace {

constexpr std::size_t kCountBytes = sizeof(std::uint64_t);
constexpr std::size_t kHeadBytes = 2 * sizeof(std::uint32_t) + kCountBytes;  // types of value and elements, how many

// f(number of a type) of a value of that type; false of what is no number.
template <class Function>
bool with_number(GgufType type, const std::byte* from, const Function& f) {
  const auto call = [&](auto value) {
    f(read_number<decltype(value)>(from));
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

std::optional<std::int64_t> gguf_integer(GgufType type, const std::byte* at) noexcept {
  std::optional<std::int64_t> found;
  (void)with_number(type, at, [&](auto value) {
    if constexpr (std::is_integral_v<decltype(value)>) {
      if (std::in_range<std::int64_t>(value)) found = static_cast<std::int64_t>(value);
    }
  });
  return found;
}

std::optional<double> gguf_number(GgufType type, const std::byte* at) noexcept {
  std::optional<double> found;
  (void)with_number(type, at, [&](auto value) { found = static_cast<double>(value); });
  return found;
}

std::string_view gguf_string(const std::byte* at) noexcept {
  const auto length = static_cast<std::size_t>(read_number<std::uint64_t>(at));
  return {reinterpret_cast<const char*>(at + kCountBytes), length};
}

GgufArray::GgufArray(const GgufValue& value) noexcept
    : type_(value.element_type()), size_(static_cast<std::size_t>(value.size())) {
  if (value.type() == GgufType::array) first_ = value.at_ + kHeadBytes;  // any other may end before that
}

std::optional<std::int64_t> GgufArray::integer(std::size_t number) const noexcept {
  return gguf_integer(type_, first_ + number * size_of(type_));
}

std::optional<double> GgufArray::number(std::size_t number) const noexcept {
  return gguf_number(type_, first_ + number * size_of(type_));
}

bool GgufArray::has_integers() const noexcept {
  return are_all(*this, [&](std::size_t n) { return integer(n).has_value(); });
}

bool GgufArray::has_numbers() const noexcept {
  return are_all(*this, [&](std::size_t n) { return number(n).has_value(); });
}

std::string gguf_bytes(const GgufArray& integers) {
  std::string bytes;
  bytes.reserve(integers.size());
  for (std::size_t n = 0; n < integers.size(); ++n) bytes += static_cast<char>(*integers.integer(n) & 0xFF);
  return bytes;
}

std::span<const std::byte> bytes_of(const GgufEntry& entry) noexcept {
  const std::byte* const begin = reinterpret_cast<const std::byte*>(entry.key.data()) - kCountBytes;
  const std::byte* end =
      reinterpret_cast<const std::byte*>(entry.key.data() + entry.key.size()) + sizeof(std::uint32_t);
  const GgufType type = entry.value.type();
  if (type == GgufType::string) {
    end += kCountBytes + entry.value.string()->size();
  } else if (type == GgufType::array) {
    const GgufArray array(entry.value);
    end += kHeadBytes - sizeof(std::uint32_t) + array.size() * size_of(array.type());
    for (const std::string_view one : array.strings()) end += kCountBytes + one.size();
  } else {
    end += size_of(type);
  }
  return {begin, end};
}

}  // namespace headlight::models
