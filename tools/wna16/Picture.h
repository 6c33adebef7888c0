//===- Picture.h - Drawing a layout -----------------------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_TOOLS_WNA16_PICTURE_H
#define WNA16_TOOLS_WNA16_PICTURE_H

#include "Layout/Catalogue.h"

#include <string>

namespace wna16::cli {

/// An SVG document: for each tensor of the layout its bit order as a strip of
/// address bits, what the first 128 bits hold, and for codes a map of the
/// weight that shows which 128-bit vector holds which code.
std::string drawLayout(const LayoutEntry &layout, int bits);

} // namespace wna16::cli

#endif // WNA16_TOOLS_WNA16_PICTURE_H
