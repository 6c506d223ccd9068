# headlight-mpi study scale ends well, and says and writes what it should: -DOVER_RANKS -DMPIRUN -DFOLDER
separate_arguments(MPIRUN UNIX_COMMAND "${MPIRUN}")
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${MPIRUN} ${OVER_RANKS} study scale --quick --length 512 --threads 1 --repeats 1 --json scale.json --svg scale.svg
  WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said MATCHES "float32.*2 ranks .*2 ranks .*The last: by sequence")
  message(SEND_ERROR "headlight-mpi study scale said: ${said}")
endif()
file(READ ${FOLDER}/scale.json json)
string(JSON points LENGTH "${json}" points)
if(NOT points EQUAL 2 OR NOT EXISTS ${FOLDER}/scale.svg)
  message(SEND_ERROR "headlight-mpi study scale wrote: ${json}")
endif()

execute_process(COMMAND ${MPIRUN} ${OVER_RANKS} study scale --quick --length 512 --threads 1 --repeats 1 --type bfloat16 --all-ranks-alone
  OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
if(NOT said MATCHES "bfloat16.*2 ranks .*2 ranks .*The last: by sequence")
  message(SEND_ERROR "headlight-mpi study scale of 16 bits said: ${said}")
endif()
