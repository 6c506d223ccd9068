# Cross-compiles for 64-bit Arm on Debian and runs what is built under qemu: cmake --toolchain cmake/aarch64-linux-gnu.cmake.
# Header-only libraries of the build machine are taken from HEADLIGHT_CROSS_PREFIX, which tools/test-neon lays out: the
# folder /usr/include as a whole would bring the wrong libc with it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu ${HEADLIGHT_CROSS_PREFIX})
include(${CMAKE_CURRENT_LIST_DIR}/cross_compiling.cmake)
