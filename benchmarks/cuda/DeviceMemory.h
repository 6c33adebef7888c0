//===- DeviceMemory.h - Memory of a device ----------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_BENCHMARKS_CUDA_DEVICEMEMORY_H
#define WNA16_BENCHMARKS_CUDA_DEVICEMEMORY_H

#include "Layout/Result.h"
#include "Runtime/wna16_cuda.h"

#include <cuda_runtime_api.h>

#include <memory>

namespace wna16 {

inline Failure failureOf(const char *what, cudaError_t error) {
  if (error == cudaSuccess)
    return ok();
  return fail(std::string(what) + ": " + cudaGetErrorString(error));
}

/// What the runtime complains about, if it does.
inline Failure statusFailure() {
  return wna16_status_get() == WNA16_OK ? ok() : fail(wna16_status_message());
}

#define WNA16_TRY_CUDA(CALL)                                                   \
  do {                                                                         \
    if (::wna16::Failure bad = ::wna16::failureOf(#CALL, CALL))                \
      return bad;                                                              \
  } while (false)

class DeviceMemory {
public:
  DeviceMemory() = default;

  static Result<DeviceMemory> create(int64_t bytes) {
    void *memory = nullptr;
    wna16_status_clear();
    wna16_cuda_allocate(bytes, &memory);
    if (Failure bad = statusFailure())
      return bad;
    return DeviceMemory(memory);
  }

  void *data() const { return memory.get(); }
  template <typename T>
  T *as() const {
    return static_cast<T *>(memory.get());
  }

private:
  explicit DeviceMemory(void *memory) : memory(memory) {}

  struct Free {
    void operator()(void *address) const { wna16_cuda_free(address); }
  };
  std::unique_ptr<void, Free> memory;
};

} // namespace wna16

#endif // WNA16_BENCHMARKS_CUDA_DEVICEMEMORY_H
