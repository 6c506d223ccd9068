# An object compiled for an instruction set defines nothing outside that set's namespace, so the linker can never pick an
# AVX-512 copy of a shared inline function for a machine that lacks it. One compiled for a feature may ask for what its set has, and for the ending
# of products of another feature, which it then implies. Beside that both ask for nothing but the memory functions to which compilers themselves
# turn loops and copies, and what the C library is told of a broken stack where they guard it (Ubuntu's do).
cmake_minimum_required(VERSION 3.25)

set(allowed_undefined memcpy memset memmove _GLOBAL_OFFSET_TABLE_ __stack_chk_fail)

foreach(isa IN LISTS ISAS)
  file(STRINGS ${LISTS}/objects_${isa}.txt objects)
  list(FILTER objects INCLUDE REGEX "\\.o(bj)?$")  # newer versions of CMake list the precompiled header, too
  if(NOT objects)
    message(FATAL_ERROR "no objects of ${isa}")
  endif()
  string(LENGTH ${isa} length)
  # The mangled beginning of headlight::ISA::…, of a method, a vtable, type information, a guard variable.
  set(own "^_Z(TV|TI|TS|GV|Z)?NK?9headlight${length}${isa}")
  list(FIND ISAS ${isa} at)
  list(GET SETS ${at} set)
  string(LENGTH ${set} length)
  set(of_set "^_ZN9headlight${length}${set}")
  list(GET EPILOGUES ${at} epilogue)
  string(LENGTH ${epilogue} length)
  set(of_epilogue "^_ZN9headlight${length}${epilogue}11gemm_finish")
  execute_process(COMMAND ${NM} ${objects} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${listing}")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^[0-9a-f ]+ ([A-Zuvw]) (.+)$")
      continue()
    endif()
    set(kind ${CMAKE_MATCH_1})
    set(symbol ${CMAKE_MATCH_2})
    if(symbol MATCHES "${own}" OR (kind STREQUAL "U" AND symbol MATCHES "${of_set}|${of_epilogue}")
       OR (kind MATCHES "[Uvw]" AND symbol IN_LIST allowed_undefined))
      continue()
    endif()
    message(SEND_ERROR "${isa}: ${kind} ${symbol}")
  endforeach()
endforeach()
