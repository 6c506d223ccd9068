# The shared engine shows what the public headers mark with HEADLIGHT_API, and of its inside what the analysis library calls: no other
# kernel, no other floor's inside. The analysis library shows nothing of its inside. And none of the libraries shows a name of anybody else.
cmake_minimum_required(VERSION 3.25)

# inside(VARIABLE FILE NM_OPTION): names that only our own libraries may know, of those that FILE shows or asks for.
function(inside variable file option)
  execute_process(COMMAND ${NM} --dynamic ${option} ${file} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL " _Z(TV|TI|TS|GV)?(NK?)?9headlight(1c|7kernels|3ops|6layers|7runtime|11avx512_bf16|11avx512_vnni|8avx_vnni|12neon_dotprod|8amx_bf16|8amx_int8|9neon_i8mm|9neon_bf16|6avx512|4avx2|4sse4|4neon|6scalar)[^\n]*"
    names "${listing}")
  set(${variable} "${names}" PARENT_SCOPE)
  set(listing "${listing}" PARENT_SCOPE)
endfunction()

inside(called ${ANALYSIS} --undefined-only)
inside(shown ${ENGINE} --defined-only)
# A constructor or destructor stands there twice, once for parts of larger objects; the two are one function.
list(TRANSFORM shown REPLACE "([CD])2E" "\\11E")
if(NOT listing MATCHES "_ZN9headlight6EngineC")
  message(SEND_ERROR "${ENGINE} does not show headlight::Engine::Engine")
endif()
list(REMOVE_ITEM shown ${called})
foreach(symbol IN LISTS shown)
  message(SEND_ERROR "${ENGINE} shows ${symbol}")
endforeach()
inside(shown ${ANALYSIS} --defined-only)
foreach(symbol IN LISTS shown)
  message(SEND_ERROR "${ANALYSIS} shows ${symbol}")
endforeach()

foreach(library IN LISTS LIBRARIES)
  execute_process(COMMAND ${NM} --dynamic --defined-only ${library} OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL " [A-Za-z] [^\n]+" names "${listing}")
  if(NOT names)
    message(SEND_ERROR "${library} shows nothing at all, which cannot be")
  endif()
  list(FILTER names EXCLUDE REGEX "^ [A-Z] (headlight_|_ZT[VIS]N9headlight|_ZNK?9headlight)")
  foreach(name IN LISTS names)
    message(SEND_ERROR "${library} shows${name}")
  endforeach()
endforeach()
