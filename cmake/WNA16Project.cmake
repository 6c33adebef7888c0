# Helpers for the project's own targets.

include(GNUInstallDirs)

set(WNA16_WARNINGS -Wall -Wextra)
if(WNA16_ENABLE_WERROR)
  list(APPEND WNA16_WARNINGS -Werror)
endif()

# Includes and warnings that every target of the project has.
function(wna16_configure_target target)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${WNA16_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/wna16>")
  target_compile_options(${target} PRIVATE ${WNA16_WARNINGS})
endfunction()

# An LLVM-free library: real assertions, sanitizers, any consumer.
function(add_wna16_core_library target)
  cmake_parse_arguments(ARG "SHARED" "" "LINK_LIBS" ${ARGN})
  if(ARG_SHARED)
    add_library(${target} SHARED ${ARG_UNPARSED_ARGUMENTS})
  else()
    add_library(${target} STATIC ${ARG_UNPARSED_ARGUMENTS})
  endif()
  add_library(WNA16::${target} ALIAS ${target})
  wna16_configure_target(${target})
  target_link_libraries(${target} PUBLIC ${ARG_LINK_LIBS})
  set_property(GLOBAL APPEND PROPERTY WNA16_INSTALL_TARGETS ${target})
endfunction()
