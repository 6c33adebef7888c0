//===- Checkpoint.cpp - Quantised MoE layers of a directory ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Checkpoint.h"

#include "Format.h"
#include "Layout/TensorNames.h"

#include <algorithm>
#include <cstring>

using namespace wna16;

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

std::vector<std::string> TensorPattern::names() const {
  std::vector<std::string> result;
  Result<TensorNames> parsed = TensorNames::parse(pattern);
  if (!parsed)
    return result;
  for (int64_t expert = 0; expert < std::max<int64_t>(experts, 1); ++expert)
    for (size_t which = 0; which < std::max<size_t>(parsed->alternatives(), 1);
         ++which)
      result.push_back(parsed->name(expert, which));
  return result;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

const MoELayer *Checkpoint::layer(int64_t index) const {
  for (const MoELayer &layer : moeLayers)
    if (layer.index == index)
      return &layer;
  return nullptr;
}

namespace {

/// One tensor of `count` that are joined: `outer` runs of `run` bytes each.
void place(const TensorView &view, int64_t outer, int64_t which, int64_t count,
           uint8_t *out) {
  if (view.bytes == 0)
    return;
  int64_t run = view.bytes / outer;
  for (int64_t i = 0; i < outer; ++i)
    std::memcpy(out + (i * count + which) * run, view.data + i * run,
                static_cast<size_t>(run));
}

Result<int64_t> bytesOf(const TensorPattern &pattern) {
  int64_t bytes = sizeOf(pattern.type);
  for (int64_t extent : pattern.shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return fail("tensors " + pattern.pattern +
                  ": their size does not fit 63 bits");
  return bytes;
}

} // namespace

Failure Checkpoint::read(const TensorPattern &pattern, void *out, int64_t begin,
                         int64_t end) const {
  int64_t leading = pattern.shape.empty() ? 1 : pattern.shape[0];
  if (begin < 0 || begin > end || end > leading)
    return fail("tensors " + pattern.pattern +
                ": expected a range within 0 to " + std::to_string(leading) +
                ", got " + std::to_string(begin) + " to " +
                std::to_string(end));
  Result<int64_t> bytes = bytesOf(pattern);
  if (!bytes)
    return bytes.takeFailure();
  if (begin == end || *bytes == 0)
    return ok();
  int64_t stride = *bytes / leading;
  auto *target = static_cast<uint8_t *>(out);
  std::vector<std::string> names = pattern.names();
  if (pattern.experts == 0 && names.size() == 1) {
    Result<const TensorView *> view = require(files, names[0]);
    if (!view)
      return view.takeFailure();
    if ((*view)->bytes != *bytes)
      return fail("tensor " + names[0] + ": expected " +
                  std::to_string(*bytes) + " bytes, got " +
                  std::to_string((*view)->bytes));
    if (Failure failure = files.checkMapped(**view))
      return fail("tensor " + names[0] + ": " + failure.message);
    std::memcpy(target + begin * stride, (*view)->data + begin * stride,
                static_cast<size_t>((end - begin) * stride));
    return ok();
  }
  return readStacked(pattern, names, stride, target, begin, end);
}

Failure Checkpoint::readStacked(const TensorPattern &pattern,
                                const std::vector<std::string> &names,
                                int64_t stride, uint8_t *out, int64_t begin,
                                int64_t end) const {
  int64_t experts = std::max<int64_t>(pattern.experts, 1);
  int64_t count = static_cast<int64_t>(names.size()) / experts;
  if (count == 0 || pattern.shape.empty() || pattern.shape[0] != experts)
    return fail("tensors " + pattern.pattern +
                ": expected a leading extent of " + std::to_string(experts));
  for (int64_t expert = begin; expert < end; ++expert)
    for (int64_t which = 0; which < count; ++which) {
      const std::string &name =
          names[static_cast<size_t>(expert * count + which)];
      Result<const TensorView *> view = require(files, name);
      if (!view)
        return view.takeFailure();
      int64_t rank = static_cast<int64_t>((*view)->shape.size());
      if ((*view)->type != pattern.type || (*view)->bytes != stride / count ||
          pattern.concat >= rank)
        return fail("tensor " + name + ": expected " +
                    std::to_string(stride / count) + " bytes of " +
                    std::string(wna16::name(pattern.type)) + ", got " +
                    std::to_string((*view)->bytes) + " of " +
                    std::string(wna16::name((*view)->type)));
      if (Failure failure = files.checkMapped(**view))
        return fail("tensor " + name + ": " + failure.message);
      int64_t outer = 1;
      for (int64_t axis = 0; axis < pattern.concat; ++axis)
        outer *= (*view)->shape[static_cast<size_t>(axis)];
      place(**view, outer, which, count, out + expert * stride);
    }
  return ok();
}

Failure Checkpoint::read(const TensorPattern &pattern, void *out) const {
  return read(pattern, out, 0, pattern.shape.empty() ? 1 : pattern.shape[0]);
}
