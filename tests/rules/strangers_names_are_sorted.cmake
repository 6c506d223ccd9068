# Names that come out of a file, of tensors and of keys, are sorted in the libraries, and no hash table of the standard library holds them:
# whoever writes the file could choose names that share a hash, and a megabyte of them takes such a table seconds.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/lib/*.h ${SOURCE}/lib/*.cc ${SOURCE}/include/*.h)
foreach(file IN LISTS files)
  file(STRINGS ${SOURCE}/${file} lines REGEX "unordered_(map|set|multimap|multiset)|std::hash")
  if(lines)
    message(SEND_ERROR "${file} hashes, expected std::map, std::set or a sorted list: ${lines}")
  endif()
endforeach()
