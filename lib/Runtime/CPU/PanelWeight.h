//===- PanelWeight.h - A stored weight as panels ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CPU_PANELWEIGHT_H
#define WNA16_LIB_RUNTIME_CPU_PANELWEIGHT_H

#include "Panels.h"

#include <optional>

namespace wna16 {

/// The shape of a weight's panels; none when its layout does not consist of
/// panels or kernels do not read its codes, groups or scales. Dense rows count
/// as panels whose elements are their codes.
std::optional<PanelShape> panelShapeOf(const WeightSpec &spec);

/// Finds panels of a weight.
class PanelWeight {
public:
  PanelWeight(const WeightSpec &spec, const WeightBuffers &parts);

  const PanelShape &shape() const { return panelShape; }
  /// Panel `index` of all halves of an expert.
  Panel panel(int64_t expert, int64_t index) const {
    const int64_t at = expert * panels + index;
    return {codes + at * panelShape.codeBytes(),
            scales ? scales + at * scaleBytes : nullptr,
            zeros ? zeros + at * zeroBytes : nullptr};
  }

private:
  PanelShape panelShape;
  int64_t panels;
  int64_t scaleBytes, zeroBytes;
  const uint8_t *codes, *scales, *zeros;
};

} // namespace wna16

#endif // WNA16_LIB_RUNTIME_CPU_PANELWEIGHT_H
