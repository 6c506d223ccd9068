// Numbers, words and lists of them from Python. Each says what it wanted where it gets something else.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "headlight/number_type.h"

namespace headlight::python {

// Keeps what numbers of NumPy are told by; NumPy is there.
void define_values();

// int, and whatever else has __index__ (numpy.int64).
[[nodiscard]] std::int64_t integer(const char* operation, const char* argument, nb::handle object);
// The same from 0 to 2⁶⁴ − 1.
[[nodiscard]] std::uint64_t seed_of(const char* operation, const char* argument, nb::handle object);
// float, and whatever else is a real number.
[[nodiscard]] float number(const char* operation, const char* argument, nb::handle object);
// True, False, and NumPy's; nothing for what is neither.
[[nodiscard]] std::optional<bool> boolean(nb::handle object);
// The same, where nothing else may be given.
[[nodiscard]] bool truth(const char* operation, const char* argument, nb::handle object);
// str. The bytes live as long as the object.
[[nodiscard]] std::string_view text(const char* operation, const char* argument, nb::handle object);
// What an iterable holds, one by one; TypeError for what is none.
class Items {
 public:
  Items(const char* operation, const char* argument, nb::handle object, const char* expected);
  // No object behind the last one.
  [[nodiscard]] nb::object next();

 private:
  const char* operation_;
  const char* argument_;
  nb::handle object_;
  const char* expected_;
  nb::object iterator_;
};

// Any array of integers on the CPU that has one axis, and any iterable of them: a list, a range.
[[nodiscard]] std::vector<std::int64_t> integers(const char* operation, const char* argument, nb::handle object);
// Whether it stands for one integer and not for a list of them: an int, numpy.int64, an array without axes.
[[nodiscard]] bool is_one_integer(nb::handle object);

// Whether it is a tuple or a list, as pairs are given.
[[nodiscard]] bool is_pair_like(nb::handle object) noexcept;
// A type of number by its name, one of these or a short one ("bf16"): what products multiply in.
inline constexpr const char* kPrecisions = "'float32', 'bfloat16', 'float16', 'int8' or 'int4'";
[[nodiscard]] NumberType precision_of(const char* operation, nb::handle precision);

template <class Enum>
struct Name {
  std::string_view name;
  Enum value;
};

// The one whose name the object is.
template <class Enum, std::size_t N>
Enum one_of(const char* operation, const char* argument, nb::handle object, const std::array<Name<Enum>, N>& names) {
  const auto expected = [&names] {
    std::string list;
    for (std::size_t i = 0; i < N; ++i) {
      list += (i == 0 ? "'" : i + 1 == N ? " or '" : ", '") + std::string(names[i].name) + "'";
    }
    return list;
  };
  if (PyUnicode_Check(object.ptr()) == 0) {  // causal=True: say what it may be, and not only that it is a str
    refuse_type(operation, std::string(argument) + " is " + kind_of(object) + ", expected " + expected());
  }
  const std::string_view given = text(operation, argument, object);
  for (const Name<Enum>& name : names) {
    if (name.name == given) return name.value;
  }
  refuse_value(operation, std::string(argument) + " is '" + std::string(given) + "', expected " + expected());
}

}  // namespace headlight::python
