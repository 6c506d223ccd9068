# Cross-compiles for Linux with musl in place of the GNU C library, and clang's C++ library: cmake --toolchain cmake/x86_64-linux-musl.cmake.
# The compilers are HEADLIGHT_CROSS_PREFIX/bin, which tools/world lays out beside the headers and archives that the build needs of other projects.
# What is built is static, and runs on the machine that built it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_CXX_COMPILER ${HEADLIGHT_CROSS_PREFIX}/bin/c++)
set(CMAKE_C_COMPILER ${HEADLIGHT_CROSS_PREFIX}/bin/cc)
set(CMAKE_AR ${HEADLIGHT_CROSS_PREFIX}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${HEADLIGHT_CROSS_PREFIX}/bin/ranlib CACHE FILEPATH "")

set(CMAKE_FIND_ROOT_PATH ${HEADLIGHT_CROSS_PREFIX})
include(${CMAKE_CURRENT_LIST_DIR}/cross_compiling.cmake)
# The compiler watches unoptimised code for undefined behaviour unless told otherwise, and brings nothing to tell of it.
set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined")
string(APPEND CMAKE_CXX_FLAGS_INIT " -fno-sanitize=undefined")
