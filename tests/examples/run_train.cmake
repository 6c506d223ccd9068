# Runs the example: it must end well and have learned what it should. Guessing is right for one token in twelve.
execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE error)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}:\n${output}${error}")
endif()
if(NOT output MATCHES "of sequences never seen, (9[5-9][.0-9]*|100) % of the tokens are right")
  message(FATAL_ERROR "${PROGRAM} has not learned enough:\n${output}${error}")
endif()
