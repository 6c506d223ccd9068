# What every target of the project shares, and how a kernel source becomes one object per instruction set.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Flags, language level and include folders of our own code.
add_library(headlight_settings INTERFACE)
target_compile_features(headlight_settings INTERFACE cxx_std_20)
target_include_directories(headlight_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/lib>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>)
target_compile_options(headlight_settings INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -fvisibility=hidden -fvisibility-inlines-hidden -ffp-contract=off
  $<$<BOOL:${HEADLIGHT_WERROR}>:-Werror>)
# A struct that is cleared before its members are set, as every tile's is, is cleared by stores. Left to itself g++ for x86 takes `rep
# stos`, which starts slowly and has the reads that follow wait for it.
include(CheckCXXCompilerFlag)
set(headlight_clear_by_stores -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
check_cxx_compiler_flag(${headlight_clear_by_stores} headlight_can_clear_by_stores)
if(headlight_can_clear_by_stores)
  target_compile_options(headlight_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${headlight_clear_by_stores}>)
endif()

# Sanitizers watch what is shipped: headlight_watch_this_folder() is called by lib/ and tools/. It is not optimised, since that makes
# a compiler's time twice as long. Tests are compiled as in a release, and so come from a compiler cache; what they hand over
# lies in memory that the address sanitizer's allocator gave them. The thread sanitizer must see all that runs.
# -fno-sanitize-recover: a finding ends the test that made it.
set(headlight_unless_release $<NOT:$<CONFIG:Release,RelWithDebInfo>>)
# Checks of each pointer, beside those of the address sanitizer: up to half of a compiler's time.
set(headlight_pointer_checks null,alignment,object-size,pointer-overflow)
if(HEADLIGHT_SANITIZE)
  set(headlight_unless_release 1)
  set(headlight_sanitizer_options
    -fsanitize=${HEADLIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O0 -D_GLIBCXX_ASSERTIONS)
  if(HEADLIGHT_SANITIZER_TRAPS AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Messages are half of an object, and take a quarter of a compiler's time and half of a linker's. Types behind a pointer are not looked at then.
    # What is built so to be quick is without checks of each pointer, too: builds without traps have them.
    list(APPEND headlight_sanitizer_options -fsanitize-undefined-trap-on-error -fno-sanitize=vptr,${headlight_pointer_checks})
  endif()
  if(HEADLIGHT_FUZZ)
    # -O2, and no record of operands compared: executions are what counts. Together they take a third of the time that -O1 with that
    # record takes. Kernels are not watched for what they reach: libFuzzer would go by the numbers in their loops.
    list(APPEND headlight_sanitizer_options -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp -O2)
  endif()
  add_link_options(-fsanitize=${HEADLIGHT_SANITIZE})
  if(HEADLIGHT_SANITIZE MATCHES thread)
    add_compile_options(${headlight_sanitizer_options})
  endif()
endif()
macro(headlight_watch_this_folder)
  if(HEADLIGHT_SANITIZE AND NOT HEADLIGHT_SANITIZE MATCHES thread)
    add_compile_options(${headlight_sanitizer_options})
  endif()
endmacro()

if(HEADLIGHT_PRECOMPILED_HEADERS AND NOT CMAKE_CXX_FLAGS MATCHES "ggc-min-heapsize")
  # g++ looks for memory that is free again when it has taken 128 MB, which is up to a quarter of its time for a test.
  target_compile_options(headlight_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>)
endif()

# headlight_add_hello(NAME SOURCE): a program with the engine inside, stripped, whose bytes a benchmark and a rule count: both add the same.
function(headlight_add_hello name source)
  if(NOT TARGET ${name})
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE headlight_static)
    target_link_options(${name} PRIVATE -s)
  endif()
endfunction()

# headlight_precompile(TARGET HEADERS…): with HEADLIGHT_PRECOMPILED_HEADERS these are read once for all of its sources, which is half of
# a compiler's time for small ones. The objects are the same. Which headers a source needs it includes all the same: tools/nightly's step
# 'debug', which compiles each by itself and without them, shows that.
function(headlight_precompile target)
  if(HEADLIGHT_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <cmath> <cstdint> <cstring> <limits> <memory> <numbers> <optional>
      <span> <stdexcept> <string> <string_view> <utility> <vector> ${ARGN})
  endif()
endfunction()

# The instruction sets, worst first, in the order of Isa (include/headlight/engine.h). Each is a folder of lib/simd/isa/ whose isa.cmake says what
# it and its features are compiled with.
set(headlight_all_isas scalar sse4 avx2 avx512 neon)
set(headlight_known_isas "")
# headlight_define_isa(ISA [PROCESSORS REGEX] [HIGHWAY TARGET] [LIBRARY HEADER] FLAGS…): an instruction set of these processors, or of all; its name
# in Highway, or the header that has its operations in the place of a SIMD library; and the flags of a compiler.
function(headlight_define_isa isa)
  cmake_parse_arguments(of "" "PROCESSORS;HIGHWAY;LIBRARY" "FLAGS" ${ARGN})
  if(NOT of_PROCESSORS OR CMAKE_SYSTEM_PROCESSOR MATCHES "^(${of_PROCESSORS})$")
    set(headlight_known_isas ${headlight_known_isas} ${isa} PARENT_SCOPE)
  endif()
  set(headlight_set_of_${isa} ${isa} PARENT_SCOPE)
  set(headlight_epilogue_of_${isa} ${isa} PARENT_SCOPE)
  set(headlight_flags_${isa} ${of_FLAGS} PARENT_SCOPE)
  set(headlight_highway_target_${isa} ${of_HIGHWAY} PARENT_SCOPE)
  set(headlight_library_of_${isa} ${of_LIBRARY} PARENT_SCOPE)
endfunction()
# headlight_define_feature(FEATURE OF ISA FOR TYPE [SYSTEM NAME] [EPILOGUE FEATURE] FLAGS…): instructions that some CPUs have beyond the set, on
# systems of that name or on all. Kernels of the type of number that gains by them are compiled once more, with the flags of the set and these; for
# TYPE_products, products of matrices alone; for TYPE_tiles, which have tile registers, with kernels of attention of their own. Of several that a
# CPU has the first is used, and before them one of TYPE_products, and before that one of TYPE_tiles. Products end as those of the set do, or as
# those of the EPILOGUE, a feature that every CPU with this one has.
function(headlight_define_feature feature)
  cmake_parse_arguments(of "" "OF;FOR;SYSTEM;EPILOGUE" "FLAGS" ${ARGN})
  if(of_SYSTEM AND NOT CMAKE_SYSTEM_NAME STREQUAL of_SYSTEM)
    return()
  endif()
  set(headlight_set_of_${feature} ${of_OF} PARENT_SCOPE)
  if(NOT of_EPILOGUE)
    set(of_EPILOGUE ${of_OF})
  endif()
  set(headlight_epilogue_of_${feature} ${of_EPILOGUE} PARENT_SCOPE)
  set(headlight_flags_${feature} ${headlight_flags_${of_OF}} ${of_FLAGS} PARENT_SCOPE)
  set(headlight_features_of_${of_FOR} ${headlight_features_of_${of_FOR}} ${feature} PARENT_SCOPE)
endfunction()
foreach(type bfloat16 int8 bfloat16_products int8_products bfloat16_tiles)
  set(headlight_features_of_${type} "")
endforeach()
foreach(isa IN LISTS headlight_all_isas)
  include(${PROJECT_SOURCE_DIR}/lib/simd/isa/${isa}/isa.cmake)
endforeach()
# Whoever embeds the engine for known machines may ask for fewer; scalar always stays, for it runs everywhere. On x86-64 native is scalar and the best set
# of the machine that compiles, with those of its features that it has. Arm has one set, and not every compiler for it knows -march=native: there native
# is all.
set(HEADLIGHT_ISAS all CACHE STRING "The instruction sets that the kernels are compiled for: all, native or a list")
set(headlight_is_native FALSE)
if(HEADLIGHT_ISAS STREQUAL "native" AND "sse4" IN_LIST headlight_known_isas)
  set(headlight_is_native TRUE)
  include(HeadlightNative)
  foreach(isa IN LISTS headlight_known_isas)
    headlight_machine_has(has ${headlight_flags_${isa}})
    if(has)
      set(headlight_isas scalar ${isa})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES headlight_isas)
elseif(HEADLIGHT_ISAS MATCHES "^(all|native)$")
  set(headlight_isas ${headlight_known_isas})
else()
  set(headlight_isas ${HEADLIGHT_ISAS})
endif()
foreach(isa IN LISTS headlight_isas)
  if(NOT isa IN_LIST headlight_known_isas)
    message(FATAL_ERROR "HEADLIGHT_ISAS has '${isa}', expected all, native or some of ${headlight_known_isas}")
  endif()
endforeach()
if(NOT "scalar" IN_LIST headlight_isas)
  message(FATAL_ERROR "HEADLIGHT_ISAS is '${HEADLIGHT_ISAS}' and lacks scalar, the one that runs everywhere")
endif()
# The list as the code sees it: runtime/isa_list.h, worst first whatever the order asked for.
set(headlight_isa_calls "")
foreach(isa IN LISTS headlight_known_isas)
  if(isa IN_LIST headlight_isas)
    string(APPEND headlight_isa_calls " X(${isa})")
  endif()
endforeach()
# The types of numbers in which products and attention compute, which leave out their kernels and the features for them. Rows, tables and files of
# 16 bits are widened in every build.
set(headlight_known_types float32 bfloat16 float16 int8 int4)
set(HEADLIGHT_TYPES "${headlight_known_types}" CACHE STRING "The types of numbers that products and attention are compiled for")
set(headlight_type_bits 0)
set(headlight_types "")
foreach(type IN LISTS HEADLIGHT_TYPES)
  if(NOT type IN_LIST headlight_known_types)
    message(FATAL_ERROR "HEADLIGHT_TYPES has '${type}', expected some of ${headlight_known_types}")
  endif()
endforeach()
if(NOT "float32" IN_LIST HEADLIGHT_TYPES)
  message(FATAL_ERROR "HEADLIGHT_TYPES is '${HEADLIGHT_TYPES}' and lacks float32, in which everything else computes")
endif()
foreach(type IN LISTS headlight_known_types)
  if(type IN_LIST HEADLIGHT_TYPES)
    list(FIND headlight_known_types ${type} bit)
    math(EXPR headlight_type_bits "${headlight_type_bits} | (1 << ${bit})")
    list(APPEND headlight_types ${type})
  endif()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/built_types.h.in ${PROJECT_BINARY_DIR}/generated/runtime/built_types.h @ONLY)
