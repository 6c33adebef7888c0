//===- Catalogue.h - Every storage layout, as data --------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layout is one entry of one table: the bit orders of its weight, scales,
// zero points and bias, and how its storage is shaped. Adding a layout adds a
// row to the table in Catalogue.cpp and touches nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_CATALOGUE_H
#define WNA16_LAYOUT_CATALOGUE_H

#include "Layout/BitOrder.h"
#include "Layout/WeightSpec.h"

namespace wna16 {

/// Looks a layout up by name ("gptq", "awq", "compressed_tensors", "marlin",
/// "marlin_a8", "humming_mma", "humming_wgmma", "cpu_blocked", "trtllm", "xpu",
/// "otf", "dense"); null when there is none.
const LayoutEntry *findLayout(std::string_view name);

/// Looks a layout up by its ABI number; null when there is none.
const LayoutEntry *findLayout(int64_t id);

/// The table, in the order of its ABI numbers.
const std::vector<LayoutEntry> &allLayouts();

} // namespace wna16

#endif // WNA16_LAYOUT_CATALOGUE_H
