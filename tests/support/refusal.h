// What a refused call says.
#pragma once

#include <stdexcept>
#include <string>

namespace headlight::test {

// Message of the std::invalid_argument that f throws; empty if it throws none.
template <class Function>
std::string refusal(Function f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace headlight::test
