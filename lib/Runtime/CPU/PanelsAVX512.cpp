//===- PanelsAVX512.cpp - Products of panels with AVX-512 VNNI ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelsAVX512.h"

#include "PanelDense.h"
#include "RouteSteps.h"

using namespace wna16;

static constexpr PanelKernels withTiles(PanelKernels kernels) {
  kernels.fixed.multiply = avx512::multiplyTiles;
  return kernels;
}

// Constant expressions: code that filled tables at load would be for AVX-512,
// too, and run on machines that have not got it.
constexpr PanelKernels wna16::avx512Panels = panelKernels<avx512::Machine>();
constexpr PanelKernels wna16::amxPanels = withTiles(avx512Panels);
constexpr RouteKernels wna16::avx512Route = routeKernels<avx512::Vector>();
