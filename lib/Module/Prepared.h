//===- Prepared.h - Weights that were prepared before -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_MODULE_PREPARED_H
#define WNA16_LIB_MODULE_PREPARED_H

#include "Module/Module.h"

namespace wna16 {

/// Maps a file of prepared weights and points `weights` into it, once it is
/// certain that they are those that the module takes.
Result<SafeTensors> openPreparedWeights(const std::string &file,
                                        const ModuleDescription &description,
                                        ModuleWeights &weights);

} // namespace wna16

#endif // WNA16_LIB_MODULE_PREPARED_H
