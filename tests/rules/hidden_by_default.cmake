# The shared engine shows what the public headers mark with HEADLIGHT_API and nothing else of its own: no kernel, no floor's inside.
cmake_minimum_required(VERSION 3.25)

foreach(file IN LISTS FILES)
  execute_process(COMMAND ${NM} --dynamic --defined-only ${file} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL " _Z(TV|TI|TS|GV)?(NK?)?9headlight(1c|7kernels|3ops|7runtime|6avx512|4avx2|4sse4|4neon|6scalar)[^\n]*"
    inside "${listing}")
  foreach(symbol IN LISTS inside)
    message(SEND_ERROR "${file} shows ${symbol}")
  endforeach()
  if(NOT listing MATCHES "_ZN9headlight6EngineC")
    message(SEND_ERROR "${file} does not show headlight::Engine::Engine")
  endif()
endforeach()
