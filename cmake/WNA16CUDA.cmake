# CUDA kernels: built where nvcc is, never required. Without them the runtime
# has the same symbols, which say so.

set(WNA16_CUDA_ARCHITECTURES "90a" CACHE STRING
  "Architectures that CUDA kernels are compiled for; sm_90a has all of them, \
others run the plain ones")
option(WNA16_ENABLE_CUDA "Build the CUDA kernels where nvcc is found" ON)

set(WNA16_HAS_CUDA OFF)
if(WNA16_ENABLE_CUDA)
  include(CheckLanguage)
  # The architectures are set target by target.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(WNA16_HAS_CUDA ON)
  endif()
endif()

if(WNA16_HAS_CUDA)
  message(STATUS "CUDA kernels: built with ${CMAKE_CUDA_COMPILER} for "
    "${WNA16_CUDA_ARCHITECTURES}")
  if(WNA16_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${WNA16_CCACHE}")
  endif()
  add_subdirectory(lib/Runtime/CUDA)
  if(WNA16_ENABLE_TESTS)
    enable_testing()
    add_subdirectory(unittests/CUDA)
  endif()
else()
  message(STATUS "CUDA kernels: left out, nvcc was not found or not asked for")
  target_sources(WNA16Runtime PRIVATE
    "${WNA16_SOURCE_DIR}/lib/Runtime/CUDA/Stubs.cpp")
endif()
add_subdirectory(benchmarks/cuda)