# headlight_add_types(VARIABLE TYPES SOURCES…): appends the sources if one of the types is built.
function(headlight_add_types variable types)
  foreach(type IN LISTS types)
    if(type IN_LIST HEADLIGHT_TYPES)
      list(APPEND ${variable} ${ARGN})
      break()
    endif()
  endforeach()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()
# What a build without a type leaves out.
if(NOT "bfloat16" IN_LIST HEADLIGHT_TYPES)
  set(headlight_features_of_bfloat16 "")
  set(headlight_features_of_bfloat16_products "")
  set(headlight_features_of_bfloat16_tiles "")
endif()
if(NOT "int8" IN_LIST HEADLIGHT_TYPES)
  set(headlight_features_of_int8_products "")
  if(NOT "int4" IN_LIST HEADLIGHT_TYPES)
    set(headlight_features_of_int8 "")
  endif()
endif()
set(headlight_features "")
foreach(type bfloat16 int8 bfloat16_products int8_products bfloat16_tiles)
  set(headlight_feature_calls_of_${type} "")
  foreach(feature IN LISTS headlight_features_of_${type})
    set(has TRUE)
    if(NOT headlight_set_of_${feature} IN_LIST headlight_isas)
      set(has FALSE)
    elseif(headlight_is_native)
      headlight_machine_has(has ${headlight_flags_${feature}})
    endif()
    if(has)
      list(APPEND headlight_features ${feature})
      string(APPEND headlight_feature_calls_of_${type} " X(${feature})")
    else()
      list(REMOVE_ITEM headlight_features_of_${type} ${feature})
    endif()
  endforeach()
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/isa_list.h.in ${PROJECT_BINARY_DIR}/generated/runtime/isa_list.h @ONLY)

