# headlight-mpi attend writes the bytes of headlight attend, gradients and log-sum-exp too. -DPROGRAM -DOVER_RANKS -DMPIRUN (words) -DDATA -DFOLDER
separate_arguments(MPIRUN UNIX_COMMAND "${MPIRUN}")
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(inputs --query ${DATA}/query.npy --key ${DATA}/key.npy --value ${DATA}/value.npy --sinks ${DATA}/sinks.npy --causal bottom-right
  --dropout 0.25 --seed 3)
# The result has the shape that its gradient has.
execute_process(COMMAND ${PROGRAM} attend ${inputs} -o ${FOLDER}/first.npy OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
list(APPEND inputs --grad-out ${FOLDER}/first.npy)
set(outputs "")
function(attend where)
  execute_process(COMMAND ${ARGN} attend ${inputs} -o ${FOLDER}/${where}_out.npy --log-sum-exp ${FOLDER}/${where}_sums.npy
    --grad-query ${FOLDER}/${where}_query.npy --grad-key ${FOLDER}/${where}_key.npy --grad-value ${FOLDER}/${where}_value.npy
    --grad-sinks ${FOLDER}/${where}_sinks.npy
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
attend(one ${PROGRAM})
attend(ranks ${MPIRUN} ${OVER_RANKS})
foreach(output out sums query key value sinks)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${FOLDER}/one_${output}.npy ${FOLDER}/ranks_${output}.npy
    RESULT_VARIABLE differs)
  if(differs)
    message(SEND_ERROR "headlight-mpi attend writes another ${output} than headlight attend")
  endif()
endforeach()

# What one rank cannot do is said once, and ends all.
execute_process(COMMAND ${MPIRUN} ${OVER_RANKS} attend ${inputs} --grad-query ${FOLDER}/not.npy -o ${FOLDER}/not.npy
  RESULT_VARIABLE code ERROR_VARIABLE errors OUTPUT_QUIET)
string(REGEX MATCHALL "headlight: error: [^\n]*" said "${errors}")
if(NOT code EQUAL 2 OR NOT said MATCHES "^headlight: error: two outputs have the name[^;]*$")
  message(SEND_ERROR "headlight-mpi attend with one name for two outputs: ${code}, '${said}' of ${errors}")
endif()
execute_process(COMMAND ${MPIRUN} ${OVER_RANKS} attend --query ${DATA}/query.npy --key ${DATA}/none.npy --value ${DATA}/value.npy -o ${FOLDER}/not.npy
  RESULT_VARIABLE code ERROR_VARIABLE errors OUTPUT_QUIET)
string(REGEX MATCHALL "headlight: error: [^\n]*" said "${errors}")
if(NOT code EQUAL 1 OR NOT said MATCHES "^headlight: error: rank 0: [^;]*none.npy[^;]*$" OR EXISTS ${FOLDER}/not.npy)
  message(SEND_ERROR "headlight-mpi attend without its keys: ${code}, '${said}' of ${errors}")
endif()
