# Finds MLIR, always as the shared library, and offers helpers for targets that
# include its headers.

set(MLIR_LINK_MLIR_DYLIB ON)
if(NOT MLIR_DIR AND NOT CMAKE_PREFIX_PATH AND EXISTS "/usr/lib/llvm-22")
  list(APPEND CMAKE_PREFIX_PATH "/usr/lib/llvm-22")
endif()
find_package(MLIR 22.1 REQUIRED CONFIG)
message(STATUS "Using MLIR ${MLIR_VERSION} in ${MLIR_DIR}")

list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

if(LLVM_ENABLE_ASSERTIONS OR NOT LLVM_ENABLE_RTTI)
  message(FATAL_ERROR "expected an MLIR built with RTTI and without "
    "assertions: its headers differ otherwise (found RTTI "
    "${LLVM_ENABLE_RTTI}, assertions ${LLVM_ENABLE_ASSERTIONS})")
endif()

separate_arguments(WNA16_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# Headers of MLIR have another layout without NDEBUG than the library was built
# with, so every target that includes them defines it in all build types.
function(wna16_use_mlir target)
  wna16_configure_target(${target})
  # Generated headers are not held to our warnings.
  target_include_directories(${target} SYSTEM PUBLIC
    "$<BUILD_INTERFACE:${WNA16_BINARY_DIR}/include>"
    "$<BUILD_INTERFACE:${MLIR_INCLUDE_DIRS}>"
    "$<BUILD_INTERFACE:${LLVM_INCLUDE_DIRS}>")
  target_compile_definitions(${target} PRIVATE NDEBUG ${WNA16_LLVM_DEFINITIONS})
  target_compile_options(${target} PRIVATE -fno-exceptions)
endfunction()

# A library of the compiler: `add_wna16_library(name sources... DEPENDS
# tablegen-targets LINK_LIBS own-libraries)`.
function(add_wna16_library target)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK_LIBS" ${ARGN})
  add_library(${target} STATIC ${ARG_UNPARSED_ARGUMENTS})
  add_library(WNA16::${target} ALIAS ${target})
  wna16_use_mlir(${target})
  if(ARG_DEPENDS)
    add_dependencies(${target} ${ARG_DEPENDS})
  endif()
  target_link_libraries(${target} PUBLIC ${ARG_LINK_LIBS} MLIR LLVM)
  set_property(GLOBAL APPEND PROPERTY WNA16_INSTALL_TARGETS ${target})
endfunction()

# An executable of the compiler.
function(add_wna16_tool target)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_executable(${target} ${ARG_UNPARSED_ARGUMENTS})
  wna16_use_mlir(${target})
  target_link_libraries(${target} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${WNA16_BINARY_DIR}/bin")
  set_property(GLOBAL APPEND PROPERTY WNA16_INSTALL_TOOLS ${target})
endfunction()
