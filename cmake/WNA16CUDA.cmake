# CUDA kernels: built where their sources and nvcc are, never required.

if(NOT EXISTS "${WNA16_SOURCE_DIR}/lib/Runtime/CUDA/CMakeLists.txt")
  message(STATUS "CUDA kernels: not part of this version")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA kernels: built with ${CMAKE_CUDA_COMPILER}")
  add_subdirectory(lib/Runtime/CUDA)
else()
  message(STATUS "CUDA kernels: left out, nvcc was not found")
endif()
