# How tests are added, and which command runs them. Every test has a ctest label of its level, and one of its folder's name:
#
#   quick     tools/test: each operation against its twin on every instruction set of the build, layers, models, command line, Python,
#             the rules
#   full      and .ci/run, `tools/test --full`: files of models, what models and the command line refuse, memory, stacks, traps, faults, fuzzers' corpora,
#             the sweep, the soak, what the documents show, installed packages, and tests of GoogleTest whose name begins with FULL_; those of
#             benchmarks where they are built
#   nightly   and tools/nightly: what is long in plain C++, memory of readers of large files, a build inside another project; and beside a sanitizer,
#             what is long and runs the code of shorter tests
#   threads   in a build with the thread sanitizer, NAME.threads: the tests of the program NAME that THREADS matches. .ci/run runs these there
add_custom_target(quick_tests)
add_custom_target(thread_tests)

# What is long and runs code that shorter tests run too: for its statistics, for its bits, or since a document shows it.
set(headlight_long_level full)
if(HEADLIGHT_SANITIZE)
  set(headlight_long_level nightly)
endif()

# headlight_level(LEVEL TESTS … [PROGRAMS …]): what add_test made in this folder, and what must be built for it.
function(headlight_level level)
  cmake_parse_arguments(PARSE_ARGV 1 of "" "" "TESTS;PROGRAMS")
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  set_property(TEST ${of_TESTS} APPEND PROPERTY LABELS ${level} ${folder})
  if(level STREQUAL "quick" AND of_PROGRAMS)
    add_dependencies(quick_tests ${of_PROGRAMS})
  endif()
endfunction()

# Patterns of GoogleTest, as in */scalar*, of tests that ctest leaves out.
set(HEADLIGHT_TESTS_WITHOUT "" CACHE STRING "Tests of GoogleTest that ctest leaves out, by patterns as in */scalar*")
list(JOIN HEADLIGHT_TESTS_WITHOUT ":" headlight_left_out)

# With the thread sanitizer most of a test's time is a compiler's: what has no test of threads need not be compiled to run those.
option(HEADLIGHT_TESTS_OF_THREADS_ALONE "With the thread sanitizer, compile only sources of tests that have tests of threads" OFF)

# headlight_keep_tests_of(SOURCES ONLY WITHOUT): leaves out sources of tests none of which is run by these patterns, as "*SameBits*:*Promises*".
function(headlight_keep_tests_of sources only without)
  foreach(patterns only without)
    string(REPLACE "*" ".*" ${patterns} "${${patterns}}")
    string(REPLACE ":" "|" ${patterns} "${${patterns}}")
  endforeach()
  set(kept "")
  foreach(source IN LISTS ${sources})
    file(STRINGS ${source} tests REGEX "^(TYPED_)?TEST")
    set(run ${tests})
    list(FILTER run INCLUDE REGEX "(${only})")
    if(without)
      list(FILTER run EXCLUDE REGEX "(${without})")
    endif()
    if(run OR NOT tests)
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${sources} ${kept} PARENT_SCOPE)
endfunction()

# headlight_add_gtest(TEST PROGRAM LEVEL ONLY WITHOUT): a program's tests of one level as one test of ctest, which prints the names of those that failed.
function(headlight_add_gtest test program level only without)
  add_test(NAME ${test} COMMAND ${program} --gtest_brief=1 "--gtest_filter=${only}-${without}:${headlight_left_out}")
  # What waits for a program that is gone ends, and says so.
  set_tests_properties(${test} PROPERTIES TIMEOUT 3600)
  headlight_level(${level} TESTS ${test} PROGRAMS ${program})
endfunction()

# headlight_add_test(NAME SOURCES… [LEVEL full] [LONG PATTERNS] [THREADS PATTERNS [WITHOUT PATTERNS]]): a program of GoogleTest. Its tests are quick ones
# unless LEVEL says otherwise; those whose name begins with FULL_ are full ones in any case. LONG: which of them are nightly ones, as in *SameBits*/scalar:
# plain C++ is the kernels' source once more, and takes up to ten times as long as vectors. THREADS: which of them are of threads.
#
# Its sources are compiled several at a time, since most of what a compiler does for one of them is to read the headers that all include: a
# namespace of its own name keeps each apart.
function(headlight_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 test "" "LEVEL;LONG;THREADS;WITHOUT" "")
  if(NOT test_LEVEL)
    set(test_LEVEL quick)
  endif()
  if(HEADLIGHT_TESTS_OF_THREADS_ALONE AND test_THREADS)
    headlight_keep_tests_of(test_UNPARSED_ARGUMENTS "${test_THREADS}" "${test_WITHOUT}")
  endif()
  add_executable(${name} ${test_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  target_compile_options(${name} PRIVATE ${headlight_test_options})
  target_link_libraries(${name} PRIVATE headlight_settings headlight_test_support GTest::gtest_main)

  headlight_add_gtest(${name} ${name} ${test_LEVEL} "*" "*FULL_*:${test_LONG}")
  foreach(source IN LISTS test_UNPARSED_ARGUMENTS)
    if(source MATCHES "\\.cc$")
      file(STRINGS ${source} full_tests REGEX "^TEST.*[ (]FULL_" LIMIT_COUNT 1)
      if(full_tests)
        headlight_add_gtest(${name}.full ${name} ${headlight_long_level} "*FULL_*" "")
        break()
      endif()
    endif()
  endforeach()
  if(test_LONG)
    headlight_add_gtest(${name}.long ${name} nightly "${test_LONG}" "*FULL_*")
  endif()
  if(test_THREADS AND HEADLIGHT_SANITIZE MATCHES thread)
    headlight_add_gtest(${name}.threads ${name} threads "${test_THREADS}" "*FULL_*:${test_WITHOUT}")
    add_dependencies(thread_tests ${name})
  endif()
endfunction()

# headlight_begin_early(TESTS…): those of them that this build has begin before all others, since they take longest: else one core would wait for them
# at the end. (ctest knows by itself where it has run before.)
function(headlight_begin_early)
  foreach(test IN LISTS ARGN)
    if(TEST ${test})
      set_tests_properties(${test} PROPERTIES COST 90)
    endif()
  endforeach()
endfunction()

# headlight_optimize_tests(TESTS…): tests whose time goes into the twins, templates that are compiled with them. Only where tests are not optimised
# at all: with -Og the compiler would lose as much as they gain.
function(headlight_optimize_tests)
  foreach(name IN LISTS ARGN)
    target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Release>>:-O1>)
  endforeach()
endfunction()
