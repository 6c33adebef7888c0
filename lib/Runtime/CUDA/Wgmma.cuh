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

/// d (+)= a * b for 64 rows of a, which lie in the registers of four warps, and
/// N columns of b: `add` false starts anew.
template <typename T, int N>
struct Wgmma;

// One instruction for each type and number of columns.
#define WNA16_WGMMA(TYPE, PTX, N, REGISTERS, A0, A1, A2, A3, B, P, ...)        \
  template <>                                                                  \
  struct Wgmma<TYPE, N> {                                                      \
    __device__ static void run(float (&d)[N / 2], const uint32_t (&a)[4],      \
                               uint64_t b, int add) {                          \
      asm volatile("{\n"                                                       \
                   ".reg .pred p;\n"                                           \
                   "setp.ne.b32 p, " P ", 0;\n"                                \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." PTX       \
                   "." PTX " {" REGISTERS "}, {" A0 "," A1 "," A2 "," A3       \
                   "}, " B ", p, 1, 1, 0;\n"                                   \
                   "}\n"                                                       \
                   : __VA_ARGS__                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),       \
                     "r"(add));                                                \
    }                                                                          \
  };

#define WNA16_REGISTERS16 "%0,%1,%2,%3,%4,%5,%6,%7"
#define WNA16_OUTPUTS16                                                        \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),      \
      "+f"(d[6]), "+f"(d[7])
WNA16_WGMMA(__nv_bfloat16, "bf16", 16, WNA16_REGISTERS16, "%8", "%9", "%10",
            "%11", "%12", "%13", WNA16_OUTPUTS16)
WNA16_WGMMA(__half, "f16", 16, WNA16_REGISTERS16, "%8", "%9", "%10", "%11",
            "%12", "%13", WNA16_OUTPUTS16)
#define WNA16_REGISTERS32                                                      \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WNA16_OUTPUTS32                                                        \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),      \
      "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),             \
      "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
WNA16_WGMMA(__nv_bfloat16, "bf16", 32, WNA16_REGISTERS32, "%16", "%17", "%18",
            "%19", "%20", "%21", WNA16_OUTPUTS32)
WNA16_WGMMA(__half, "f16", 32, WNA16_REGISTERS32, "%16", "%17", "%18", "%19",
            "%20", "%21", WNA16_OUTPUTS32)
#define WNA16_REGISTERS64                                                      \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                     \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WNA16_OUTPUTS64                                                        \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),      \
      "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),             \
      "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),         \
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),         \
      "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),         \
      "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),         \
      "+f"(d[31])
WNA16_WGMMA(__nv_bfloat16, "bf16", 64, WNA16_REGISTERS64, "%32", "%33", "%34",
            "%35", "%36", "%37", WNA16_OUTPUTS64)
WNA16_WGMMA(__half, "f16", 64, WNA16_REGISTERS64, "%32", "%33", "%34", "%35",
            "%36", "%37", WNA16_OUTPUTS64)
#define WNA16_REGISTERS128                                                     \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                     \
  "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"           \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"           \
  "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WNA16_OUTPUTS128                                                       \
  "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),      \
      "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]),             \
      "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),         \
      "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),         \
      "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),         \
      "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]),         \
      "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),         \
      "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),         \
      "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]),         \
      "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),         \
      "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),         \
      "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]),         \
      "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
WNA16_WGMMA(__nv_bfloat16, "bf16", 128, WNA16_REGISTERS128, "%64", "%65", "%66",
            "%67", "%68", "%69", WNA16_OUTPUTS128)
WNA16_WGMMA(__half, "f16", 128, WNA16_REGISTERS128, "%64", "%65", "%66", "%67",
            "%68", "%69", WNA16_OUTPUTS128)

#undef WNA16_WGMMA

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_WGMMA_CUH
