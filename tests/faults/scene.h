// One call of the library with all that it needs, made anew for each fault that it meets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "headlight/c/engine.h"

namespace headlight::faults {

class Scene {
 public:
  virtual ~Scene() = default;
  // The call. After one that threw it can be made again.
  virtual void call() = 0;
  // A digest of what a call gave that did not throw.
  [[nodiscard]] virtual std::uint64_t result() const = 0;
  // A digest of what a call that throws leaves as it was.
  [[nodiscard]] virtual std::uint64_t state() const { return 0; }
};

struct NamedScene {
  const char* name;
  // `folder` is empty, and for files that the call writes.
  std::unique_ptr<Scene> (*make)(const std::string& folder);
};

template <class Made>
std::unique_ptr<Scene> make_scene(const std::string& folder) {
  if constexpr (std::is_constructible_v<Made, const std::string&>) {
    return std::make_unique<Made>(folder);
  } else {
    return std::make_unique<Made>();
  }
}

// A status of the C interface that is not HEADLIGHT_OK.
struct CFailure : std::runtime_error {
  CFailure(headlight_status status_, const char* message) : std::runtime_error(message), status(status_) {}
  headlight_status status;
};

namespace operation_scenes {
[[nodiscard]] std::span<const NamedScene> list();
}
namespace typed_scenes {
[[nodiscard]] std::span<const NamedScene> list();
}
namespace layer_scenes {
[[nodiscard]] std::span<const NamedScene> list();
}
namespace model_scenes {
[[nodiscard]] std::span<const NamedScene> list();
}
namespace c_scenes {
[[nodiscard]] std::span<const NamedScene> list();
}

}  // namespace headlight::faults
