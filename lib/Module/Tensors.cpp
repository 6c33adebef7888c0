//===- Tensors.cpp - Tensors and functions of a module --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

using namespace wna16;

using Role = ModuleArgument::Role;

std::optional<int64_t> wna16::bytesOf(ScalarType type,
                                      const std::vector<int64_t> &shape) {
  int64_t bytes = sizeOf(type);
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  return bytes;
}

std::string wna16::shown(const int64_t *shape, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + (shape[i] < 0 ? "M" : std::to_string(shape[i]));
  return text + "]";
}

std::string wna16::shown(const ModuleArgument &argument) {
  return std::string(name(argument.type)) + " " +
         shown(argument.shape.data(), argument.shape.size());
}

std::string wna16::labelOf(const ModuleArgument &argument) {
  return argument.role == Role::Parameter ? argument.pattern : argument.name;
}

bool wna16::isWeight(const ModuleArgument &argument) {
  return argument.role == Role::Prepared || argument.role == Role::Parameter;
}

wna16_tensor wna16::makeTensor(void *data, ScalarType type,
                               std::vector<int64_t> &shape, Place place) {
  wna16_tensor tensor = {};
  tensor.data = data;
  tensor.device.device_type = static_cast<int32_t>(place);
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = dtypeOf(type);
  tensor.shape = shape.data();
  return tensor;
}

std::vector<int64_t> ModuleArgument::shapeFor(int64_t tokens) const {
  std::vector<int64_t> result = shape;
  for (int64_t &extent : result)
    if (extent < 0)
      extent = tokens;
  return result;
}

Result<ModuleDescription> wna16::describe(const SymbolLookup &lookup) {
  auto *text = static_cast<const char *>(lookup("wna16_module_description"));
  if (!text)
    return fail("expected a module with the symbol wna16_module_description; "
                "was it written by wna16 compile?");
  return parseDescription(text);
}

Result<int64_t> wna16::workspaceSize(const SymbolLookup &lookup,
                                     const ModuleFunction &function,
                                     int64_t tokens) {
  if (function.workspace.empty())
    return int64_t{0};
  using SizeFn = int64_t (*)(int64_t);
  auto size = reinterpret_cast<SizeFn>(lookup(function.workspace));
  if (!size)
    return fail("module: no symbol " + function.workspace);
  wna16_status_clear();
  int64_t bytes = size(tokens);
  if (bytes < 0 || wna16_status_get() != WNA16_OK)
    return fail(function.workspace + ": " + wna16_status_message());
  return bytes;
}
