// dlopen, for libraries that may be absent.
#pragma once

#include <dlfcn.h>

#include <initializer_list>

namespace headlight::bench {

class SharedLibrary {
 public:
  // The first of these that loads. Its symbols stay its own.
  explicit SharedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  // Never closed: worker threads of such a library may outlive whatever knows of it.

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }
  // Null when there is no such function.
  template <class Function>
  [[nodiscard]] Function* find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace headlight::bench
