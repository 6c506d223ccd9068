# No file of the repository is larger than 1 MB: no weights but the demonstration model's, no generated data.
cmake_minimum_required(VERSION 3.25)

find_program(git git)
if(NOT git OR NOT EXISTS ${SOURCE}/.git)
  message("not a git checkout, nothing to look at")
  return()
endif()
# Files that are about to be added count too.
execute_process(COMMAND ${git} -c core.quotepath=off -C ${SOURCE} ls-files --cached --others --exclude-standard
  OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "\\;" listing "${listing}")
string(REPLACE "\n" ";" files "${listing}")
foreach(file IN LISTS files)
  if(file STREQUAL "" OR NOT EXISTS "${SOURCE}/${file}" OR IS_DIRECTORY "${SOURCE}/${file}")
    continue()
  endif()
  file(SIZE "${SOURCE}/${file}" size)
  if(size GREATER 1000000)
    message(SEND_ERROR "${file} has ${size} bytes, expected at most 1000000")
  endif()
endforeach()
