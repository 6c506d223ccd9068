# Cross-compiles for 64-bit Windows on Debian and runs what is built under wine: cmake --toolchain cmake/x86_64-w64-mingw32.cmake.
# Header-only libraries of the build machine are taken from HEADLIGHT_CROSS_PREFIX, which tools/world lays out.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_CROSSCOMPILING_EMULATOR env WINEDEBUG=-all wine)

set(CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32 ${HEADLIGHT_CROSS_PREFIX})
include(${CMAKE_CURRENT_LIST_DIR}/cross_compiling.cmake)
# The compiler's own libraries are a part of each program, so that it runs by itself; a program of shared libraries shares those, too, and asks
# for it by -shared-libgcc and its like.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
