# What of the system the package is compiled with: `pip install .` says at once what is missing, and not a compiler in the middle.
set(missing "")
foreach(header_and_package nlohmann/json.hpp:nlohmann-json3-dev utf8proc.h:libutf8proc-dev hwy/highway.h:libhwy-dev xsimd/xsimd.hpp:libxsimd-dev
    CLI/CLI.hpp:libcli11-dev)
  string(REGEX MATCH "(.+):(.+)" _ ${header_and_package})
  set(header ${CMAKE_MATCH_1})
  set(package ${CMAKE_MATCH_2})
  if((header STREQUAL "hwy/highway.h" AND NOT HEADLIGHT_SIMD STREQUAL "highway") OR
      (header STREQUAL "xsimd/xsimd.hpp" AND NOT HEADLIGHT_SIMD STREQUAL "xsimd") OR
      (header STREQUAL "CLI/CLI.hpp" AND NOT HEADLIGHT_TOOLS))
    continue()
  endif()
  find_path(headlight_folder_of_${package} ${header})
  mark_as_advanced(headlight_folder_of_${package})
  if(NOT headlight_folder_of_${package})
    string(APPEND missing " ${package}")
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "headlight is compiled with packages that are not installed. On Debian: apt-get install${missing}")
endif()
