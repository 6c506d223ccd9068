# Comments of include/ and lib/ carry no measured figures, which belong to a machine: percent, rates, times, clocks and cycles stand in
# docs/performance.md and docs/history/, as do names of machines. A comment keeps the reason in words.
cmake_minimum_required(VERSION 3.25)

set(number "([0-9]|one|two|three|four|five|six|eight|ten|twenty|thirty|hundred|thousand)")
set(figure "[0-9] ?%|GFLOP|GOP/s|[GM]B/s")
string(APPEND figure "|[0-9] ?(µs|us|ns|ms|[GM]Hz)([^A-Za-z0-9_]|$)")
string(APPEND figure "|${number} ?(cycles|nanoseconds|microseconds|milliseconds)")
string(APPEND figure "|Zen [0-9]|Xeon|Ice Lake|[a-z]+ Rapids")

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/lib/*.h ${SOURCE}/lib/*.cc ${SOURCE}/lib/CMakeLists.txt ${SOURCE}/include/*.h)
foreach(file IN LISTS files)
  file(STRINGS ${SOURCE}/${file} lines ENCODING UTF-8 REGEX "(//|^#).*(${figure})")
  foreach(line IN LISTS lines)
    message(SEND_ERROR "${file} has a measured figure in a comment: ${line}")
  endforeach()
endforeach()
list(LENGTH files count)
if(count LESS 300)
  message(SEND_ERROR "looked at ${count} files, expected those of the libraries")
endif()
