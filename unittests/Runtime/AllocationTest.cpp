//===- AllocationTest.cpp - A call allocates nothing ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts every allocation of the process, whichever thread and library makes
// it: the sanitizers' hook where they are on, otherwise malloc and its family,
// which an executable may replace.
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

using namespace wna16;
using namespace wna16test;

static std::atomic<int64_t> allocations{0};
/// Bytes that are allocated now, and the most of them at any time.
static std::atomic<int64_t> live{0}, peak{0};

static void countAllocation(const volatile void *, size_t size) {
  ++allocations;
  const int64_t now = live += static_cast<int64_t>(size);
  int64_t seen = peak;
  while (seen < now && !peak.compare_exchange_weak(seen, now)) {
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*)(const volatile void *, size_t), void (*)(const volatile void *));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void *memory);

static void countFree(const volatile void *memory) {
  live -= static_cast<int64_t>(__sanitizer_get_allocated_size(memory));
}
static const int kHooked =
    __sanitizer_install_malloc_and_free_hooks(countAllocation, countFree);
#else
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);
size_t malloc_usable_size(void *memory);
}

static void *counted(void *memory) {
  if (memory)
    countAllocation(memory, malloc_usable_size(memory));
  return memory;
}
static void countFree(void *memory) {
  live -= static_cast<int64_t>(malloc_usable_size(memory));
}

extern "C" {
void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t elements, size_t size) {
  return counted(__libc_calloc(elements, size));
}
void *realloc(void *memory, size_t size) {
  const size_t before = malloc_usable_size(memory);
  void *moved = counted(__libc_realloc(memory, size));
  if (moved || !size)
    live -= static_cast<int64_t>(before);
  return moved;
}
void *aligned_alloc(size_t alignment, size_t size) {
  return counted(__libc_memalign(alignment, size));
}
int posix_memalign(void **memory, size_t alignment, size_t size) {
  *memory = counted(__libc_memalign(alignment, size));
  return *memory ? 0 : ENOMEM;
}
void free(void *memory) {
  countFree(memory);
  __libc_free(memory);
}
}
static const int kHooked = 1;
#endif

