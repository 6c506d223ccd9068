# What HEADLIGHT_ISAS=native asks of a compiler for x86-64.
if(CMAKE_CROSSCOMPILING)
  message(FATAL_ERROR "HEADLIGHT_ISAS is 'native', but kernels are compiled for another machine: expected all or a list")
endif()

# headlight_macros(VARIABLE FLAGS…): a "#define NAME" for each macro that the compiler defines by itself with these flags.
function(headlight_macros variable)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} ${ARGN} -x c++ -dM -E /dev/null
    OUTPUT_VARIABLE macros ERROR_VARIABLE message RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "HEADLIGHT_ISAS is 'native', but ${CMAKE_CXX_COMPILER} ${ARGN} fails: ${message}")
  endif()
  string(REGEX MATCHALL "#define [A-Za-z0-9_]+" macros "${macros}")
  set(${variable} ${macros} PARENT_SCOPE)
endfunction()
# Those of every x86-64, and of this machine, whose CPU the compiler asks.
headlight_macros(headlight_macros_of_all)
headlight_macros(headlight_macros_of_machine -march=native)

# headlight_machine_has(VARIABLE FLAGS…): whether this machine has the instructions that these flags stand for: every macro that they add is its, too.
function(headlight_machine_has variable)
  headlight_macros(lacking ${ARGN})
  list(REMOVE_ITEM lacking ${headlight_macros_of_all} ${headlight_macros_of_machine})
  set(has TRUE)
  if(lacking)
    set(has FALSE)
  endif()
  set(${variable} ${has} PARENT_SCOPE)
endfunction()
