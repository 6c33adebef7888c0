//===- InlineVector.h - A short list without memory of its own --*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_INLINEVECTOR_H
#define WNA16_LAYOUT_INLINEVECTOR_H

#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>

namespace wna16 {

/// At most N elements, held in place: kernels derive addresses and shapes in a
/// call, where nothing may be allocated.
template <typename T, size_t N>
class InlineVector {
public:
  InlineVector() = default;
  InlineVector(std::initializer_list<T> list) {
    for (const T &value : list)
      push_back(value);
  }

  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  void push_back(const T &value) {
    assert(count < N && "expected room for another element");
    elements[count++] = value;
  }

  const T *data() const { return elements.data(); }
  const T *begin() const { return data(); }
  const T *end() const { return data() + count; }
  const T &operator[](size_t i) const { return elements[i]; }
  const T &front() const { return elements.front(); }

private:
  std::array<T, N> elements = {};
  size_t count = 0;
};

} // namespace wna16

#endif // WNA16_LAYOUT_INLINEVECTOR_H
