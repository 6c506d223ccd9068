# Every test has the label of a level, without which no command would run it (cmake/HeadlightTests.cmake).
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${BUILD} --show-only --label-exclude "^(quick|full|nightly|threads)$"
  OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
if(NOT listing MATCHES "Total Tests: 0")
  message(FATAL_ERROR "These have no label of a level, expected a call of headlight_level() for each:\n${listing}")
endif()
