//===- PreparedFile.cpp - A file of tensors, filled step by step ----------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/PreparedFile.h"

#include "Checkpoint/SafeTensors.h"
#include "Checkpoint/Sha256.h"
#include "Disk.h"
#include "Json.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

using namespace wna16;

namespace {

constexpr int64_t kAlignment = 4096;
constexpr int64_t kLengthBytes = 8;
/// A journal begins with this and the digest of what it belongs to; one byte
/// for each step follows.
constexpr std::string_view kMagic = "WNA16JNL";
constexpr int64_t kDigestBytes = 64;

int64_t alignUp(int64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

//===----------------------------------------------------------------------===//
// Where everything lies
//===----------------------------------------------------------------------===//

struct FileLayout {
  std::string header;           ///< the length before it included
  std::vector<int64_t> offsets; ///< of the tensors, in the file
  int64_t end = 0;
  std::string digest;
  int64_t steps = 0;

  int64_t journal() const {
    return end + static_cast<int64_t>(kMagic.size()) + kDigestBytes;
  }
  int64_t total() const { return journal() + steps; }
};

Result<int64_t> bytesOf(const TensorToFill &tensor) {
  int64_t bytes = sizeOf(tensor.type);
  for (int64_t extent : tensor.shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return fail("tensor " + tensor.name + ": its size does not fit 63 bits");
  return bytes;
}

/// The length and the header, so long that the data begin at a multiple of the
/// alignment.
std::string frameHeader(const HeaderJson &json) {
  std::string text =
      json.dump(-1, ' ', false, HeaderJson::error_handler_t::replace);
  int64_t used = kLengthBytes + static_cast<int64_t>(text.size());
  text.append(static_cast<size_t>(alignUp(used) - used), ' ');
  std::string header;
  for (int64_t i = 0; i < kLengthBytes; ++i)
    header.push_back(static_cast<char>(uint64_t(text.size()) >> (8 * i)));
  return header + text;
}

/// Data may have no gaps, so that what fills them is a tensor too.
Result<FileLayout> layOut(const PreparedFile::Content &content) {
  FileLayout layout;
  HeaderJson json = HeaderJson::object();
  json["__metadata__"] = content.metadata;
  int64_t offset = 0;
  auto add = [&](const std::string &name, const char *type,
                 const std::vector<int64_t> &shape, int64_t bytes) {
    HeaderJson &entry = json[name];
    entry["dtype"] = type;
    entry["shape"] = shape;
    entry["data_offsets"] = {offset, offset + bytes};
    offset += bytes;
  };
  for (const TensorToFill &tensor : content.tensors) {
    Result<int64_t> bytes = bytesOf(tensor);
    if (!bytes)
      return bytes.takeFailure();
    if (json.contains(tensor.name))
      return fail("tensor " + tensor.name + " appears twice");
    if (*bytes > INT64_MAX / 2 - offset)
      return fail("tensor " + tensor.name + ": the file does not fit 63 bits");
    layout.offsets.push_back(offset);
    add(tensor.name, fileTypeName(tensor.type), tensor.shape, *bytes);
    if (int64_t gap = alignUp(offset) - offset)
      add("__padding__." + std::to_string(layout.offsets.size() - 1),
          fileTypeName(ScalarType::U8), {gap}, gap);
  }
  layout.header = frameHeader(json);
  int64_t start = static_cast<int64_t>(layout.header.size());
  for (int64_t &each : layout.offsets)
    each += start;
  layout.end = start + offset;
  layout.steps = content.steps;
  std::string identity = layout.header + std::to_string(content.steps);
  layout.digest =
      sha256(identity.data(), static_cast<int64_t>(identity.size()));
  return layout;
}

} // namespace

//===----------------------------------------------------------------------===//
// The temporary file
//===----------------------------------------------------------------------===//

class PreparedFile::State {
public:
  State(std::string file, FileLayout layout, int64_t syncBytes)
      : file(std::move(file)), partial(this->file + ".partial"),
        layout(std::move(layout)), syncBytes(syncBytes) {}

  ~State() {
    bool worthless = fd >= 0 && !finished && !anyDone();
    if (memory)
      munmap(memory, static_cast<size_t>(layout.total()));
    if (worthless)
      ::unlink(partial.c_str());
    if (fd >= 0)
      ::close(fd);
  }

  Failure open() {
    struct stat info;
    if (::stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return fail("cannot write " + file + ": it is no regular file");
    for (bool mine = false; !mine;)
      if (Failure failure = lock(mine))
        return failure;
    if (!continues())
      if (::ftruncate(fd, 0) != 0)
        return systemFailure("cannot write " + partial);
    if (Failure failure = reserve())
      return failure;
    void *address = mmap(nullptr, static_cast<size_t>(layout.total()),
                         PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
      return systemFailure("cannot map " + partial);
    memory = static_cast<uint8_t *>(address);
    std::memcpy(memory + layout.end, mark().data(), mark().size());
    return ok();
  }

  uint8_t *data(size_t tensor) const { return memory + layout.offsets[tensor]; }

  bool isDone(int64_t step) const {
    return memory[layout.journal() + step] != 0;
  }

  Failure markDone(int64_t step, int64_t bytes) {
    std::unique_lock<std::mutex> guard(mutex);
    pending.push_back(step);
    pendingBytes += bytes;
    if (pendingBytes < syncBytes || syncing)
      return ok();
    std::vector<int64_t> steps = std::move(pending);
    pending.clear();
    pendingBytes = 0;
    syncing = true;
    guard.unlock();
    Failure failure = sync();
    guard.lock();
    syncing = false;
    if (!failure)
      for (int64_t each : steps)
        memory[layout.journal() + each] = 1;
    return failure;
  }

  int64_t keep() {
    if (!sync())
      for (int64_t step : pending)
        memory[layout.journal() + step] = 1;
    const uint8_t *steps = memory + layout.journal();
    return std::count(steps, steps + layout.steps, 1);
  }

  Failure finish() {
    std::memcpy(memory, layout.header.data(), layout.header.size());
    if (Failure failure = sync())
      return failure;
    // Longer than its header says, the file was none until here.
    Failure failure = ::ftruncate(fd, layout.end) != 0 || ::fsync(fd) != 0
                          ? systemFailure("cannot write " + file)
                          : wna16::rename(partial, file);
    finished = !failure;
    if (failure)
      restoreJournal();
    return failure;
  }

private:
  /// What stands before the journal's steps.
  std::string mark() const { return std::string(kMagic) + layout.digest; }

  /// Puts the journal back behind what is complete, but has not got its name.
  void restoreJournal() {
    std::string journal =
        mark() + std::string(static_cast<size_t>(layout.steps), '\1');
    hasJournal = ::pwrite(fd, journal.data(), journal.size(), layout.end) ==
                     static_cast<ssize_t>(journal.size()) &&
                 ::ftruncate(fd, layout.total()) == 0;
  }

  bool anyDone() const {
    return memory &&
           (!hasJournal || std::memchr(memory + layout.journal(), 1,
                                       static_cast<size_t>(layout.steps)));
  }

  /// Opens the temporary file for this process alone. It is not `mine` when
  /// its owner put it into place in between.
  Failure lock(bool &mine) {
    if (fd >= 0)
      ::close(fd);
    fd = -1;
    // What another name stands for is not ours to overwrite.
    struct stat opened, named;
    if (::lstat(partial.c_str(), &named) == 0 && !S_ISREG(named.st_mode))
      return fail("cannot write " + partial + ": it is no regular file");
    fd = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                0666);
    if (fd < 0)
      return systemFailure("cannot write " + partial);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      Failure failure =
          errno == EWOULDBLOCK
              ? fail(partial + " is being written by another process")
              : systemFailure("cannot lock " + partial);
      ::close(fd);
      fd = -1;
      return failure;
    }
    mine = ::fstat(fd, &opened) == 0 && ::stat(partial.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
    return ok();
  }

  /// Whether the file was begun for the same content.
  bool continues() const {
    std::string expected = mark(), found(expected.size(), '\0');
    struct stat info;
    return ::fstat(fd, &info) == 0 && info.st_size == layout.total() &&
           ::pread(fd, found.data(), found.size(), layout.end) ==
               static_cast<ssize_t>(found.size()) &&
           found == expected;
  }

  /// Without this, a full disk would be a signal in the middle of a write.
  Failure reserve() {
    int code = posix_fallocate(fd, 0, layout.total());
    if (code == 0)
      return ok();
    std::string room;
    struct statvfs disk;
    if (code == ENOSPC && ::fstatvfs(fd, &disk) == 0)
      room = ", " + std::to_string(uint64_t(disk.f_bavail) * disk.f_frsize) +
             " are free";
    return fail("cannot write " + partial + ": " + std::strerror(code) + " (" +
                std::to_string(layout.total()) + " bytes are needed" + room +
                ")");
  }

  Failure sync() {
    if (msync(memory, static_cast<size_t>(layout.total()), MS_SYNC) != 0)
      return systemFailure("cannot write " + partial);
    return ok();
  }

  std::string file, partial;
  FileLayout layout;
  int64_t syncBytes;
  int fd = -1;
  uint8_t *memory = nullptr;
  bool finished = false;
  bool hasJournal = true; ///< it may be read through `memory`
  std::mutex mutex;
  std::vector<int64_t> pending;
  int64_t pendingBytes = 0;
  bool syncing = false;
};

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

PreparedFile::PreparedFile(std::unique_ptr<State> state)
    : state(std::move(state)) {}
PreparedFile::PreparedFile(PreparedFile &&other) noexcept = default;
PreparedFile &PreparedFile::operator=(PreparedFile &&) noexcept = default;
PreparedFile::~PreparedFile() = default;

Result<PreparedFile> PreparedFile::create(const std::string &file,
                                          const Content &content,
                                          int64_t syncBytes) {
  if (file.empty())
    return fail("expected the name of a file to write, got an empty one");
  Result<FileLayout> layout = layOut(content);
  if (!layout)
    return layout.takeFailure();
  auto state = std::make_unique<State>(file, std::move(*layout), syncBytes);
  if (Failure failure = state->open())
    return failure;
  return PreparedFile(std::move(state));
}

uint8_t *PreparedFile::data(size_t tensor) const { return state->data(tensor); }
bool PreparedFile::isDone(int64_t step) const { return state->isDone(step); }
Failure PreparedFile::markDone(int64_t step, int64_t bytes) {
  return state->markDone(step, bytes);
}
Failure PreparedFile::finish() { return state->finish(); }
int64_t PreparedFile::keep() { return state->keep(); }
