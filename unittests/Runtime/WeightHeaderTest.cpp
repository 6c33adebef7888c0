//===- WeightHeaderTest.cpp - The C names of a weight's values ------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Layout/Catalogue.h"
#include "Runtime/wna16_weight.h"

#include <gtest/gtest.h>

using namespace wna16;

namespace {

struct Named {
  int64_t value;
  std::string_view name;
};

/// A name for each value from 0 on, the library's.
template <typename Enum, size_t Count>
void expectNames(const Named (&list)[Count]) {
  for (size_t i = 0; i < Count; ++i) {
    EXPECT_EQ(list[i].value, static_cast<int64_t>(i));
    EXPECT_EQ(name(static_cast<Enum>(i)), list[i].name);
  }
}

TEST(WeightHeaderTest, NamesEveryLayout) {
  constexpr Named kLayouts[] = {
      {WNA16_LAYOUT_DENSE, "dense"},
      {WNA16_LAYOUT_INTERLEAVED, "interleaved"},
      {WNA16_LAYOUT_GPTQ, "gptq"},
      {WNA16_LAYOUT_AWQ, "awq"},
      {WNA16_LAYOUT_COMPRESSED_TENSORS, "compressed_tensors"},
      {WNA16_LAYOUT_MARLIN, "marlin"},
      {WNA16_LAYOUT_MARLIN_A8, "marlin_a8"},
      {WNA16_LAYOUT_HUMMING_MMA, "humming_mma"},
      {WNA16_LAYOUT_HUMMING_WGMMA, "humming_wgmma"},
      {WNA16_LAYOUT_CPU_BLOCKED, "cpu_blocked"},
      {WNA16_LAYOUT_TRTLLM, "trtllm"},
      {WNA16_LAYOUT_XPU, "xpu"},
      {WNA16_LAYOUT_OTF, "otf"},
      {WNA16_LAYOUT_TRANSPOSED, "transposed"},
      {WNA16_LAYOUT_TRANSPOSED_INTERLEAVED, "transposed_interleaved"},
      {WNA16_LAYOUT_CPU_PANELS, "cpu_panels"}};
  ASSERT_EQ(std::size(kLayouts), allLayouts().size());
  for (const LayoutEntry &entry : allLayouts()) {
    ASSERT_LT(static_cast<size_t>(entry.id), std::size(kLayouts)) << entry.name;
    const Named &named = kLayouts[entry.id];
    EXPECT_EQ(named.value, entry.id);
    EXPECT_EQ(named.name, entry.name);
  }
}

TEST(WeightHeaderTest, NamesTheOtherValues) {
  expectNames<ScalarType>({{WNA16_F16, "f16"},
                           {WNA16_BF16, "bf16"},
                           {WNA16_F32, "f32"},
                           {WNA16_F64, "f64"},
                           {WNA16_I8, "i8"},
                           {WNA16_U8, "u8"},
                           {WNA16_I16, "i16"},
                           {WNA16_I32, "i32"},
                           {WNA16_I64, "i64"},
                           {WNA16_BOOL, "bool"}});
  expectNames<CodeType>({{WNA16_CODE_DENSE, "dense"},
                         {WNA16_CODE_U4, "u4"},
                         {WNA16_CODE_U4B8, "u4b8"},
                         {WNA16_CODE_S4, "s4"},
                         {WNA16_CODE_U8, "u8"},
                         {WNA16_CODE_U8B128, "u8b128"},
                         {WNA16_CODE_S8, "s8"},
                         {WNA16_CODE_U4FP8, "u4fp8"}});
  expectNames<ZeroPoints>({{WNA16_ZEROS_NONE, "none"},
                           {WNA16_ZEROS_PLAIN, "plain"},
                           {WNA16_ZEROS_MINUS_ONE, "minus_one"}});
  expectNames<ActOrder>({{WNA16_ORDER_NONE, "none"},
                         {WNA16_ORDER_INDEX, "index"},
                         {WNA16_ORDER_SORTED, "sorted"}});
  expectNames<Part>({{WNA16_PART_CODES, "codes"},
                     {WNA16_PART_SCALES, "scales"},
                     {WNA16_PART_ZEROS, "zeros"},
                     {WNA16_PART_GROUP_INDEX, "group_index"},
                     {WNA16_PART_PERMUTATION, "permutation"},
                     {WNA16_PART_GLOBAL_SCALE, "global_scale"}});
}

} // namespace
