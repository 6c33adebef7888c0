//===- PreparedFileTest.cpp - Files that are filled step by step ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/PreparedFile.h"

#include "Checkpoint/SafeTensors.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>

using namespace wna16;

namespace fs = std::filesystem;

namespace {

class PreparedFileTest : public testing::Test {
protected:
  void SetUp() override {
    directory = fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(directory);
    fs::create_directories(directory);
    file = directory / "weights.safetensors";
    partial = file + ".partial";
  }
  void TearDown() override { fs::remove_all(directory); }

  static PreparedFile::Content content(int64_t rows = 3) {
    PreparedFile::Content content;
    content.tensors = {{"a", ScalarType::BF16, {rows, 5}},
                       {"empty", ScalarType::F32, {0, 7}},
                       {"b", ScalarType::I32, {2048}},
                       {"c", ScalarType::U8, {1}}};
    content.metadata = {{"who", "me"}};
    content.steps = 4;
    return content;
  }

  /// Fills and marks steps [begin, end).
  static void fill(PreparedFile &file, int begin, int end) {
    const int64_t bytes[] = {30, 0, 8192, 1};
    for (int step = begin; step < end; ++step) {
      std::memset(file.data(static_cast<size_t>(step)), step + 1,
                  static_cast<size_t>(bytes[step]));
      Failure failure = file.markDone(step, bytes[step]);
      EXPECT_FALSE(failure) << failure.message;
    }
  }

  fs::path directory;
  std::string file, partial;
};

TEST_F(PreparedFileTest, AlignsEveryTensor) {
  auto output = PreparedFile::create(file, content(), 1);
  ASSERT_TRUE(output) << output.message();
  fill(*output, 0, 4);
  EXPECT_FALSE(fs::exists(file));
  ASSERT_FALSE(SafeTensors::open(partial)) << "looks complete";
  Failure failure = output->finish();
  ASSERT_FALSE(failure) << failure.message;
  EXPECT_FALSE(fs::exists(partial));
  auto tensors = SafeTensors::open(file);
  ASSERT_TRUE(tensors) << tensors.message();
  EXPECT_EQ(tensors->metadata().at("who"), "me");
  for (const char *name : {"a", "b", "c"}) {
    const TensorView *view = tensors->find(name);
    ASSERT_NE(view, nullptr) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 4096, 0u) << name;
  }
  EXPECT_EQ(tensors->find("a")->shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(tensors->find("a")->data[29], 1);
  EXPECT_EQ(tensors->find("b")->data[8191], 3);
  EXPECT_EQ(tensors->find("c")->data[0], 4);
  EXPECT_EQ(tensors->find("empty")->bytes, 0);
  // What lies between them is zero.
  EXPECT_EQ(tensors->find("a")->data[30], 0);
  EXPECT_EQ(tensors->find("a")->data[4095], 0);
}

TEST_F(PreparedFileTest, GoesOnWhereItWasLeft) {
  {
    auto output = PreparedFile::create(file, content(), 1);
    ASSERT_TRUE(output) << output.message();
    fill(*output, 0, 3);
  }
  EXPECT_FALSE(fs::exists(file));
  auto output = PreparedFile::create(file, content(), 1);
  ASSERT_TRUE(output) << output.message();
  EXPECT_TRUE(output->isDone(0));
  EXPECT_TRUE(output->isDone(2));
  EXPECT_FALSE(output->isDone(3));
  fill(*output, 3, 4);
  Failure failure = output->finish();
  ASSERT_FALSE(failure) << failure.message;
  auto tensors = SafeTensors::open(file);
  ASSERT_TRUE(tensors) << tensors.message();
  EXPECT_EQ(tensors->find("b")->data[8191], 3);
  EXPECT_EQ(tensors->find("c")->data[0], 4);
}

TEST_F(PreparedFileTest, KeepsWhatCannotGetItsName) {
  {
    auto output = PreparedFile::create(file, content(), 1);
    ASSERT_TRUE(output) << output.message();
    fill(*output, 0, 4);
    fs::create_directory(file);
    Failure failure = output->finish();
    EXPECT_EQ(failure.message, "cannot write " + file + ": Is a directory");
  }
  EXPECT_TRUE(fs::exists(partial));
  fs::remove(file);
  auto output = PreparedFile::create(file, content(), 1);
  ASSERT_TRUE(output) << output.message();
  for (int step = 0; step < 4; ++step)
    EXPECT_TRUE(output->isDone(step)) << step;
  Failure failure = output->finish();
  ASSERT_FALSE(failure) << failure.message;
  auto tensors = SafeTensors::open(file);
  ASSERT_TRUE(tensors) << tensors.message();
  EXPECT_EQ(tensors->find("b")->data[8191], 3);
  EXPECT_FALSE(PreparedFile::create("", content(), 1));
}

TEST_F(PreparedFileTest, DoesNotTrustWhatIsNotOnDisk) {
  {
    auto output = PreparedFile::create(file, content(), 1000);
    ASSERT_TRUE(output) << output.message();
    fill(*output, 0, 2); // 30 bytes
    EXPECT_FALSE(output->isDone(0));
    fill(*output, 2, 3); // and 8192
    EXPECT_TRUE(output->isDone(0));
    fill(*output, 3, 4);
    EXPECT_FALSE(output->isDone(3));
  }
  EXPECT_TRUE(fs::exists(partial));
}

TEST_F(PreparedFileTest, KeepsWhatIsDoneBeforeItIsSynced) {
  {
    auto output = PreparedFile::create(file, content(), 1 << 20);
    ASSERT_TRUE(output) << output.message();
    EXPECT_EQ(output->keep(), 0);
  }
  EXPECT_FALSE(fs::exists(partial));
  {
    auto output = PreparedFile::create(file, content(), 1 << 20);
    ASSERT_TRUE(output) << output.message();
    fill(*output, 0, 3);
    EXPECT_FALSE(output->isDone(0));
    EXPECT_EQ(output->keep(), 3);
  }
  auto output = PreparedFile::create(file, content(), 1 << 20);
  ASSERT_TRUE(output) << output.message();
  EXPECT_TRUE(output->isDone(2));
  EXPECT_FALSE(output->isDone(3));
}

TEST_F(PreparedFileTest, StartsAnewForOtherContentAndForDamage) {
  {
    auto output = PreparedFile::create(file, content(), 1);
    ASSERT_TRUE(output) << output.message();
    fill(*output, 0, 4);
  }
  {
    auto output = PreparedFile::create(file, content(/*rows=*/4), 1);
    ASSERT_TRUE(output) << output.message();
    for (int step = 0; step < 4; ++step)
      EXPECT_FALSE(output->isDone(step));
    EXPECT_EQ(output->data(2)[0], 0);
  }
  // Nothing was done: nothing is left.
  EXPECT_FALSE(fs::exists(partial));
  std::ofstream(partial) << "something else";
  auto output = PreparedFile::create(file, content(), 1);
  ASSERT_TRUE(output) << output.message();
  EXPECT_FALSE(output->isDone(0));
}

TEST_F(PreparedFileTest, HasOneWriter) {
  auto output = PreparedFile::create(file, content(), 1);
  ASSERT_TRUE(output) << output.message();
  auto second = PreparedFile::create(file, content(), 1);
  ASSERT_FALSE(second);
  EXPECT_NE(second.message().find("is being written by another process"),
            std::string::npos)
      << second.message();
}

TEST_F(PreparedFileTest, SaysWhyItCannotWrite) {
  auto nowhere = PreparedFile::create("/nonexistent/x", content(), 1);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.message(), "cannot write /nonexistent/x.partial: No such "
                               "file or directory");
  auto device = PreparedFile::create("/dev/null", content(), 1);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.message(), "cannot write /dev/null: it is no regular file");
}

