# A program that calls attention() and nothing else, the engine inside and stripped, has at most 800,000 bytes.
cmake_minimum_required(VERSION 3.25)

file(SIZE "${PROGRAM}" size)
message("${PROGRAM} has ${size} bytes")
if(size GREATER 800000)
  message(FATAL_ERROR "expected at most 800000: has attention() begun to link kernels that it does not call?")
endif()
