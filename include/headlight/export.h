// What the shared libraries show: everything else is hidden. And what kind of machine headlight is for.
#pragma once

// Sizes are 64 bits wide, and products of them are checked for that width alone.
#if __SIZEOF_SIZE_T__ < 8
#error "headlight needs pointers and sizes of 64 bits"
#endif

// Marks what a shared library shows. On Windows that is said as the library is built; a program's linker finds it by
// its name.
#if !defined(_WIN32)
#define HEADLIGHT_API __attribute__((visibility("default")))
#elif defined(HEADLIGHT_IN_LIBRARY)
#define HEADLIGHT_API __declspec(dllexport)
#else
#define HEADLIGHT_API
#endif
