//===- Tensors.h - Tensors and functions of a module ------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_MODULE_TENSORS_H
#define WNA16_LIB_MODULE_TENSORS_H

#include "Module/Module.h"
#include "Runtime/DType.h"

#include <optional>

namespace wna16 {

/// What buffers hold before they are written, when LoadOptions::poison is set.
constexpr uint8_t kPoison = 0xFF;

/// Bytes of a tensor, or nothing when they do not fit 63 bits.
std::optional<int64_t> bytesOf(ScalarType type,
                               const std::vector<int64_t> &shape);

std::string shown(const int64_t *shape, size_t rank);
/// "bf16 [M, 256]".
std::string shown(const ModuleArgument &argument);
/// Its name, or the pattern of a parameter.
std::string labelOf(const ModuleArgument &argument);
/// Whether it does not change from call to call.
bool isWeight(const ModuleArgument &argument);

/// A function of a module.
using EntryFn = int32_t (*)(const wna16_tensor *tensors, int64_t count,
                            void *workspace, int64_t workspaceBytes,
                            void *stream);

/// Reads the description of a module.
Result<ModuleDescription> describe(const SymbolLookup &lookup);

/// Bytes of workspace that a function needs for so many tokens.
Result<int64_t> workspaceSize(const SymbolLookup &lookup,
                              const ModuleFunction &function, int64_t tokens);

} // namespace wna16

#endif // WNA16_LIB_MODULE_TENSORS_H
