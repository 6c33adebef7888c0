//===- SafeTensorsTest.cpp - Mapped safetensors files -----------*- C++ -*-===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace wna16;
using namespace wna16::test;

namespace {

/// A file with a given header and `data` bytes after it.
std::string fileOf(const std::string &header, size_t data,
                   std::optional<uint64_t> length = std::nullopt) {
  uint64_t size = length.value_or(header.size());
  std::string text;
  for (int shift = 0; shift < 64; shift += 8)
    text.push_back(char(size >> shift));
  return text + header + std::string(data, 'x');
}

std::string refusalOf(const std::string &content) {
  TemporaryDirectory directory;
  directory.write("a.safetensors", content);
  Result<SafeTensors> files =
      SafeTensors::open(directory.file("a.safetensors"));
  EXPECT_FALSE(files) << "expected a refusal";
  return files ? "" : files.message();
}

std::string entry(const std::string &name, const std::string &dtype,
                  const std::string &shape, const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(SafeTensors, RoundTrip) {
  TemporaryDirectory directory;
  std::string file = directory.file("a.safetensors");
  uint8_t bytes[3] = {1, 2, 3};
  int64_t numbers[2] = {-1, int64_t(1) << 40};
  float scalar = 2.5F;
  std::vector<TensorToWrite> list = {
      {"z.bytes", ScalarType::U8, {3}, bytes},
      {"numbers", ScalarType::I64, {2, 1}, numbers},
      {"scalar", ScalarType::F32, {}, &scalar},
      {"empty", ScalarType::BF16, {0, 7}, nullptr}};
  Failure failure = writeSafeTensors(file, list, {{"format", "pt"}});
  ASSERT_FALSE(failure) << failure.message;
  Result<SafeTensors> files = SafeTensors::open(file);
  ASSERT_TRUE(files) << files.message();
  EXPECT_EQ(files->all().size(), 4u);
  EXPECT_EQ(files->metadata().at("format"), "pt");
  const TensorView *view = files->find("numbers");
  ASSERT_NE(view, nullptr);
  // Three bytes lie before it: data need not be aligned.
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::memcmp(view->data, numbers, sizeof(numbers)), 0);
  EXPECT_EQ(files->find("scalar")->shape.size(), 0u);
  EXPECT_EQ(files->find("empty")->bytes, 0);
  EXPECT_EQ(files->find("absent"), nullptr);
}

TEST(SafeTensors, WriterLeavesNoTemporaryFile) {
  TemporaryDirectory directory;
  Failure failure =
      writeSafeTensors(directory.file("missing/a.safetensors"), {});
  EXPECT_TRUE(failure);
  EXPECT_CONTAINS(failure.message, "missing/a.safetensors");
  int8_t byte = 1;
  EXPECT_TRUE(writeSafeTensors(
      directory.file("a.safetensors"),
      {{"a", ScalarType::I8, {1}, &byte}, {"a", ScalarType::I8, {1}, &byte}}));
  EXPECT_NE(std::ifstream(directory.file("a.safetensors")).good(), true);
}

TEST(SafeTensors, WriterKeepsDevicesAndDirectories) {
  // A link of its own: a failure of this test must not cost the machine its
  // device.
  TemporaryDirectory directory;
  std::string link = directory.file("full");
  ASSERT_EQ(::symlink("/dev/full", link.c_str()), 0);
  int8_t byte = 1;
  std::vector<TensorToWrite> list = {{"a", ScalarType::I8, {1}, &byte}};
  Failure failure = writeSafeTensors(link, list);
  ASSERT_TRUE(failure);
  EXPECT_CONTAINS(failure.message, "cannot write " + link);
  struct ::stat status;
  ASSERT_EQ(::stat(link.c_str(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_TRUE(writeSafeTensors(directory.path(), list));
}

TEST(SafeTensors, TruncatedAtEveryByte) {
  TemporaryDirectory directory;
  std::string file = directory.file("a.safetensors");
  float values[3] = {1, 2, 3};
  ASSERT_FALSE(
      writeSafeTensors(file, {{"a", ScalarType::F32, {2}, values},
                              {"b", ScalarType::F32, {1}, values + 2}}));
  std::ifstream stream(file, std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(stream)),
                    std::istreambuf_iterator<char>());
  for (size_t size = 0; size < whole.size(); ++size) {
    directory.write("b.safetensors", whole.substr(0, size));
    EXPECT_FALSE(SafeTensors::open(directory.file("b.safetensors")))
        << "at " << size;
  }
  directory.write("b.safetensors", whole + "x");
  EXPECT_FALSE(SafeTensors::open(directory.file("b.safetensors")));
}

TEST(SafeTensors, EveryFlippedBitIsReadOrRefused) {
  TemporaryDirectory directory;
  std::string file = directory.file("a.safetensors");
  float values[3] = {1, 2, 3};
  ASSERT_FALSE(
      writeSafeTensors(file, {{"a", ScalarType::F32, {2}, values},
                              {"b", ScalarType::F32, {1}, values + 2}}));
  std::ifstream stream(file, std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(stream)),
                    std::istreambuf_iterator<char>());
  for (size_t bit = 0; bit < (whole.size() - sizeof(values)) * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = char(flipped[bit / 8] ^ (1 << bit % 8));
    directory.write("b.safetensors", flipped);
    Result<SafeTensors> files =
        SafeTensors::open(directory.file("b.safetensors"));
    if (!files)
      continue;
    // Whatever was made of it lies within the data.
    int64_t total = 0;
    for (const auto &[name, view] : files->all())
      for (int64_t i = 0; i < view.bytes; ++i)
        total += view.data[i] + 1;
    EXPECT_GE(total, 0);
  }
}

TEST(SafeTensors, RefusesBadHeaders) {
  EXPECT_CONTAINS(refusalOf(fileOf("{}", 0, UINT64_MAX)), "header");
  EXPECT_CONTAINS(refusalOf(fileOf("{}", 0, uint64_t(1) << 63)), "header");
  EXPECT_CONTAINS(refusalOf(fileOf("{}", 0, 3)), "got 3");
  EXPECT_CONTAINS(refusalOf(fileOf("[]", 0)), "object");
  EXPECT_CONTAINS(refusalOf(fileOf("{\"a\":1}", 0)), "tensor a");
  EXPECT_CONTAINS(refusalOf(fileOf("{nonsense", 0)), "byte");
  EXPECT_CONTAINS(refusalOf(fileOf("{}", 4)), "4 bytes of data");
  std::string deep = std::string(100000, '[');
  EXPECT_CONTAINS(refusalOf(fileOf("{\"a\":" + deep, 0)), "nested");
  EXPECT_CONTAINS(refusalOf(fileOf("{\"__metadata__\":{\"a\":1}}", 0)),
                  "__metadata__.a");
}

TEST(SafeTensors, RefusesBadEntries) {
  auto one = [](const char *dtype, const char *shape, const char *offsets,
                size_t data) {
    return refusalOf(
        fileOf("{" + entry("t", dtype, shape, offsets) + "}", data));
  };
  EXPECT_CONTAINS(one("Q4", "[1]", "[0,4]", 4), "unknown dtype \"Q4\"");
  EXPECT_CONTAINS(one("F32", "[2]", "[0,4]", 4), "ask for 8 bytes");
  EXPECT_CONTAINS(one("F32", "[1]", "[0,8]", 4), "<= 4");
  EXPECT_CONTAINS(one("F32", "[1]", "[4,0]", 4), "[4, 0)");
  EXPECT_CONTAINS(one("F32", "[-1]", "[0,4]", 4), "extents");
  EXPECT_CONTAINS(one("F32", "[1.0]", "[0,4]", 4), "extents");
  EXPECT_CONTAINS(one("F32", "1", "[0,4]", 4), "shape");
  EXPECT_CONTAINS(one("F32", "[1]", "[0]", 4), "data_offsets");
  EXPECT_CONTAINS(one("F32", "[1]", "[0,-4]", 4), "data_offsets");
  EXPECT_CONTAINS(one("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]", 4), "at most 8");
  EXPECT_CONTAINS(one("F32", "[4294967296,4294967296]", "[0,4]", 4), "63 bits");
  EXPECT_CONTAINS(one("F32", "[9223372036854775807]", "[0,4]", 4), "63 bits");
  EXPECT_CONTAINS(one("F32", "[18446744073709551615]", "[0,4]", 4), "extents");
}

TEST(SafeTensors, RefusesOverlapsGapsAndDuplicates) {
  auto two = [](const char *first, const char *second) {
    return refusalOf(fileOf("{" + entry("a", "I8", "[4]", first) + "," +
                                entry("b", "I8", "[4]", second) + "}",
                            9));
  };
  EXPECT_CONTAINS(two("[0,4]", "[3,7]"), "overlaps");
  EXPECT_CONTAINS(two("[0,4]", "[5,9]"), "gap");
  EXPECT_CONTAINS(two("[1,5]", "[5,9]"), "gap");
  EXPECT_CONTAINS(two("[0,4]", "[4,8]"), "end at 8");
  EXPECT_CONTAINS(
      refusalOf(fileOf("{" + entry("a", "I8", "[1]", "[0,1]") + "," +
                           entry("a", "I8", "[1]", "[1,2]") + "}",
                       2)),
      "\"a\" appears twice");
}

TEST(SafeTensors, KnowsTypesItCannotUse) {
  TemporaryDirectory directory;
  directory.write("a.safetensors",
                  fileOf("{" + entry("a", "F8_E4M3", "[3]", "[0,3]") + "," +
                             entry("b", "U8", "[1]", "[3,4]") + "}",
                         4));
  Result<SafeTensors> files =
      SafeTensors::open(directory.file("a.safetensors"));
  ASSERT_TRUE(files) << files.message();
  EXPECT_EQ(files->find("a"), nullptr);
  EXPECT_EQ(files->foreign().at("a"), "F8_E4M3");
  EXPECT_NE(files->find("b"), nullptr);
}

TEST(SafeTensors, RefusesHeadersThatCostTooMuch) {
  // 40 MB of text that would be 17 million values.
  std::string many = "{\"a\":{\"shape\":[0";
  for (int64_t i = 0; i < 17'000'000; ++i)
    many += ",0";
  EXPECT_CONTAINS(refusalOf(fileOf(many + "]}}", 0)), "values");
  EXPECT_CONTAINS(refusalOf(fileOf("{\"\xff\":1}", 0)), "not valid JSON");
  EXPECT_CONTAINS(refusalOf(fileOf("{\"\xc3\x28\":1}", 0)), "not valid JSON");
  EXPECT_CONTAINS(refusalOf(fileOf("{\"\\ud800\":1}", 0)), "not valid JSON");
  // A name may hold anything else.
  TemporaryDirectory directory;
  directory.write(
      "a.safetensors",
      fileOf("{" + entry("\\u0000{expert},\\n", "U8", "[0]", "[0,0]") + "}",
             0));
  Result<SafeTensors> files =
      SafeTensors::open(directory.file("a.safetensors"));
  ASSERT_TRUE(files) << files.message();
  EXPECT_NE(files->find(std::string("\0{expert},\n", 11)), nullptr);
}

TEST(SafeTensors, ReadsRegularFilesOnly) {
  TemporaryDirectory directory;
  // Nobody writes to the pipe: waiting for it would be forever.
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
  for (const std::string &file : {directory.file("pipe"), directory.path()})
    EXPECT_CONTAINS(SafeTensors::open(file).message(), "not a regular file");
  ASSERT_EQ(::mkfifo(directory.file("config.json").c_str(), 0600), 0);
  EXPECT_CONTAINS(Checkpoint::open(directory.path()).message(),
                  "not a regular file");
}

// Reading pages beyond the end of a file is a signal, not an error.
TEST(SafeTensors, FilesThatWereCutAreNotRead) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  TemporaryDirectory directory;
  builder.write(directory.path());
  Result<Checkpoint> checkpoint = Checkpoint::open(directory.path());
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  const ExpertsSource &experts = checkpoint->layers()[0].experts;
  std::vector<uint8_t> bytes(1 << 20);
  ASSERT_FALSE(checkpoint->read(experts.w13.parts[0], bytes.data()));
  std::string file = directory.file("model.safetensors");
  ASSERT_EQ(::truncate(file.c_str(), 8), 0);
  for (const TensorPattern *pattern :
       {&experts.w13.parts[0], &experts.w2.parts[1],
        &checkpoint->layers()[0].router.weight.parts[0]}) {
    Failure failure = checkpoint->read(*pattern, bytes.data());
    ASSERT_TRUE(failure);
    EXPECT_CONTAINS(failure.message, "has been cut");
    EXPECT_CONTAINS(failure.message, "model.safetensors had");
  }
}

TEST(SafeTensors, FilesThatWereReplacedAreStillRead) {
  CheckpointBuilder builder(ModelStyle{}, LinearStyle{});
  TemporaryDirectory directory;
  builder.write(directory.path());
  Result<Checkpoint> checkpoint = Checkpoint::open(directory.path());
  ASSERT_TRUE(checkpoint) << checkpoint.message();
  directory.write("other", "");
  ASSERT_EQ(std::rename(directory.file("other").c_str(),
                        directory.file("model.safetensors").c_str()),
            0);
  expectExact(*checkpoint, builder);
}

//===----------------------------------------------------------------------===//
// Shards
//===----------------------------------------------------------------------===//

class Shards : public testing::Test {
protected:
  void SetUp() override {
    write("one.safetensors", {"a", "b"});
    write("two.safetensors", {"c"});
  }
  void write(const std::string &file, const std::vector<std::string> &names) {
    static const int8_t byte = 7;
    std::vector<TensorToWrite> list;
    for (const std::string &name : names)
      list.push_back({name, ScalarType::I8, {1}, &byte});
    ASSERT_FALSE(writeSafeTensors(directory.file(file), list));
  }
  std::string openWith(const std::string &map) {
    directory.write("model.safetensors.index.json",
                    "{\"weight_map\":{" + map + "}}");
    Result<SafeTensors> files = SafeTensors::openDirectory(directory.path());
    return files ? "read " + std::to_string(files->all().size())
                 : files.message();
  }
  TemporaryDirectory directory;
};

TEST_F(Shards, ReadsWhatTheIndexLists) {
  EXPECT_EQ(openWith("\"a\":\"one.safetensors\",\"b\":\"one.safetensors\","
                     "\"c\":\"two.safetensors\""),
            "read 3");
}

TEST_F(Shards, RefusesWhatDoesNotAgree) {
  const std::string one = "\"a\":\"one.safetensors\",\"b\":"
                          "\"one.safetensors\"";
  EXPECT_CONTAINS(openWith(one + ",\"c\":\"three.safetensors\""),
                  "three.safetensors");
  EXPECT_CONTAINS(openWith(one + ",\"d\":\"two.safetensors\""),
                  "tensor d is not in two.safetensors");
  EXPECT_CONTAINS(openWith("\"a\":\"one.safetensors\""),
                  "tensor b of one.safetensors is not listed");
  write("two.safetensors", {"c", "b"});
  EXPECT_CONTAINS(openWith(one + ",\"c\":\"two.safetensors\""),
                  "tensor b is in two.safetensors but listed for "
                  "one.safetensors");
  EXPECT_CONTAINS(openWith("\"a\":3"), "file of a");
}

TEST_F(Shards, StaysInTheDirectory) {
  for (const char *name : {"../x", "/etc/passwd", "..", "", "a/b"})
    EXPECT_CONTAINS(openWith("\"a\":\"" + std::string(name) + "\""),
                    "is not the name of a file");
}

TEST_F(Shards, NamesWhatIsMissing) {
  Result<SafeTensors> files = SafeTensors::openDirectory(directory.path());
  ASSERT_FALSE(files);
  EXPECT_CONTAINS(files.message(), "model.safetensors.index.json");
}

} // namespace
