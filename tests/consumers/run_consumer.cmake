# Builds and runs one consumer in a folder of its own; WAY says which. Any failing command fails the test.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

set(prefix ${WORK}/installed)
set(folder ${WORK}/${WAY}_${KIND})
file(REMOVE_RECURSE ${folder})
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -B ${folder} -S)

if(WAY STREQUAL "install")
  file(REMOVE_RECURSE ${prefix} ${WORK}/elsewhere)
  run(${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${WORK}/elsewhere)
  file(RENAME ${WORK}/elsewhere ${prefix})

elseif(WAY STREQUAL "find_package_c")
  # No C++ compiler is named, and none is looked for.
  run(${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_C_COMPILER=${C_COMPILER} -B ${folder}
    -S ${CMAKE_CURRENT_LIST_DIR}/find_package_c -DCMAKE_PREFIX_PATH=${prefix} -DKIND=${KIND})
  run(${CMAKE_COMMAND} --build ${folder})
  run(${folder}/consumer)

elseif(WAY STREQUAL "find_package")
  run(${configure} ${CMAKE_CURRENT_LIST_DIR}/find_package -DCMAKE_PREFIX_PATH=${prefix} -DKIND=${KIND})
  run(${CMAKE_COMMAND} --build ${folder})
  run(${folder}/consumer)

elseif(WAY STREQUAL "readme")
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/readme/CMakeLists.txt ${SOURCE}/tests/snippets/two_heads.cc DESTINATION ${folder}/source)
  run(${configure} ${folder}/source -DCMAKE_PREFIX_PATH=${prefix})
  run(${CMAKE_COMMAND} --build ${folder})
  run(${folder}/two_heads)

elseif(WAY MATCHES "^pkg_config")
  find_program(pkg_config NAMES pkg-config pkgconf)
  if(NOT pkg_config)
    message("skipped: pkg-config is not installed")
    return()
  endif()
  set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
  set(options --cflags --libs)
  set(link_options -Wl,-rpath,${prefix}/${LIBDIR})
  if(KIND STREQUAL "static")
    list(APPEND options --static)
    set(link_options -static)
  endif()
  execute_process(COMMAND ${pkg_config} ${options} headlight-analysis headlight-models OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  file(MAKE_DIRECTORY ${folder})
  set(compile ${COMPILER} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/consumer.cc)
  if(WAY STREQUAL "pkg_config_c")
    set(compile ${C_COMPILER} -std=c99 -pedantic ${CMAKE_CURRENT_LIST_DIR}/consumer.c)
  endif()
  run(${compile} -Wall -Wextra -Werror -DCONSUMER_HAS_MODELS ${flags} ${link_options} -o ${folder}/consumer)
  run(${folder}/consumer)

elseif(WAY STREQUAL "readme_c")
  find_program(pkg_config NAMES pkg-config)
  if(NOT pkg_config)
    message("skipped: pkg-config is not installed")
    return()
  endif()
  # The line as docs/install.md has it, for a shell.
  file(READ ${SOURCE}/docs/install.md page)
  string(REGEX MATCH "\n    (cc [^\n]+)" line "${page}")
  string(REPLACE "DIR/lib" "${prefix}/${LIBDIR}" line "${CMAKE_MATCH_1}")
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND sh -c "cd '${SOURCE}' && ${line} -o '${folder}/five_tokens'" COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
  run(${folder}/five_tokens)

elseif(WAY STREQUAL "models_alone")
  file(MAKE_DIRECTORY ${folder})
  file(WRITE ${folder}/alone.c "#include <headlight/models/headlight_models.h>\nint main(void) { headlight_encoder_destroy(0); }\n")
  run(${C_COMPILER} ${folder}/alone.c -I${prefix}/include -L${prefix}/${LIBDIR} -lheadlight_models -Wl,-rpath,${prefix}/${LIBDIR}
    -o ${folder}/alone)
  run(${folder}/alone)

elseif(WAY MATCHES "^add_subdirectory")
  # The cheapest engine there is: one instruction set, one type of numbers, no models, not optimised. No compiler's cache holds any of it.
  run(${configure} ${CMAKE_CURRENT_LIST_DIR}/add_subdirectory -DCMAKE_CXX_COMPILER_LAUNCHER= -DHEADLIGHT_SOURCE=${SOURCE} -DHEADLIGHT_SIMD=${SIMD}
    -DHEADLIGHT_MODELS=OFF -DHEADLIGHT_ISAS=scalar -DHEADLIGHT_TYPES=float32 -DHEADLIGHT_PRECOMPILED_HEADERS=ON
    -DHEADLIGHT_WERROR=${WERROR} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0)
  if(WAY STREQUAL "add_subdirectory_builds")
    run(${CMAKE_COMMAND} --build ${folder} --target consumer types headlight_shared)
    run(${folder}/consumer)
    run(${folder}/types --gtest_brief=1)
  endif()

else()
  message(FATAL_ERROR "WAY is '${WAY}'")
endif()
