# Comments of include/ and lib/ carry no measured figures, which belong to a machine: percent, GFLOP/s, GOP/s and GB/s stand in docs/performance.md
# and docs/history/. A comment keeps the reason in words.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/lib/*.h ${SOURCE}/lib/*.cc ${SOURCE}/lib/CMakeLists.txt ${SOURCE}/include/*.h)
foreach(file IN LISTS files)
  file(STRINGS ${SOURCE}/${file} lines ENCODING UTF-8 REGEX "(//|^#).*([0-9] ?%|GFLOP|GOP/s|[GM]B/s)")
  foreach(line IN LISTS lines)
    message(SEND_ERROR "${file} has a measured figure in a comment: ${line}")
  endforeach()
endforeach()
list(LENGTH files count)
if(count LESS 300)
  message(SEND_ERROR "looked at ${count} files, expected those of the libraries")
endif()
