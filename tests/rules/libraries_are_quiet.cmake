# The libraries never print, never end the process, never open a connection.
cmake_minimum_required(VERSION 3.25)

set(never abort exit _exit _Exit quick_exit __assert_fail printf fprintf vprintf vfprintf puts putchar fputs fputc perror
  __printf_chk __fprintf_chk stdout stderr _ZSt4cout _ZSt4cerr _ZSt4clog _ZNSt8ios_base4InitC1Ev system popen fork vfork execve
  socket connect getaddrinfo gethostbyname signal sigaction)

foreach(archive IN LISTS ARCHIVES)
  execute_process(COMMAND ${NM} --undefined-only ${archive} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${listing}")
  set(object "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^(.+):$")
      set(object ${CMAKE_MATCH_1})
    elseif(line MATCHES " U (.+)$" AND CMAKE_MATCH_1 IN_LIST never)
      message(SEND_ERROR "${archive}: ${object} uses ${CMAKE_MATCH_1}")
    endif()
  endforeach()
  if(object STREQUAL "")
    message(SEND_ERROR "${archive} holds no object")
  endif()
endforeach()
