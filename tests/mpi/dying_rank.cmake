# A rank that is killed ends the work of all within the timeout, by its name: -DPROGRAM -DMPIRUN (words). mpirun is asked not to end the others; it
# then ends well, whatever its processes do, and they say in words what they have seen.
separate_arguments(MPIRUN UNIX_COMMAND "${MPIRUN}")
execute_process(COMMAND ${MPIRUN} --enable-recovery -n 3 ${PROGRAM} OUTPUT_VARIABLE said ERROR_VARIABLE warned RESULT_VARIABLE code TIMEOUT 60)
string(REGEX MATCHALL "ended after less than 10 s with an error of rank 2: " ended "${said}")
list(LENGTH ended count)
if(NOT count EQUAL 2 OR NOT code EQUAL 0)
  message(SEND_ERROR "expected the error of rank 2 on two ranks, and the exit code 0; got ${code}: ${said}${warned}")
endif()
