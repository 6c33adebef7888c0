//===- PanelBench.cpp - The kernels of fused experts, one by one ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One panel of 32 rows that stays in the cache, multiplied by prepared rows:
// what the kernels do when memory does not hold them up. The items are products
// (multiply and add), the bytes those of the codes.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Runtime/CPU/Panels.h"
#include "../Main.h"
#include "Layout/Isa.h"
#include "Memory.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace wna16;

namespace {

struct Kernels {
  Isa isa;
  const PanelKernels &kernels;
};

/// A panel of random codes and rows of random activations.
class Case {
public:
  Case(const PanelProduct &product, int bits, ScalarType type, int64_t count)
      : product(product), codes(kInput * kPanelRows * bits / 8),
        scales(kInput / kBlock * kPanelRows * 2), out(count * kPanelRows * 4),
        rows(count * product.rowBytes(shapeOf(bits))), shape(shapeOf(bits)) {
    std::mt19937 random(1);
    for (int64_t i = 0; i < shape.codeBytes(); ++i)
      codes.data()[i] = static_cast<char>(random());
    auto *scale = reinterpret_cast<uint16_t *>(scales.data());
    std::fill_n(scale, kInput / kBlock * kPanelRows, 0x3c00);
    std::normal_distribution<float> normal;
    std::vector<float> x(kInput);
    for (int64_t t = 0; t < count; ++t) {
      for (float &value : x)
        value = normal(random);
      auto *row = reinterpret_cast<uint8_t *>(rows.data()) +
                  t * product.rowBytes(shape);
      product.prepare(shape, type, x.data(), kInput, 1.0f, row);
      pointers.push_back(row);
    }
  }

  void multiply() {
    const Panel panel = {reinterpret_cast<const uint8_t *>(codes.data()),
                         reinterpret_cast<const uint8_t *>(scales.data()),
                         nullptr};
    product.multiply(shape, panel, panel, pointers.data(),
                     static_cast<int64_t>(pointers.size()),
                     reinterpret_cast<float *>(out.data()), kPanelRows);
  }
  int64_t bytes() const { return shape.codeBytes(); }
  int64_t products() const {
    return kInput * kPanelRows * static_cast<int64_t>(pointers.size());
  }

private:
  static constexpr int64_t kInput = 2048, kBlock = 128;

  static PanelShape shapeOf(int bits) {
    PanelShape shape;
    shape.bits = bits;
    shape.input = kInput;
    shape.block = kBlock;
    shape.blocks = kInput / kBlock;
    shape.blockBytes = kPanelRows * kBlock * bits / 8;
    shape.blocksPerGroup = 1;
    shape.scale = ScalarType::BF16;
    shape.zero = bits == 4 ? 8 : 128;
    return shape;
  }

  const PanelProduct &product;
  PageMemory codes, scales, out, rows;
  PanelShape shape;
  std::vector<const uint8_t *> pointers;
};

void multiply(benchmark::State &state, const PanelProduct &product, int bits) {
  Case one(product, bits, ScalarType::F32, state.range(0));
  for (auto _ : state)
    one.multiply();
  state.SetBytesProcessed(state.iterations() * one.bytes());
  state.SetItemsProcessed(state.iterations() * one.products());
}

} // namespace

void wna16::registerBenchmarks() {
  const Kernels sets[] = {{Isa::AVX2, avx2Panels},
                          {Isa::AVX512, avx512Panels},
                          {Isa::AMX, amxPanels}};
  for (const Kernels &set : sets) {
    if (isa() < set.isa)
      continue;
    for (int bits : {4, 8})
      for (bool exact : {false, true}) {
        const PanelProduct &product =
            exact ? set.kernels.exact : set.kernels.fixed;
        const std::string label = std::string(name(set.isa)) +
                                  (exact ? "/f32/" : "/fixed/") +
                                  std::to_string(bits) + "bit";
        benchmark::RegisterBenchmark(label.c_str(), multiply, product, bits)
            ->Arg(1)
            ->Arg(2)
            ->Arg(6)
            ->Arg(24);
      }
  }
}
