# headlight::utf8proc: the Unicode tables behind the tokenisers. The archive is preferred, so that neither our shared library nor
# our program needs a libutf8proc at run time. Also installed, for who links libheadlight_models.a.
if(NOT TARGET headlight::utf8proc)
  find_library(HEADLIGHT_UTF8PROC_LIBRARY NAMES libutf8proc.a utf8proc)
  find_path(HEADLIGHT_UTF8PROC_INCLUDE utf8proc.h)
  mark_as_advanced(HEADLIGHT_UTF8PROC_LIBRARY HEADLIGHT_UTF8PROC_INCLUDE)
  if(HEADLIGHT_UTF8PROC_LIBRARY AND HEADLIGHT_UTF8PROC_INCLUDE)
    add_library(headlight::utf8proc UNKNOWN IMPORTED)
    set_target_properties(headlight::utf8proc PROPERTIES
      IMPORTED_LOCATION ${HEADLIGHT_UTF8PROC_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${HEADLIGHT_UTF8PROC_INCLUDE}
      INTERFACE_COMPILE_DEFINITIONS UTF8PROC_STATIC)
  endif()
endif()
