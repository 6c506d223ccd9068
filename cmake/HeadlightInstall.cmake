# What `cmake --install` copies: headers, both kinds of all libraries (the program adds itself), and how CMake and pkg-config find them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headlight)
set(libraries headlight_static headlight_shared headlight_analysis_static headlight_analysis_shared)
set(headers PATTERN "*.h")
if(HEADLIGHT_MODELS)
  list(APPEND libraries headlight_models_static headlight_models_shared)
else()
  list(APPEND headers PATTERN models EXCLUDE PATTERN text EXCLUDE)
endif()
if(HEADLIGHT_MPI)
  list(APPEND libraries headlight_mpi)
else()
  list(APPEND headers PATTERN mpi.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/headlight DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING ${headers})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS ${libraries} EXPORT headlight-targets)
install(EXPORT headlight-targets NAMESPACE headlight:: DESTINATION ${config_folder})

# What a C compiler must link beside our archives.
set(cxx_runtime stdc++)
if("c++" IN_LIST CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
  set(cxx_runtime c++)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/headlight-config.cmake.in
  ${PROJECT_BINARY_DIR}/headlight-config.cmake INSTALL_DESTINATION ${config_folder})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headlight-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headlight-config.cmake ${PROJECT_BINARY_DIR}/headlight-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/HeadlightUtf8proc.cmake DESTINATION ${config_folder})

# The .pc files find everything from where they lie themselves, so the installed tree may be moved.
cmake_path(SET pc_folder NORMALIZE "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH pc_folder BASE_DIRECTORY /prefix OUTPUT_VARIABLE pc_to_prefix)
string(REGEX REPLACE "[^/]+" ".." pc_to_prefix "${pc_to_prefix}")
set(packages headlight headlight-analysis)
if(HEADLIGHT_MODELS)
  list(APPEND packages headlight-models)
endif()
if(HEADLIGHT_MPI)
  list(APPEND packages headlight-mpi)
endif()
foreach(package IN LISTS packages)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${package}.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
