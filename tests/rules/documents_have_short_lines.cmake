# No line of a document has more than 160 characters, but for the rows of tables.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/documents.cmake)

foreach(document IN LISTS documents)
  # In hexadecimal digits, three places a byte: CMake counts bytes, and those that go on with a character, 80 to bf, are left out.
  file(READ ${SOURCE}/${document} text HEX)
  string(REGEX REPLACE "(..)" "\\1 " text "${text}")
  string(REGEX REPLACE "[89ab][0-9a-f] " "" text "${text}")
  string(REPLACE "0a " ";" lines "${text}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    string(LENGTH "${line}" length)
    math(EXPR length "${length} / 3")
    if(length GREATER 160 AND NOT line MATCHES "^7c ")
      message(SEND_ERROR "${document}:${number} has ${length} characters, expected at most 160")
    endif()
  endforeach()
endforeach()
