//===- Parameters.h - What kernels are given ----------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plain structures that the host fills in and kernels take by value.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_PARAMETERS_H
#define WNA16_LIB_RUNTIME_CUDA_PARAMETERS_H

#include "Layout/Catalogue.h"

namespace wna16::cuda {

/// AddressMap's terms of one axis.
struct AxisTerms {
  static constexpr int kMaxBits = 14;
  int32_t count = 0;
  uint8_t bit[kMaxBits] = {};
  uint8_t inverted[kMaxBits] = {};
  int32_t weight[kMaxBits] = {};
  int64_t stride = 0;
};

/// An AddressMap in a form that kernels read.
struct DeviceMap {
  AxisTerms axis[kNumAxes];
  int64_t outputs = 1;
  int64_t size = 0;
  int64_t tile = 1; ///< units of one tile with its trailer
  int32_t hasHalves = 0;
  /// Axes with more than one tile, the longest stride first.
  int32_t rests = 0;
  uint8_t restAxis[kNumAxes] = {};
  uint32_t restStride[kNumAxes] = {};
};

/// A stored weight. Addresses are those of expert 0.
struct DeviceWeight {
  CodeType code;
  ScalarType element;
  ScalarType scale;
  ZeroPoints zeros;
  int32_t bits;
  int32_t zeroBits;
  int64_t input;
  int64_t rows;
  int64_t outputs;
  int64_t group; ///< inputs that share a scale
  int64_t groups;
  const uint8_t *codeData;
  const uint8_t *scaleData;
  const uint8_t *zeroData;
  const int32_t *groupIndex;
  const int32_t *permutation;
  const float *globalScale;
  DeviceMap codes, scales, zeroPoints;
};

/// A bias; absent when data is null.
struct DeviceBias {
  const void *data = nullptr;
  ScalarType type = ScalarType::F32;
  DeviceMap order;
};

/// Which expert each slot asks for. Batched rows are slots of their own.
struct Routing {
  const int32_t *ids;   ///< [slots]; batched: tokens of each expert
  const float *weights; ///< [slots] or null
  const int32_t *map;   ///< or null
  int64_t mapSize;
  int64_t experts;
  int64_t topK;
  int64_t slots;
  int64_t rowsPerExpert; ///< batched; 0: not batched
};

/// Slots [begin, begin + count) of the sorted order: one expert's.
struct Tile {
  int32_t expert;
  int32_t begin;
  int32_t count;
  int32_t unused;
};

/// Slots sorted by expert and cut into tiles. All in the workspace.
struct SortedSlots {
  int32_t *order;    ///< [slots]
  int32_t *begin;    ///< [experts + 1]
  Tile *tiles;       ///< [maxTiles]
  int32_t *numTiles; ///< [1]
};

struct DeviceActivation {
  int32_t kind;
  float alpha, beta, limit;
};

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_PARAMETERS_H
