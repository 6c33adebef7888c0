//===- Memory.cpp - Where tensors of a module lie -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Module/Memory.h"

#include "Runtime/wna16_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using namespace wna16;

/// Ends a call of the runtime, which began with a clear status.
static Failure result(wna16_status status) {
  if (status == WNA16_OK)
    return ok();
  std::string message = wna16_status_message();
  wna16_status_clear();
  return fail(std::move(message));
}

void AlignedBuffer::Free::operator()(uint8_t *pointer) const {
  if (place == Place::Host)
    std::free(pointer);
  else
    wna16_cuda_free(pointer);
}

static Result<uint8_t *> allocateOnHost(int64_t bytes) {
  constexpr int64_t kAlignment = 64;
  int64_t whole;
  if (__builtin_add_overflow(bytes, kAlignment - 1, &whole))
    return fail("cannot allocate " + std::to_string(bytes) + " bytes");
  whole = std::max(whole / kAlignment, int64_t{1}) * kAlignment;
  auto *memory = static_cast<uint8_t *>(
      std::aligned_alloc(kAlignment, static_cast<size_t>(whole)));
  if (!memory)
    return fail("cannot allocate " + std::to_string(bytes) + " bytes");
  return memory;
}

static Result<uint8_t *> allocateOnDevice(int64_t bytes) {
  void *memory = nullptr;
  wna16_status_clear();
  if (Failure failure = result(wna16_cuda_allocate(bytes, &memory)))
    return failure;
  return static_cast<uint8_t *>(memory); // aligned to 256 bytes
}

Result<AlignedBuffer> AlignedBuffer::allocate(int64_t bytes, Place place) {
  if (bytes < 0)
    return fail("cannot allocate " + std::to_string(bytes) + " bytes");
  Result<uint8_t *> memory =
      place == Place::Host ? allocateOnHost(bytes) : allocateOnDevice(bytes);
  if (!memory)
    return memory.takeFailure();
  AlignedBuffer buffer;
  buffer.memory = {*memory, Free(place)};
  buffer.bytes = bytes;
  return buffer;
}

Failure wna16::copyBytes(void *target, const void *source, int64_t bytes,
                         Place place) {
  if (place == Place::CUDA) {
    wna16_status_clear();
    return result(wna16_cuda_transfer(target, source, bytes));
  }
  if (bytes)
    std::memcpy(target, source, static_cast<size_t>(bytes));
  return ok();
}

Failure wna16::fillBytes(void *target, uint8_t byte, int64_t bytes,
                         Place place) {
  if (place == Place::Host) {
    if (bytes)
      std::memset(target, byte, static_cast<size_t>(bytes));
    return ok();
  }
  constexpr int64_t kPiece = int64_t{1} << 20;
  std::vector<uint8_t> piece(static_cast<size_t>(std::min(bytes, kPiece)),
                             byte);
  for (int64_t at = 0; at < bytes; at += kPiece)
    if (Failure failure =
            copyBytes(static_cast<uint8_t *>(target) + at, piece.data(),
                      std::min(kPiece, bytes - at), place))
      return failure;
  return ok();
}

Failure wna16::waitFor(void *stream, Place place) {
  if (place == Place::Host)
    return ok();
  wna16_status_clear();
  return result(wna16_cuda_synchronize(stream));
}
