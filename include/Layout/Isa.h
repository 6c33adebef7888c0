//===- Isa.h - Which instruction set kernels use ----------------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LAYOUT_ISA_H
#define WNA16_LAYOUT_ISA_H

#include <string_view>

namespace wna16 {

/// Instruction sets that kernels are written for, each a superset of those
/// before it.
enum class Isa {
  Portable, ///< what the compiler's baseline gives
  AVX2,     ///< x86-64-v3: AVX2, FMA, F16C
  AVX512,   ///< AVX-512 F, BW, DQ, VL, VBMI, VNNI (Ice Lake, Zen 4)
  AMX,      ///< AMX-INT8 (Sapphire Rapids)
};

/// The best set that this machine has, looked up once. The environment variable
/// WNA16_ISA (portable, avx2, avx512, amx) asks for a lesser one; a better one
/// than the machine has, or another word, is not obeyed. Where AMX is
/// what is found, Linux is asked to let the process use it, after which it
/// refuses small alternate signal stacks.
Isa isa();

/// Asks for a set from now on, as WNA16_ISA does; false when the machine has
/// not got it. For tests and benchmarks; no call may be under way.
bool setIsa(Isa wanted);

/// All of them, the least first.
inline constexpr Isa kIsas[] = {Isa::Portable, Isa::AVX2, Isa::AVX512,
                                Isa::AMX};

std::string_view name(Isa isa);

} // namespace wna16

#endif // WNA16_LAYOUT_ISA_H
