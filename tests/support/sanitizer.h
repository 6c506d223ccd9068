// Which sanitizer a program runs under. Asked when it runs: the libraries may be watched where the tests are not.
#pragma once

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}

namespace headlight::test {

[[nodiscard]] inline bool under_address_sanitizer() noexcept { return __asan_init != nullptr; }
[[nodiscard]] inline bool under_thread_sanitizer() noexcept { return __tsan_init != nullptr; }
// Either brings an allocator of its own, and shadows of what is resident.
[[nodiscard]] inline bool under_sanitizer() noexcept { return under_address_sanitizer() || under_thread_sanitizer(); }

}  // namespace headlight::test