namespace {

/// The fewest allocations of several equal calls: those of the first ones start
/// the threads, which allocate as they come up.
template <typename Call>
int64_t allocationsOf(Call call) {
  constexpr int kCalls = 20;
  EXPECT_EQ(call(), WNA16_OK) << wna16_status_message();
  int64_t fewest = INT64_MAX;
  for (int i = 0; i < kCalls && fewest > 0; ++i) {
    const int64_t before = allocations;
    const wna16_status status = call();
    fewest = std::min<int64_t>(fewest, allocations - before);
    EXPECT_EQ(status, WNA16_OK) << wna16_status_message();
  }
  return fewest;
}

TEST(Allocation, IsCounted) {
  // A preparation step allocates its index tables, within the library.
  ASSERT_GT(kHooked, 0);
  Random random(1);
  TestWeight from = packedWeight(random, 1, 32, 1, 32);
  TestWeight to = emptyWeight(from.plan);
  std::vector<wna16_tensor> tensors;
  for (TestWeight *weight : {&from, &to})
    for (HostTensor &part : weight->parts)
      tensors.push_back(part.view());
  const wna16_convert_plan plan = convertPlan(from.plan, to.plan);
  wna16_status_clear();
  EXPECT_GT(allocationsOf([&] {
              return wna16_cpu_convert(&plan, tensors.data(), tensors.size(),
                                       nullptr, 0, nullptr);
            }),
            0);
}

TEST(Allocation, NoneInRoute) {
  Random random(1);
  wna16_route_plan plan = {};
  plan.abi_version = WNA16_ABI_VERSION;
  plan.experts = 64;
  plan.top_k = 4;
  plan.groups = 8;
  plan.top_groups = 4;
  plan.scaling = 1;
  HostTensor logits = randomTensor(random, ScalarType::BF16, {33, 64});
  HostTensor correction = randomTensor(random, ScalarType::F32, {64});
  HostTensor scale = randomTensor(random, ScalarType::BF16, {64});
  HostTensor weights(ScalarType::F32, {33, 4}), ids(ScalarType::I32, {33, 4});
  const wna16_tensor tensors[] = {logits.view(), correction.view(),
                                  scale.view(), weights.view(), ids.view()};
  wna16_status_clear();
  const int64_t bytes = wna16_cpu_route_workspace(&plan, 33);
  Workspace workspace(bytes);
  EXPECT_EQ(allocationsOf([&] {
              return wna16_cpu_route(&plan, tensors, 5, workspace.data(), bytes,
                                     nullptr);
            }),
            0);
}

TEST(Allocation, NoneInRmsNorm) {
  Random random(8);
  HostTensor x = randomTensor(random, ScalarType::BF16, {5, 256});
  HostTensor weight = randomTensor(random, ScalarType::BF16, {256});
  HostTensor y(ScalarType::BF16, {5, 256});
  const wna16_rms_norm_plan plan = {WNA16_ABI_VERSION, 256, 1e-6, 1};
  const wna16_tensor tensors[] = {x.view(), weight.view(), {}, y.view()};
  EXPECT_EQ(allocationsOf([&] {
              return wna16_cpu_rms_norm(&plan, tensors, 4, nullptr, 0, nullptr);
            }),
            0);
}

/// Each weight that packedWeight makes, in each layout that can hold it.
void forEachStoredForm(
    const wna16_weight &source,
    const std::function<void(const wna16_weight &, std::string_view)> &call) {
  for (const LayoutEntry &layout : allLayouts()) {
    wna16_weight target = source;
    target.layout = layout.id;
    if (layout.scaleType)
      target.scale = static_cast<int64_t>(*layout.scaleType);
    if (layout.needsZeros) {
      target.code = static_cast<int64_t>(CodeType::U4);
      target.zeros = static_cast<int64_t>(ZeroPoints::Plain);
    }
    if (layout.name == "trtllm")
      target.code = static_cast<int64_t>(CodeType::S4);
    if (!layout.codes4.empty())
      call(target, layout.name);
  }
}

TEST(Allocation, NoneInLinear) {
  Random random(2);
  TestWeight source = packedWeight(random, 1, 256, 1, 256);
  forEachStoredForm(source.plan, [&](const wna16_weight &target,
                                     std::string_view name) {
    TestWeight weight = converted(source, target);
    HostTensor x = randomTensor(random, ScalarType::BF16, {5, 256});
    HostTensor y(ScalarType::F32, {5, 256});
    const wna16_linear_plan plan = {WNA16_ABI_VERSION, target, 1};
    std::vector<wna16_tensor> tensors = {x.view()};
    for (HostTensor &part : weight.parts)
      tensors.push_back(part.view());
    tensors.push_back({});
    tensors.push_back(y.view());
    const int64_t bytes = wna16_cpu_linear_workspace(&plan, 5);
    Workspace workspace(bytes);
    EXPECT_EQ(allocationsOf([&] {
                return wna16_cpu_linear(&plan, tensors.data(), tensors.size(),
                                        workspace.data(), bytes, nullptr);
              }),
              0)
        << name;
  });
}

int64_t allocationsOfLayer(Layer &layer) {
  HostTensor y = layer.emptyOutput();
  const std::vector<wna16_tensor> tensors = layer.tensors(y);
  wna16_status_clear();
  const int64_t bytes =
      wna16_cpu_fused_experts_workspace(&layer.plan, layer.tokens());
  Workspace workspace(bytes);
  return allocationsOf([&] {
    return wna16_cpu_fused_experts(&layer.plan, tensors.data(), tensors.size(),
                                   workspace.data(), bytes, nullptr);
  });
}

TEST(Allocation, NoneInFusedExperts) {
  Random random(3);
  const Layer source = packedLayer(random, 2, 256, 256, 3, 2, ScalarType::BF16);
  forEachStoredForm(source.plan.w13,
                    [&](const wna16_weight &w13, std::string_view name) {
                      Layer layer = source;
                      wna16_weight w2 = w13;
                      w2.halves = 1;
                      layer.w13 = converted(source.w13, layer.plan.w13 = w13);
                      layer.w2 = converted(source.w2, layer.plan.w2 = w2);
                      EXPECT_EQ(allocationsOfLayer(layer), 0) << name;
                    });
}

TEST(Allocation, NoneInFusedExpertsOfActOrder) {
  Random random(4);
  WeightOptions options;
  options.actOrder = true;
  Layer layer =
      packedLayer(random, 2, 128, 128, 3, 2, ScalarType::BF16, options);
  EXPECT_EQ(allocationsOfLayer(layer), 0) << "by index";
  for (TestWeight *weight : {&layer.w13, &layer.w2}) {
    wna16_weight sorted = weight->plan;
    sorted.act_order = static_cast<int64_t>(ActOrder::Sorted);
    *weight = converted(*weight, sorted);
  }
  layer.plan.w13 = layer.w13.plan;
  layer.plan.w2 = layer.w2.plan;
  EXPECT_EQ(allocationsOfLayer(layer), 0) << "sorted";
}

TEST(Allocation, NoneForAnyTypeAndNumberOfTokens) {
  Random random(7);
  for (ScalarType type : {ScalarType::F32, ScalarType::F16, ScalarType::BF16})
    for (int64_t tokens : {1, 100}) {
      Layer layer = packedLayer(random, 4, 256, 256, tokens, 2, type);
      const auto toPanels = [](TestWeight &weight, wna16_weight &plan) {
        plan.layout = layoutId("cpu_panels");
        weight = converted(weight, plan);
      };
      toPanels(layer.w13, layer.plan.w13);
      toPanels(layer.w2, layer.plan.w2);
      EXPECT_EQ(allocationsOfLayer(layer), 0) << "panels, " << tokens;
      layer =
          makeLayer(random, denseWeight(random, 4, 256, 2, 256, type),
                    denseWeight(random, 4, 256, 1, 256, type), tokens, 2, type);
      EXPECT_EQ(allocationsOfLayer(layer), 0) << "dense, " << tokens;
    }
}

/// A weight of 4 bits as the CPU's kernels take it.
wna16_weight blockedPlan(wna16_weight plan) {
  plan.layout = layoutId("cpu_blocked");
  plan.code = static_cast<int64_t>(CodeType::U4);
  plan.zeros = static_cast<int64_t>(ZeroPoints::Plain);
  plan.scale = static_cast<int64_t>(ScalarType::F32);
  return plan;
}

/// Expert `e` alone, stored as the whole is.
TestWeight expertOf(TestWeight &weight, int64_t e) {
  wna16_weight plan = weight.plan;
  plan.experts = 1;
  TestWeight one = emptyWeight(plan);
  for (int i = 0; i < kNumParts; ++i)
    if (int64_t bytes = one.parts[i].bytes())
      std::memcpy(one.parts[i].data(),
                  static_cast<char *>(weight.parts[i].data()) + e * bytes,
                  bytes);
  return one;
}

// No list of experts that is joined: experts are written where they belong, to
// the bytes that they have alone. All that a conversion allocates are index
// tables, some for each of its threads.
TEST(Allocation, B82_ConversionHoldsLessThanAnExpert) {
  Random random(5);
  TestWeight from = packedWeight(random, 64, 512, 2, 256);
  const wna16_weight target = blockedPlan(from.plan);
  TestWeight to = converted(from, target);
  std::vector<wna16_tensor> tensors;
  for (TestWeight *weight : {&from, &to})
    for (HostTensor &part : weight->parts)
      tensors.push_back(part.view());
  const wna16_convert_plan plan = convertPlan(from.plan, target);
  wna16_set_num_threads(2);
  const int64_t before = live;
  peak = before;
  EXPECT_EQ(wna16_cpu_convert(&plan, tensors.data(), tensors.size(), nullptr, 0,
                              nullptr),
            WNA16_OK);
  wna16_set_num_threads(0);
  EXPECT_GT(peak, before);
  EXPECT_LT(peak - before, 512 * 512 / 2);
  for (int64_t e = 0; e < 64; ++e) {
    wna16_weight single = target;
    single.experts = 1;
    TestWeight alone = converted(expertOf(from, e), single);
    TestWeight part = expertOf(to, e);
    for (int i = 0; i < kNumParts; ++i) {
      const int64_t bytes = alone.parts[i].bytes();
      if (!bytes)
        continue;
      EXPECT_EQ(std::memcmp(alone.parts[i].data(), part.parts[i].data(), bytes),
                0)
          << "expert " << e << " part " << i;
    }
  }
}

// Prepared weights are all that a call needs: the source may be gone, no call
// repacks, and none takes more memory than the first.
TEST(Allocation, B83_CallsNeedPreparedWeightsAlone) {
  Random random(6);
  Layer layer;
  std::vector<double> reference;
  {
    Layer source = packedLayer(random, 32, 256, 256, 4, 2, ScalarType::F32);
    reference = source.reference();
    layer = source;
    layer.plan.w13 = blockedPlan(source.plan.w13);
    layer.plan.w2 = blockedPlan(source.plan.w2);
    layer.w13 = converted(source.w13, layer.plan.w13);
    layer.w2 = converted(source.w2, layer.plan.w2);
  }
  for (int call = 0; call < 3; ++call) {
    EXPECT_LT(relativeError(layer.output(), reference),
              tolerance(ScalarType::F32));
    EXPECT_EQ(allocationsOfLayer(layer), 0);
  }
}

} // namespace
