//===- Experts.h - Plan, arguments and kernels of fused experts ---------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_EXPERTS_H
#define WNA16_LIB_RUNTIME_CUDA_EXPERTS_H

#include "../ExpertsPlan.h"
#include "Describe.h"
#include "Device.h"

namespace wna16::cuda {

/// Slots that one round of launches takes: bounds the workspace.
constexpr int64_t kSlotsPerRound = 262144;
/// Up to so many slots are rows of f32 between the second product and the sum;
/// beyond that rows are of the 16-bit element type.
constexpr int64_t kWideSlots = 8192;

/// The pieces of the workspace, for one round.
struct Buffers {
  int32_t *counters; ///< [kCounters], zero between kernels
  SortedSlots sorted;
  void *hidden; ///< [slots, w2.input], of the element type
  void *rows;   ///< [slots, hidden], weighted
  /// [kParts, slots, 2, w2.input] of f32, of one token: sums of gate and up
  /// over parts of the inputs.
  void *parts;
  static constexpr int64_t kCounters = 4096;
  /// The smallest tile that slots are cut into.
  static constexpr int64_t kLeastTile = 8;
  static constexpr int64_t kParts = 4, kPartSlots = 16;
};

/// What the kernels of one round are given.
struct ExpertsRound {
  const ExpertsPlan *plan;
  const DeviceInfo *device;
  cudaStream_t stream;
  DeviceWeight w13, w2;
  DeviceBias bias13, bias2;
  Routing routing;
  DeviceActivation activation;
  int64_t tokens; ///< batched: slots
  const void *x;
  void *y;
  ScalarType outType;
  ScalarType rowType;
  Buffers buffers;
};

/// One way to run fused experts; the first in the table that takes a call runs
/// it; `code` is that of DeviceInfo. Launches only: false, with a status, when
/// one could not be made.
struct ExpertsKernel {
  const char *name;
  bool (*takes)(const ExpertsPlan &plan, int code, int64_t tokens);
  bool (*run)(const ExpertsRound &round);
};

extern const ExpertsKernel plainExperts;
extern const ExpertsKernel streamExperts;
extern const ExpertsKernel tokenExperts;
extern const ExpertsKernel wideExperts;

/// Sorts the slots of a round by expert, in tiles of `tile` slots; those that
/// are not full come last of all, if asked for.
bool sortSlots(const ExpertsRound &round, int tile, bool shortLast = false);
/// Tiles that sortSlots makes at most.
int64_t maxTiles(int64_t slots, int64_t experts, int64_t tile);
/// Copies the rows of x of the sorted slots, in their order, to where rows are
/// before the sum: each is of whole pieces of 16 bytes.
bool gatherRows(const ExpertsRound &round);
/// Sums the weighted rows of each token's slots into y.
bool sumSlots(const ExpertsRound &round);

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_EXPERTS_H
