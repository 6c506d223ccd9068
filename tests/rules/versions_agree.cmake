# One version: that of include/headlight/version.h, from which CMake and pyproject.toml read it, is the newest that CHANGELOG.md has cut.
# CHANGELOG.md has an Unreleased section on top, and each version with its date.
cmake_minimum_required(VERSION 3.25)

file(READ ${SOURCE}/include/headlight/version.h header)
foreach(part MAJOR MINOR PATCH)
  string(REGEX MATCH "HEADLIGHT_VERSION_${part} ([0-9]+)" _ "${header}")
  list(APPEND version ${CMAKE_MATCH_1})
endforeach()
string(REPLACE ";" "." version "${version}")

file(STRINGS ${SOURCE}/CHANGELOG.md headings REGEX "^## ")
list(POP_FRONT headings first newest)
string(REPLACE "." "\\." pattern "${version}")
if(NOT first STREQUAL "## [Unreleased]" OR NOT newest MATCHES "^## \\[${pattern}\\] - 20[0-9][0-9]-[01][0-9]-[0-3][0-9]$")
  message(SEND_ERROR "CHANGELOG.md begins with '${first}' and '${newest}', expected '## [Unreleased]' and '## [${version}] - its date'")
endif()
foreach(heading IN LISTS headings)
  if(NOT heading MATCHES "^## \\[[0-9]+\\.[0-9]+\\.[0-9]+\\] - 20[0-9][0-9]-[01][0-9]-[0-3][0-9]$")
    message(SEND_ERROR "CHANGELOG.md has '${heading}', expected '## [MAJOR.MINOR.PATCH] - YYYY-MM-DD'")
  endif()
endforeach()

file(READ ${SOURCE}/CMakeLists.txt text)
if(NOT text MATCHES "file\\(READ include/headlight/version\\.h version_text\\)"
    OR NOT text MATCHES "VERSION \\\${version_MAJOR}\\.\\\${version_MINOR}\\.\\\${version_PATCH}")
  message(SEND_ERROR "CMakeLists.txt does not read the version from include/headlight/version.h")
endif()
file(READ ${SOURCE}/pyproject.toml text)
if(NOT text MATCHES "dynamic = \\[\"version\"\\]" OR NOT text MATCHES "input = \"include/headlight/version\\.h\"")
  message(SEND_ERROR "pyproject.toml does not read the version from include/headlight/version.h")
endif()
