//===- Fragments.cuh - Tiles of codes as matrix fragments ---------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is 16 inputs by 64 outputs. Thread `lane` of a warp holds for each of
// its four blocks of 16 outputs the operand of one matrix instruction: outputs
// lane / 4 and + 8, inputs 2 * (lane % 4), + 1, + 8, + 9. The two families of
// layouts differ in which of the middle two registers comes first.
//
//===----------------------------------------------------------------------===//

#ifndef WNA16_LIB_RUNTIME_CUDA_FRAGMENTS_CUH
#define WNA16_LIB_RUNTIME_CUDA_FRAGMENTS_CUH

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace wna16::cuda {

/// 16-bit element types by what kernels do with their bits.
template <typename T>
struct Element;

template <>
struct Element<__nv_bfloat16> {
  /// A 4-bit code q in these bits is 128 + q, exactly.
  static constexpr uint32_t kMagic = 0x43004300;
  /// 2 x -136: what q - 8 is short of that.
  static constexpr uint32_t kMinusOffset = 0xc308c308;
  static constexpr float kOffset = 136;
  /// Two 7-bit codes are 128 + q; taking away 128 or 256 gives an 8-bit code.
  static constexpr uint32_t kTop = 0x43804380;
  __device__ static float low(uint32_t pair) {
    return __uint_as_float(pair << 16);
  }
  __device__ static float high(uint32_t pair) {
    return __uint_as_float(pair & 0xffff0000);
  }
  __device__ static uint32_t add(uint32_t a, uint32_t b) {
    uint32_t sum;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
  }
  __device__ static uint32_t sub(uint32_t a, uint32_t b) {
    uint32_t sum;
    asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
  }
  __device__ static uint32_t mul(uint32_t a, uint32_t b) {
    uint32_t product;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
  }
  __device__ static void mma(float (&d)[4], const uint32_t (&a)[4],
                             const uint32_t (&b)[2], const float (&c)[4]) {
    // Volatile: a chain of sums stays spread out between independent ones.
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  }
};

template <>
struct Element<__half> {
  /// 1024 + q, exactly; 2 x -1032.
  static constexpr uint32_t kMagic = 0x64006400;
  static constexpr uint32_t kMinusOffset = 0xe408e408;
  static constexpr float kOffset = 1032;
  static constexpr uint32_t kTop = 0x64006400;
  __device__ static float low(uint32_t pair) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(pair)));
  }
  __device__ static float high(uint32_t pair) {
    return __half2float(__ushort_as_half(static_cast<uint16_t>(pair >> 16)));
  }
  __device__ static uint32_t add(uint32_t a, uint32_t b) {
    uint32_t sum;
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
  }
  __device__ static uint32_t sub(uint32_t a, uint32_t b) {
    uint32_t sum;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
  }
  __device__ static uint32_t mul(uint32_t a, uint32_t b) {
    uint32_t product;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
    return product;
  }
  __device__ static void mma(float (&d)[4], const uint32_t (&a)[4],
                             const uint32_t (&b)[2], const float (&c)[4]) {
    // Volatile: a chain of sums stays spread out between independent ones.
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                   "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  }
};

/// (a & b) | c.
__device__ inline uint32_t andOr(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

/// One word of 4-bit codes: 16 outputs by 16 inputs of a warp, offset by the
/// magic number.
template <typename T, bool SWAP>
__device__ inline void decode4(uint32_t word, uint32_t (&a)[4]) {
  constexpr uint32_t kMask = 0x000f000f;
  constexpr uint32_t kMagic = Element<T>::kMagic;
  a[0] = andOr(word, kMask, kMagic);
  a[SWAP ? 1 : 2] = andOr(word >> 4, kMask, kMagic);
  a[SWAP ? 2 : 1] = andOr(word >> 8, kMask, kMagic);
  a[3] = andOr(word >> 12, kMask, kMagic);
}

/// Bytes 0 and 2 of a word as Q - 128, exactly.
template <typename T>
__device__ inline uint32_t decodeBytes(uint32_t word) {
  if constexpr (sizeof(T) == 2 && Element<T>::kTop == 0x64006400) {
    // 1024 + q - 1152.
    return Element<T>::sub(andOr(word, 0x00ff00ff, 0x64006400), 0x64806480);
  } else {
    // 128 + the low 7 bits, less 256 where the top bit is clear, else 128.
    const uint32_t value = andOr(word, 0x007f007f, Element<T>::kMagic);
    const uint32_t offset = (word & 0x00800080) ^ Element<T>::kTop;
    return Element<T>::sub(value, offset);
  }
}

/// Two words of 8-bit codes: 16 outputs by 16 inputs of a warp, as Q - 128.
template <typename T, bool SWAP>
__device__ inline void decode8(uint32_t first, uint32_t second,
                               uint32_t (&a)[4]) {
  a[0] = decodeBytes<T>(first);
  a[SWAP ? 1 : 2] = decodeBytes<T>(first >> 8);
  a[SWAP ? 2 : 1] = decodeBytes<T>(second);
  a[3] = decodeBytes<T>(second >> 8);
}

__device__ inline uint32_t sharedAddress(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void loadMatrices(uint32_t address, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

//===----------------------------------------------------------------------===//
// Bulk copies into shared memory
//===----------------------------------------------------------------------===//

__device__ inline void initBarrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals)
               : "memory");
}

