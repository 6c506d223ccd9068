# What every toolchain of a cross build is alike in: libraries and headers are the target's, programs the build machine's. HEADLIGHT_CROSS_PREFIX
# holds the header-only libraries of the build machine.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADLIGHT_CROSS_PREFIX)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
if(HEADLIGHT_CROSS_PREFIX)
  set(CMAKE_CXX_FLAGS_INIT "-isystem ${HEADLIGHT_CROSS_PREFIX}/include")
endif()
