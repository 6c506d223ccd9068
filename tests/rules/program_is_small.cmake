# A program that calls one operation over float32 and nothing else, the engine inside and stripped, has at most LIMIT bytes.
cmake_minimum_required(VERSION 3.25)

file(SIZE "${PROGRAM}" size)
message("${PROGRAM} has ${size} bytes")
if(size GREATER LIMIT)
  message(FATAL_ERROR "expected at most ${LIMIT}: has the operation begun to link kernels that it does not call?")
endif()
