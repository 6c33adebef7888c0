//===- Audit.h - What a checkpoint really holds -----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef WNA16_LIB_CHECKPOINT_AUDIT_H
#define WNA16_LIB_CHECKPOINT_AUDIT_H

#include "Checkpoint/Checkpoint.h"

namespace wna16 {

/// Reads all floats and zero points of a layer and reports what is odd.
void auditLayer(const SafeTensors &files, const MoELayer &layer,
                std::vector<Finding> &findings);

} // namespace wna16

#endif // WNA16_LIB_CHECKPOINT_AUDIT_H
