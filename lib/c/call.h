// Where C++ ends: every function of the C interface runs its body in call(), and no exception gets past it.
//
// All of lib/c's headers are inline, for the models library shares them and the engine's shared library shows nothing
// but its interface.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "headlight/c/engine.h"
#include "headlight/out_of_memory.h"
#include "ops/check.h"

namespace headlight::c {

// A failure that has a status of its own.
struct Failure : std::runtime_error {
  Failure(headlight_status status_, const char* message) : std::runtime_error(message), status(status_) {}
  headlight_status status;
};

// Throws what call() turns into HEADLIGHT_INVALID_ARGUMENT and "operation: message".
template <class... Parts>
[[noreturn, gnu::always_inline]] inline void refuse(const char* operation, const Parts&... parts) {
  ops::fail(operation, parts...);
}

// Fills in `error`, where there is one, and returns the status. A message that is too long is cut between characters.
inline headlight_status report(headlight_error* error, headlight_status status, std::string_view message,
                               std::size_t bytes = 0) noexcept {
  if (error == nullptr) return status;
  error->status = status;
  error->bytes = bytes;
  constexpr std::string_view kCut = "…";
  constexpr std::size_t kRoom = sizeof(error->message) - 1;
  std::size_t length = message.size();
  const bool cut = length > kRoom;
  if (cut) {
    length = kRoom - kCut.size();
    while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0) == 0x80) --length;
  }
  std::memcpy(error->message, message.data(), length);
  if (cut) {
    std::memcpy(error->message + length, kCut.data(), kCut.size());
    length += kCut.size();
  }
  error->message[length] = '\0';
  return status;
}

inline headlight_status report_current_exception(headlight_error* error) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return report(error, failure.status, failure.what());
  } catch (const std::invalid_argument& refusal) {
    return report(error, HEADLIGHT_INVALID_ARGUMENT, refusal.what());
  } catch (const OutOfMemory& failure) {
    return report(error, HEADLIGHT_OUT_OF_MEMORY, failure.what(), failure.bytes());
  } catch (const std::bad_alloc&) {
    return report(error, HEADLIGHT_OUT_OF_MEMORY, "memory cannot be had");
  } catch (const std::length_error&) {  // a container asked for more than there can be
    return report(error, HEADLIGHT_OUT_OF_MEMORY, "memory cannot be had");
  } catch (const std::system_error& failure) {
    return report(error, HEADLIGHT_SYSTEM_ERROR, failure.what());
  } catch (const std::exception& mistake) {
    return report(error, HEADLIGHT_INTERNAL_ERROR, mistake.what());
  } catch (...) {
    return report(error, HEADLIGHT_INTERNAL_ERROR, "an exception of no known type");
  }
}

template <class Body>
headlight_status call(headlight_error* error, const Body& body) noexcept {
  try {
    body();
  } catch (...) {
    return report_current_exception(error);
  }
  return report(error, HEADLIGHT_OK, "");
}

// For functions that make an object: `make` returns it as a std::unique_ptr.
template <class Object, class Make>
headlight_status create(const char* operation, Object** object, headlight_error* error, const Make& make) noexcept {
  return call(error, [&] {
    if (object == nullptr) refuse(operation, "there is no place for the result (a null pointer)");
    *object = nullptr;
    *object = make().release();
  });
}

}  // namespace headlight::c