# How each SIMD library is used: header-only, for the one target that the flags name.
set(headlight_definitions_highway HWY_COMPILE_ONLY_STATIC HWY_DISABLE_PCLMUL_AES)
set(headlight_definitions_xsimd "")
if(NOT HEADLIGHT_SIMD MATCHES "^(highway|xsimd)$")
  message(FATAL_ERROR "HEADLIGHT_SIMD is '${HEADLIGHT_SIMD}', expected highway or xsimd")
endif()

# headlight_add_isa_object(NAME ISA LIBRARY SOURCES…): an object library compiled with the flags of an instruction set or a feature, over that
# SIMD library, with HEADLIGHT_TARGET naming its namespace and HEADLIGHT_SET that of its set, HEADLIGHT_TARGET_HEADER its file in the set's folder,
# and HEADLIGHT_LIBRARY_HEADER that of the SIMD library. Always optimised: unoptimised kernel objects would leave inline functions of the SIMD
# library behind as weak symbols, and the linker could then keep an AVX-512 copy for everybody.
# Kernels are noexcept all through; -fno-exceptions keeps the personality routine's weak symbol out of their objects, and
# -fno-math-errno the C library's sqrtf. Nothing unwinds through them, so a Release has no tables for that, which are a thirtieth of the library; a
# build for debuggers or profilers is RelWithDebInfo or Debug, and has them.
function(headlight_add_isa_object name isa library)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE headlight_settings)
  target_compile_options(${name} PRIVATE ${headlight_flags_${isa}} -fno-exceptions -fno-math-errno -fno-tree-slp-vectorize
    $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>
    $<$<CXX_COMPILER_ID:GNU>:-fno-tree-pre> $<${headlight_unless_release}:-O2>)
  if(HEADLIGHT_SANITIZE)
    # A check of each address in an unrolled tile makes the compiler take minutes; the address sanitizer and the tests'
    # guard pages see the same mistakes. And accumulators whose end of scope is watched stay out of registers.
    target_compile_options(${name} PRIVATE -fno-sanitize=${headlight_pointer_checks}
      -fno-sanitize-address-use-after-scope $<$<BOOL:${HEADLIGHT_FUZZ}>:-fno-sanitize=fuzzer-no-link>)
    if(HEADLIGHT_SANITIZE MATCHES address)
      # g++ 12 aligns variables that it watches after their function's end to 32 bytes and stores 64 to them as if they were aligned (its bug
      # 110027): kernels, which hand out no address of theirs, crashed with AVX-512.
      target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=asan-use-after-return=0>)
    endif()
    if(NOT HEADLIGHT_FUZZ)
      # With the checks of addresses between them passes beyond -O1 find little, and take long.
      target_compile_options(${name} PRIVATE -O1)
    endif()
  endif()
  set(set ${headlight_set_of_${isa}})
  set(library_header simd/vector_${library}-inl.h)
  if(headlight_library_of_${set})
    set(library_header ${headlight_library_of_${set}})
  endif()
  target_compile_definitions(${name} PRIVATE HEADLIGHT_TARGET=${isa} HEADLIGHT_SET=${set} HEADLIGHT_EPILOGUE=${headlight_epilogue_of_${isa}} "HEADLIGHT_TARGET_HEADER=\"simd/isa/${set}/${isa}-inl.h\""
    "HEADLIGHT_LIBRARY_HEADER=\"${library_header}\"" HEADLIGHT_HIGHWAY_TARGET=${headlight_highway_target_${set}} ${headlight_definitions_${library}})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON INTERPROCEDURAL_OPTIMIZATION OFF)
  # The SIMD library is most of what a compiler reads for a kernel.
  list(LENGTH ARGN sources)
  # Of g++ alone: clang 14 takes its own types in a precompiled header for ambiguous ones.
  if(HEADLIGHT_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND sources GREATER 3)
    target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/lib/simd/vector-inl.h)
    # Of a precompiled header g++ forgets that its own intrinsics leave lanes undefined on purpose.
    target_compile_options(${name} PRIVATE -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
endfunction()

# headlight_add_isa_objects(NAME SOURCES…): NAME_scalar, NAME_avx2 … over the SIMD library of this build.
function(headlight_add_isa_objects name)
  foreach(isa IN LISTS headlight_isas)
    headlight_add_isa_object(${name}_${isa} ${isa} ${HEADLIGHT_SIMD} ${ARGN})
  endforeach()
endfunction()

# headlight_add_feature_objects(NAME TYPE SOURCES…): NAME_avx512_bf16 …, likewise, for the features of a type of number.
function(headlight_add_feature_objects name type)
  foreach(feature IN LISTS headlight_features_of_${type})
    headlight_add_isa_object(${name}_${feature} ${feature} ${HEADLIGHT_SIMD} ${ARGN})
  endforeach()
endfunction()

# Tests, most benchmarks and the command line are built quickly rather than optimised: what takes long in them lies in the libraries. For g++ -Og is less to
# do than -O1. With sanitizers it comes again, after their -O0, since the last level counts; and there the command line does not
# need those checks of every pointer that double a compiler's time beside those of the address sanitizer.
set(headlight_quick_to_build $<$<CONFIG:Release>:-Og>)
set(headlight_test_options ${headlight_quick_to_build})
if(HEADLIGHT_SANITIZE)
  list(APPEND headlight_quick_to_build -Og -fno-sanitize=${headlight_pointer_checks},vptr)
  if(HEADLIGHT_SANITIZE MATCHES thread)
    set(headlight_test_options ${headlight_quick_to_build})
  endif()
endif()
# What g++ does in passing takes clang half of its time: its tests are not optimised at all.
list(APPEND headlight_test_options $<$<CXX_COMPILER_ID:Clang>:-O0>)
