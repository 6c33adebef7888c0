//===- Memory.h - Where tensors of a module lie -----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory of the host or of a device, behind one face. The device is reached
// through the runtime: nothing here needs CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_MODULE_MEMORY_H
#define WNA16_MODULE_MEMORY_H

#include "Layout/Result.h"
#include "Runtime/wna16.h"

#include <memory>

namespace wna16 {

/// DLPack's device types.
enum class Place : int32_t { Host = 1, CUDA = 2 };

/// Storage of a tensor, aligned to 64 bytes.
class AlignedBuffer {
public:
  static Result<AlignedBuffer> allocate(int64_t bytes,
                                        Place place = Place::Host);
  uint8_t *data() const { return memory.get(); }
  int64_t size() const { return bytes; }

private:
  struct Free {
    Free() : place(Place::Host) {}
    explicit Free(Place place) : place(place) {}
    void operator()(uint8_t *pointer) const;
    Place place;
  };
  std::unique_ptr<uint8_t, Free> memory;
  int64_t bytes = 0;
};

/// Copies from or to the host, which is where the other end lies.
Failure copyBytes(void *target, const void *source, int64_t bytes, Place place);

/// Sets every byte.
Failure fillBytes(void *target, uint8_t byte, int64_t bytes, Place place);

/// Waits for what calls put on a stream; on the host they are done when they
/// return.
Failure waitFor(void *stream, Place place);

} // namespace wna16

#endif // WNA16_MODULE_MEMORY_H