/// Makes initialised barriers known to the copy engine.
__device__ inline void fenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Orders what this thread did to shared memory before later bulk copies.
__device__ inline void fenceCopies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void forgetBarrier(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(barrier) : "memory");
}

/// True for one lane of a warp, which all have come to.
__device__ inline bool isElected() {
  uint32_t elected;
  asm volatile("{\n"
               ".reg .pred p;\n"
               "elect.sync _|p, 0xffffffff;\n"
               "selp.u32 %0, 1, 0, p;\n"
               "}\n"
               : "=r"(elected));
  return elected != 0;
}

__device__ inline void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives and announces bytes that copies will bring.
__device__ inline void arriveAndExpect(uint32_t barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

/// The same for a whole warp, of which one thread does it.
__device__ inline void arriveAndExpectOfWarp(uint32_t barrier, int bytes) {
  asm volatile("{\n"
               ".reg .pred one;\n"
               "elect.sync _|one, 0xffffffff;\n"
               "@one mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;\n"
               "}\n" ::"r"(barrier),
               "r"(bytes)
               : "memory");
}

/// Sleeps in between, so that who waits takes no turns from who works.
__device__ inline void waitFor(uint32_t barrier, int parity) {
  constexpr uint32_t kNanoseconds = 10000000; // at most, before it looks again
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again%=:\n"
               "mbarrier.try_wait.parity.shared.b64 done, [%0], %1, %2;\n"
               "@done bra finished%=;\n"
               "bra again%=;\n"
               "finished%=:\n"
               "}\n" ::"r"(barrier),
               "r"(parity), "r"(kNanoseconds)
               : "memory");
}

/// Copies the box of a table at (x, y, z).
__device__ inline void copyBox(uint32_t to, const CUtensorMap &map, int x,
                               int y, int z, uint32_t barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
               : "memory");
}

/// The same for what is read once: the second level's cache drops it first.
__device__ inline void copyBoxOnce(uint32_t to, const CUtensorMap &map, int x,
                                   int y, int z, uint32_t barrier) {
  asm volatile("{\n"
               ".reg .b64 once;\n"
               "createpolicy.fractional.L2::evict_first.b64 once, 1.0;\n"
               "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes.L2::cache_hint "
               "[%0], [%1, {%2, %3, %4}], [%5], once;\n"
               "}\n" ::"r"(to),
               "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
               : "memory");
}

/// The same as copyBox for a whole warp, of which one thread does it.
__device__ inline void copyBoxOfWarp(uint32_t to, const CUtensorMap &map, int x,
                                     int y, int z, uint32_t barrier) {
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "@one cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::"
      "complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\n"
      "}\n" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

/// The box of a table of four axes.
__device__ inline void copyBoxOfWarp(uint32_t to, const CUtensorMap &map, int x,
                                     int y, int z, int w, uint32_t barrier) {
  asm volatile(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "@one cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::"
      "complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];\n"
      "}\n" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
      : "memory");
}

__device__ inline void prefetchMap(const CUtensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Copies 16 bytes of each thread.
__device__ inline void copyAsync(uint32_t to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from)
               : "memory");
}

__device__ inline void commitCopies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ inline void waitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

//===----------------------------------------------------------------------===//
// Clusters of blocks
//===----------------------------------------------------------------------===//

__device__ inline void syncCluster() {
  asm volatile("barrier.cluster.arrive.aligned;\n"
               "barrier.cluster.wait.aligned;" ::
                   : "memory");
}

/// Two floats in the shared memory of another block of the cluster.
__device__ inline float2 loadRemote(const float *mine, int rank) {
  uint32_t address;
  float2 values;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(sharedAddress(mine)), "r"(rank));
  asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
               : "=f"(values.x), "=f"(values.y)
               : "r"(address)
               : "memory");
  return values;
}

} // namespace wna16::cuda

#endif // WNA16_LIB_RUNTIME_CUDA_FRAGMENTS_CUH
