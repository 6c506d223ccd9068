# Files as a C++ source: cmake -DFOLDER=… -DFILES=a;b -DOUT=… -P embed.cmake
cmake_minimum_required(VERSION 3.25)

set(arrays "")
set(entries "")
foreach(file IN LISTS FILES)
  file(SIZE ${FOLDER}/${file} size)
  file(READ ${FOLDER}/${file} hex HEX)
  # Eight bytes a number, the first one lowest: a compiler reads these many times faster than single bytes.
  math(EXPR rest "${size} % 8")
  if(rest GREATER 0)
    math(EXPR missing "8 - ${rest}")
    string(REPEAT 00 ${missing} zeros)
    string(APPEND hex ${zeros})
  endif()
  string(REGEX REPLACE "(..)(..)(..)(..)(..)(..)(..)(..)" "0x\\8\\7\\6\\5\\4\\3\\2\\1,\n" numbers "${hex}")
  string(MAKE_C_IDENTIFIER ${file} name)
  string(APPEND arrays "alignas(64) const std::uint64_t ${name}[] = {\n${numbers}};\n")
  string(APPEND entries "    {\"${file}\", std::as_bytes(std::span(${name})).first(${size})},\n")
endforeach()

file(WRITE ${OUT} "#include <cstdint>
#include \"tools/headlight/demonstration/default_model.h\"
namespace headlight::demonstration {
namespace {
${arrays}const models::FileInMemory files[] = {\n${entries}};
}  // namespace
std::span<const models::FileInMemory> default_model_files() { return files; }
}  // namespace headlight::demonstration
")
