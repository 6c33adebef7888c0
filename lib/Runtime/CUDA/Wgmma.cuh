//===- Wgmma.cuh - Matrix instructions of four warps --------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_WGMMA_CUH
#define WNA16_LIB_RUNTIME_CUDA_WGMMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace wna16::cuda {

/// Columns of 128 bytes in the swizzled order of the copy engine: the operand
/// that matrix instructions read from shared memory.
__device__ inline uint64_t swizzledOperand(uint32_t address) {
  constexpr uint64_t kSwizzle128 = uint64_t(1) << 62;
  constexpr uint64_t kEightRows = uint64_t(1024 >> 4) << 32;
  constexpr uint64_t kUnused = uint64_t(1) << 16;
  return kSwizzle128 | kEightRows | kUnused | ((address & 0x3ffff) >> 4);
}

__device__ inline void fenceRegisters() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ inline void commitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
__device__ inline void waitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/// d += a * b for 64 rows of a, which lie in the registers of four warps, and N
/// columns of b; d = a * b unless `added`.
template <typename T, int N>
struct Wgmma;

#define WNA16_INSTRUCTION(PTX, N, REGISTERS, A0, A1, A2, A3, B, ADDED, ...)    \
  asm volatile(                                                                \
      "{\n"                                                                    \
      ".reg .pred p;\n"                                                        \
      "setp.ne.b32 p, " ADDED ", 0;\n"                                         \
      "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." PTX "." PTX            \
      " {" REGISTERS "}, {" A0 "," A1 "," A2 "," A3 "}, " B ", p, 1, 1, 0;\n"  \
      "}\n"                                                                    \
      : __VA_ARGS__                                                            \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(added))

// One instruction for each type and number of columns. The operands' numbers
// follow those of the sums.
#define WNA16_WGMMA(N, REGISTERS, OUTPUTS, ...)                                \
  template <>                                                                  \
  struct Wgmma<__nv_bfloat16, N> {                                             \
    __device__ static void run(float (&d)[N / 2], const uint32_t (&a)[4],      \
                               uint64_t b, int added = 1) {                    \
      WNA16_INSTRUCTION("bf16", N, REGISTERS, __VA_ARGS__, OUTPUTS);           \
    }                                                                          \
  };                                                                           \
  template <>                                                                  \
  struct Wgmma<__half, N> {                                                    \
    __device__ static void run(float (&d)[N / 2], const uint32_t (&a)[4],      \
                               uint64_t b, int added = 1) {                    \
      WNA16_INSTRUCTION("f16", N, REGISTERS, __VA_ARGS__, OUTPUTS);            \
    }                                                                          \
  };

#define WNA16_FOUR(I) "+f"(d[I]), "+f"(d[I + 1]), "+f"(d[I + 2]), "+f"(d[I + 3])
#define WNA16_SUMS(I) WNA16_FOUR(I), WNA16_FOUR(I + 4)
#define WNA16_REGISTERS0 "%0,%1,%2,%3"
#define WNA16_SUMS0 WNA16_FOUR(0)
#define WNA16_REGISTERS1 "%0,%1,%2,%3,%4,%5,%6,%7"
#define WNA16_SUMS1 WNA16_SUMS(0)
#define WNA16_REGISTERS2 WNA16_REGISTERS1 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define WNA16_SUMS2 WNA16_SUMS1, WNA16_SUMS(8)
#define WNA16_REGISTERS3 WNA16_REGISTERS2 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define WNA16_SUMS3 WNA16_SUMS2, WNA16_SUMS(16)
#define WNA16_REGISTERS4 WNA16_REGISTERS3 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define WNA16_SUMS4 WNA16_SUMS3, WNA16_SUMS(24)
#define WNA16_REGISTERS5 WNA16_REGISTERS4 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define WNA16_SUMS5 WNA16_SUMS4, WNA16_SUMS(32)
#define WNA16_REGISTERS6 WNA16_REGISTERS5 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define WNA16_SUMS6 WNA16_SUMS5, WNA16_SUMS(40)
#define WNA16_REGISTERS7 WNA16_REGISTERS6 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define WNA16_SUMS7 WNA16_SUMS6, WNA16_SUMS(48)
#define WNA16_REGISTERS8 WNA16_REGISTERS7 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define WNA16_SUMS8 WNA16_SUMS7, WNA16_SUMS(56)

// The odd four of 24 columns.
#define WNA16_REGISTERS1A WNA16_REGISTERS1 ",%8,%9,%10,%11"
#define WNA16_SUMS1A WNA16_SUMS1, WNA16_FOUR(8)

WNA16_WGMMA(8, WNA16_REGISTERS0, WNA16_SUMS0, "%4", "%5", "%6", "%7", "%8",
            "%9")
WNA16_WGMMA(16, WNA16_REGISTERS1, WNA16_SUMS1, "%8", "%9", "%10", "%11", "%12",
            "%13")
WNA16_WGMMA(24, WNA16_REGISTERS1A, WNA16_SUMS1A, "%12", "%13", "%14", "%15",
            "%16", "%17")
WNA16_WGMMA(48, WNA16_REGISTERS3, WNA16_SUMS3, "%24", "%25", "%26", "%27",
            "%28", "%29")
WNA16_WGMMA(32, WNA16_REGISTERS2, WNA16_SUMS2, "%16", "%17", "%18", "%19",
            "%20", "%21")
WNA16_WGMMA(64, WNA16_REGISTERS4, WNA16_SUMS4, "%32", "%33", "%34", "%35",
            "%36", "%37")
WNA16_WGMMA(96, WNA16_REGISTERS6, WNA16_SUMS6, "%48", "%49", "%50", "%51",
            "%52", "%53")
WNA16_WGMMA(128, WNA16_REGISTERS8, WNA16_SUMS8, "%64", "%65", "%66", "%67",
            "%68", "%69")

#undef WNA16_WGMMA
#undef WNA16_INSTRUCTION

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WGMMA_CUH
