# `cpack -G DEB` in a build makes one package of what `cmake --install` copies. To be configured with CMAKE_INSTALL_PREFIX=/usr, by which the
# folders of Debian's libraries are found; tools/release does.
set(CPACK_PACKAGE_NAME headlight)
set(CPACK_PACKAGE_VENDOR "The headlight authors")
set(CPACK_PACKAGE_CONTACT "The headlight authors <headlight@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Multi-head attention for CPUs: libraries, headers and command line")
set(CPACK_PACKAGE_DESCRIPTION "An engine of exact, tiled attention, forward and backward, with layers, BERT models, an interface for C and
measures of what heads do.")
set(CPACK_PACKAGE_FILE_NAME headlight-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Our libraries need one another, and lie in the package itself.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
include(CPack)
