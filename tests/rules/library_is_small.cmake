# The engine's shared library of a release has at most LIMIT bytes. The limit is lowered when the library becomes smaller.
cmake_minimum_required(VERSION 3.25)

file(SIZE "${LIBRARY}" size)
message("${LIBRARY} has ${size} bytes")
if(size GREATER LIMIT)
  message(FATAL_ERROR "expected at most ${LIMIT}: which kernels have been compiled for more shapes, types or instruction sets than before?")
endif()