TEST_F(PreparedFileTest, LeavesAloneWhatAnotherNameStandsFor) {
  const fs::path other = file + ".other";
  std::ofstream(other) << "kept";
  fs::create_symlink(other, partial);
  auto output = PreparedFile::create(file, content(), 1);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.message(),
            "cannot write " + partial + ": it is no regular file");
  EXPECT_EQ(fs::file_size(other), 4u);
  EXPECT_TRUE(fs::is_symlink(partial));
  fs::remove(partial);
  fs::remove(other);
}

TEST_F(PreparedFileTest, ReservesItsSpaceFirst) {
  // A limit on files stands for a full disk.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = {8192, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  auto output = PreparedFile::create(file, content(), 1);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(output);
  EXPECT_NE(output.message().find("cannot write " + partial + ": "),
            std::string::npos)
      << output.message();
  EXPECT_NE(output.message().find("bytes are needed"), std::string::npos)
      << output.message();
  EXPECT_FALSE(fs::exists(partial));
}

TEST_F(PreparedFileTest, ChecksWhatItIsAskedFor) {
  PreparedFile::Content twice = content();
  twice.tensors[1].name = "a";
  auto output = PreparedFile::create(file, twice, 1);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.message(), "tensor a appears twice");
  PreparedFile::Content large = content();
  large.tensors[1].shape = {INT64_MAX, 2};
  output = PreparedFile::create(file, large, 1);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.message(), "tensor empty: its size does not fit 63 bits");
}

} // namespace
