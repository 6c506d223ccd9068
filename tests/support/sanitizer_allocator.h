// HEADLIGHT_SANITIZER_ALLOCATES is defined in a source that is compiled for a sanitizer which brings its own allocator.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADLIGHT_SANITIZER_ALLOCATES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEADLIGHT_SANITIZER_ALLOCATES 1
#endif
#endif
