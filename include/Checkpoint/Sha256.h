//===- Sha256.h - SHA-256 --------------------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_CHECKPOINT_SHA256_H
#define WNA16_CHECKPOINT_SHA256_H

#include <cstdint>
#include <string>

namespace wna16 {

/// SHA-256 of a buffer, as lower-case hexadecimal.
std::string sha256(const void *data, int64_t bytes);

} // namespace wna16

#endif // WNA16_CHECKPOINT_SHA256_H
