# headlight-mpi train writes the bytes of headlight train, and whatever ends one rank ends all: -DPROGRAM -DOVER_RANKS -DMPIRUN (words) -DFOLDER
separate_arguments(MPIRUN UNIX_COMMAND "${MPIRUN}")
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
set(steps --steps 50 --seed 3 --shards 8)

function(over ranks)
  execute_process(COMMAND ${MPIRUN} -n ${ranks} ${OVER_RANKS} train ${ARGN} WORKING_DIRECTORY ${FOLDER}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(SEND_ERROR "headlight-mpi train ${ARGN} over ${ranks} ranks: ${code}: ${output}")
  endif()
endfunction()
function(expect_same folder)
  foreach(file model.safetensors checkpoint.safetensors config.json)
    execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${FOLDER}/one/${file} ${FOLDER}/${folder}/${file} RESULT_VARIABLE differs)
    if(differs)
      message(SEND_ERROR "${folder}/${file} is not that of headlight train")
    endif()
  endforeach()
endfunction()

execute_process(COMMAND ${PROGRAM} train -o one ${steps} --threads 1 WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
foreach(ranks 1 2 3 4 5 8)
  foreach(threads 1 2)
    over(${ranks} -o ranks_${ranks}_${threads} ${steps} --threads ${threads})
    expect_same(ranks_${ranks}_${threads})
  endforeach()
endforeach()

# Stopped and resumed by other numbers of ranks, the last of them one process.
over(3 -o parts ${steps} --stop-at 11 --threads 1)
over(5 -o parts --resume --stop-at 20 --threads 1)
over(2 -o parts --resume --stop-at 31 --threads 2)
file(COPY ${FOLDER}/parts/checkpoint.safetensors DESTINATION ${FOLDER}/by_one)
over(8 -o parts --resume --threads 1)
expect_same(parts)
execute_process(COMMAND ${PROGRAM} train -o by_one --resume WORKING_DIRECTORY ${FOLDER} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
expect_same(by_one)

# As ever without shards: one rank computes, and that is said.
execute_process(COMMAND ${PROGRAM} train -o plain --steps 5 WORKING_DIRECTORY ${FOLDER} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${MPIRUN} -n 2 ${OVER_RANKS} train -o plain_ranks --steps 5 WORKING_DIRECTORY ${FOLDER}
  OUTPUT_QUIET ERROR_VARIABLE warning COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${FOLDER}/plain/checkpoint.safetensors ${FOLDER}/plain_ranks/checkpoint.safetensors
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT warning MATCHES "warning: 1 shard a step for 2 ranks")
  message(SEND_ERROR "no warning that a rank has nothing to compute: ${warning}")
endif()

# One error, which names the rank; and in time. (mpirun ends all ranks, as they ask it to.)
function(expect_error words)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code TIMEOUT 60)
  if(NOT code EQUAL 1)
    message(SEND_ERROR "expected the exit code 1, got ${code}: ${output}")
  endif()
  string(FIND "${output}" "headlight: error: ${words}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "expected '${words}' in: ${output}")
  endif()
endfunction()
set(two_kinds ${MPIRUN} -n 2 ${OVER_RANKS} train -o not ${steps})
expect_error("rank 2: the run=headlight train --steps 60 --seed 3 --shards 8, but the run=headlight train --steps 50 --seed 3 --shards 8 on rank 0"
  ${two_kinds} : -n 1 ${OVER_RANKS} train -o not --steps 60 --seed 3 --shards 8)
expect_error("rank 1: none/parts/checkpoint.safetensors"
  ${MPIRUN} -n 1 ${OVER_RANKS} train -o one --resume --steps 60 : -n 1 ${OVER_RANKS} train -o none/parts --resume --steps 60)
expect_error("rank 0: " ${MPIRUN} -n 3 ${OVER_RANKS} train -o wild --steps 40 --learning-rate 1e30)
# Where a checkpoint should be, a folder is: rank 0 cannot write.
file(MAKE_DIRECTORY ${FOLDER}/taken/checkpoint.safetensors/folder)
expect_error("rank 0: taken/checkpoint.safetensors" ${MPIRUN} -n 3 ${OVER_RANKS} train -o taken ${steps} --overwrite)
file(GLOB left RELATIVE ${FOLDER}/taken ${FOLDER}/taken/*)
if(NOT left STREQUAL checkpoint.safetensors OR EXISTS ${FOLDER}/not OR EXISTS ${FOLDER}/wild/model.safetensors)
  message(SEND_ERROR "an error left behind: ${left}")
endif()
