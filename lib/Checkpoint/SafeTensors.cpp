//===- SafeTensors.cpp - Mapped safetensors files -------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/SafeTensors.h"

#include "Disk.h"
#include "Json.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace wna16;

namespace {

constexpr int64_t kMaxHeader = 100'000'000;
constexpr int64_t kMaxRank = 8;
constexpr int64_t kLengthBytes = 8;

/// Element types of the format. Those without a ScalarType are legal in a file
/// but not usable here.
struct FileType {
  const char *name;
  int64_t bits;
  std::optional<ScalarType> type;
};
const FileType kFileTypes[] = {
    {"F16", 16, ScalarType::F16}, {"BF16", 16, ScalarType::BF16},
    {"F32", 32, ScalarType::F32}, {"F64", 64, ScalarType::F64},
    {"I8", 8, ScalarType::I8},    {"U8", 8, ScalarType::U8},
    {"I16", 16, ScalarType::I16}, {"I32", 32, ScalarType::I32},
    {"I64", 64, ScalarType::I64}, {"BOOL", 8, ScalarType::Bool},
    {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},      {"C64", 64, std::nullopt},
};

const FileType *findFileType(const std::string &name) {
  for (const FileType &type : kFileTypes)
    if (name == type.name)
      return &type;
  return nullptr;
}

/// One entry of a header.
struct Entry {
  std::string name;
  const FileType *type = nullptr;
  std::vector<int64_t> shape;
  int64_t begin = 0;
  int64_t end = 0;
};

/// A non-negative integer of JSON.
bool readExtent(const HeaderJson &value, int64_t &out) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return false;
  out = value.get<int64_t>();
  return true;
}

Failure readShape(const HeaderJson &value, Entry &entry,
                  const std::string &where) {
  if (!value.is_array() || static_cast<int64_t>(value.size()) > kMaxRank)
    return fail(where + ": expected shape to be a list of at most " +
                std::to_string(kMaxRank) + " extents");
  for (const HeaderJson &extent : value) {
    entry.shape.push_back(0);
    if (!readExtent(extent, entry.shape.back()))
      return fail(where + ": expected extents that are integers from 0 to "
                          "2^63 - 1");
  }
  return ok();
}

Failure checkSize(const Entry &entry, int64_t dataBytes,
                  const std::string &where) {
  if (entry.begin > entry.end || entry.end > dataBytes)
    return fail(where +
                ": expected 0 <= begin <= end <= " + std::to_string(dataBytes) +
                ", got [" + std::to_string(entry.begin) + ", " +
                std::to_string(entry.end) + ")");
  int64_t bits = entry.type->bits;
  for (int64_t extent : entry.shape)
    if (__builtin_mul_overflow(bits, extent, &bits))
      return fail(where + ": its size does not fit 63 bits");
  if (bits % 8 != 0 || bits / 8 != entry.end - entry.begin)
    return fail(where + ": shape and dtype ask for " +
                std::to_string((bits + 7) / 8) + " bytes, the offsets span " +
                std::to_string(entry.end - entry.begin));
  return ok();
}

Failure readEntry(const HeaderJson &value, int64_t dataBytes, Entry &entry,
                  const std::string &file) {
  std::string where = file + ": tensor " + entry.name;
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    return fail(where + ": expected dtype, shape and data_offsets");
  const HeaderJson &dtype = value["dtype"];
  if (!dtype.is_string())
    return fail(where + ": expected dtype to be a string");
  entry.type = findFileType(dtype.get_ref<const std::string &>());
  if (!entry.type)
    return fail(where + ": unknown dtype \"" +
                dtype.get_ref<const std::string &>() + "\"");
  if (Failure failure = readShape(value["shape"], entry, where))
    return failure;
  const HeaderJson &offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 ||
      !readExtent(offsets[0], entry.begin) ||
      !readExtent(offsets[1], entry.end))
    return fail(where + ": expected data_offsets to be two integers");
  return checkSize(entry, dataBytes, where);
}

/// The data must be covered exactly once.
Failure checkCoverage(std::vector<Entry> &entries, int64_t dataBytes,
                      const std::string &file) {
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::make_pair(a.begin, a.end) < std::make_pair(b.begin, b.end);
  });
  int64_t covered = 0;
  for (const Entry &entry : entries) {
    if (entry.begin != covered)
      return fail(file + ": tensor " + entry.name + " begins at " +
                  std::to_string(entry.begin) + ", which " +
                  (entry.begin < covered ? "overlaps the tensor before it, "
                                         : "leaves a gap after the tensor "
                                           "before it, ") +
                  "ending at " + std::to_string(covered));
    covered = entry.end;
  }
  if (covered != dataBytes)
    return fail(file + ": " + std::to_string(dataBytes) +
                " bytes of data, but the tensors end at " +
                std::to_string(covered));
  return ok();
}

Failure readMetadata(const HeaderJson &value,
                     std::map<std::string, std::string> &out,
                     const std::string &file) {
  if (!value.is_object())
    return fail(file + ": expected __metadata__ to be an object");
  for (const auto &[key, text] : value.items()) {
    if (!text.is_string())
      return fail(file + ": expected __metadata__." + key + " to be a string");
    out.emplace(key, text.get<std::string>());
  }
  return ok();
}

} // namespace

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

struct SafeTensors::Mapping {
  std::string name;
  const uint8_t *data = nullptr;
  int64_t bytes = 0;
  std::string_view header;

  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping() {
    if (data)
      munmap(const_cast<uint8_t *>(data), static_cast<size_t>(bytes));
    if (fd >= 0)
      ::close(fd);
  }

  Failure map(const std::string &file) {
    name = file.substr(file.rfind('/') + 1); // npos + 1 is 0
    // A pipe without a writer must not block.
    fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
      return fail("cannot open " + file + ": " + std::strerror(errno));
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
      return fail(file + " is not a regular file");
    if (info.st_size < kLengthBytes)
      return fail(file + ": expected at least 8 bytes, got " +
                  std::to_string(info.st_size));
    void *address = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ,
                         MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED)
      return fail("cannot map " + file + ": " + std::strerror(errno));
    data = static_cast<const uint8_t *>(address);
    bytes = info.st_size;
    return ok();
  }

  /// Whether the file still has all that is mapped.
  Failure check() const {
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < bytes)
      return fail("file " + name + " had " + std::to_string(bytes) +
                  " bytes when it was opened and has been cut since");
    return ok();
  }

private:
  int fd = -1;
};

namespace {

/// The JSON text at the start of a file.
Result<std::string_view> headerOf(const uint8_t *data, int64_t bytes,
                                  const std::string &file) {
  uint64_t length = 0;
  for (int64_t i = 0; i < kLengthBytes; ++i)
    length |= uint64_t(data[i]) << (8 * i);
  int64_t room = std::min(kMaxHeader, bytes - kLengthBytes);
  if (length > static_cast<uint64_t>(room))
    return fail(file + ": expected a header of at most " +
                std::to_string(room) + " bytes, got " + std::to_string(length));
  return std::string_view(reinterpret_cast<const char *>(data) + kLengthBytes,
                          length);
}

/// The tensors of a file whose data have so many bytes.
Result<std::vector<Entry>> readEntries(const HeaderJson &header,
                                       int64_t dataBytes,
                                       std::map<std::string, std::string> &meta,
                                       const std::string &file) {
  std::vector<Entry> entries;
  for (const auto &[key, value] : header.items()) {
    if (key == "__metadata__") {
      if (Failure failure = readMetadata(value, meta, file))
        return failure;
      continue;
    }
    entries.emplace_back();
    entries.back().name = key;
    if (Failure failure = readEntry(value, dataBytes, entries.back(), file))
      return failure;
  }
  if (Failure failure = checkCoverage(entries, dataBytes, file))
    return failure;
  return entries;
}

} // namespace

Failure SafeTensors::add(const std::string &file) {
  auto mapping = std::make_shared<Mapping>();
  if (Failure failure = mapping->map(file))
    return failure;
  Result<std::string_view> text = headerOf(mapping->data, mapping->bytes, file);
  if (!text)
    return text.takeFailure();
  mapping->header = *text;
  int64_t start = kLengthBytes + static_cast<int64_t>(text->size());
  Result<HeaderJson> header = parseHeader(*text, file);
  if (!header)
    return header.takeFailure();
  Result<std::vector<Entry>> entries =
      readEntries(*header, mapping->bytes - start, meta, file);
  if (!entries)
    return entries.takeFailure();
  for (Entry &entry : *entries) {
    if (tensors.count(entry.name) || unusable.count(entry.name))
      return fail(file + ": tensor " + entry.name +
                  " is in another file as well");
    if (entry.type->type)
      tensors[entry.name] = {*entry.type->type, std::move(entry.shape),
                             mapping->data + start + entry.begin,
                             entry.end - entry.begin};
    else
      unusable[entry.name] = entry.type->name;
  }
  mappings.push_back(std::move(mapping));
  return ok();
}

Result<SafeTensors> SafeTensors::open(const std::string &file) {
  SafeTensors result;
  if (Failure failure = result.add(file))
    return failure;
  return result;
}

namespace {

/// Reads weight_map: tensor to file. A file name must not leave the directory.
Result<std::map<std::string, std::string>> readIndex(const std::string &file) {
  Result<std::string> text = readTextFile(file, kMaxHeader);
  if (!text)
    return text.takeFailure();
  Result<HeaderJson> index = parseHeader(*text, file);
  if (!index)
    return index.takeFailure();
  auto found = index->find("weight_map");
  if (found == index->end() || !found->is_object())
    return fail(file + ": expected weight_map to be an object");
  std::map<std::string, std::string> result;
  for (const auto &[name, value] : found->items()) {
    if (!value.is_string())
      return fail(file + ": expected the file of " + name + " to be a string");
    std::string shard = value.get<std::string>();
    if (shard.empty() || shard == "." || shard == ".." ||
        shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      return fail(file + ": \"" + shard + "\" is not the name of a file");
    result.emplace(name, std::move(shard));
  }
  return result;
}

} // namespace

Failure SafeTensors::addShards(const std::string &directory,
                               const std::string &indexFile) {
  auto index = readIndex(indexFile);
  if (!index)
    return index.takeFailure();
  std::map<std::string, std::set<std::string>> shards;
  for (const auto &[name, shard] : *index)
    shards[shard].insert(name);
  for (const auto &[shard, names] : shards) {
    SafeTensors one;
    if (Failure failure = one.add(directory + "/" + shard))
      return fail(failure.message + " (listed in " + indexFile + ")");
    for (const std::string &name : names)
      if (!one.tensors.count(name) && !one.unusable.count(name))
        return fail(indexFile + ": tensor " + name + " is not in " + shard);
    if (Failure failure = merge(std::move(one), shard, *index))
      return fail(indexFile + ": " + failure.message);
  }
  return ok();
}

Failure SafeTensors::merge(SafeTensors shard, const std::string &name,
                           const std::map<std::string, std::string> &index) {
  auto check = [&](const std::string &tensor) -> Failure {
    auto listed = index.find(tensor);
    if (listed == index.end())
      return fail("tensor " + tensor + " of " + name + " is not listed");
    if (listed->second != name)
      return fail("tensor " + tensor + " is in " + name + " but listed for " +
                  listed->second);
    return ok();
  };
  for (const auto &[tensor, view] : shard.tensors)
    if (Failure failure = check(tensor))
      return failure;
  for (const auto &[tensor, type] : shard.unusable)
    if (Failure failure = check(tensor))
      return failure;
  tensors.merge(shard.tensors);
  unusable.merge(shard.unusable);
  meta.merge(shard.meta);
  mappings.insert(mappings.end(), shard.mappings.begin(), shard.mappings.end());
  return ok();
}

Result<SafeTensors> SafeTensors::openDirectory(const std::string &directory) {
  SafeTensors result;
  std::string index = directory + "/model.safetensors.index.json";
  if (::access(index.c_str(), F_OK) == 0) {
    if (Failure failure = result.addShards(directory, index))
      return failure;
    return result;
  }
  std::string single = directory + "/model.safetensors";
  if (::access(single.c_str(), F_OK) != 0)
    return fail("expected model.safetensors or model.safetensors.index.json "
                "in " +
                directory);
  if (Failure failure = result.add(single))
    return failure;
  return result;
}

std::vector<MappedFile> SafeTensors::files() const {
  std::vector<MappedFile> list;
  for (const auto &mapping : mappings)
    list.push_back({mapping->name, mapping->bytes, mapping->header});
  return list;
}

Failure SafeTensors::checkMapped(const TensorView &view) const {
  for (const auto &mapping : mappings)
    if (!std::less<>()(view.data, mapping->data) &&
        std::less<>()(view.data, mapping->data + mapping->bytes))
      return mapping->check();
  return ok(); // no bytes
}

const TensorView *SafeTensors::find(const std::string &name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

const char *wna16::fileTypeName(ScalarType type) {
  for (const FileType &entry : kFileTypes)
    if (entry.type == type)
      return entry.name;
  return "";
}

namespace {

Result<std::vector<int64_t>>
sizesOf(const std::vector<TensorToWrite> &tensors) {
  std::vector<int64_t> sizes;
  int64_t total = 0;
  for (const TensorToWrite &tensor : tensors) {
    int64_t bytes = sizeOf(tensor.type);
    for (int64_t extent : tensor.shape)
      if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
        return fail("tensor " + tensor.name +
                    ": its size does not fit 63 bits");
    if (__builtin_add_overflow(total, bytes, &total))
      return fail("tensor " + tensor.name + ": the file does not fit 63 bits");
    sizes.push_back(bytes);
  }
  return sizes;
}

Result<std::string>
headerOf(const std::vector<TensorToWrite> &tensors,
         const std::vector<int64_t> &sizes,
         const std::map<std::string, std::string> &metadata) {
  HeaderJson header = HeaderJson::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (header.contains(tensors[i].name))
      return fail("tensor " + tensors[i].name + " appears twice");
    HeaderJson &entry = header[tensors[i].name];
    entry["dtype"] = fileTypeName(tensors[i].type);
    entry["shape"] = tensors[i].shape;
    entry["data_offsets"] = {offset, offset + sizes[i]};
    offset += sizes[i];
  }
  std::string text =
      header.dump(-1, ' ', false, HeaderJson::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

Failure writeAll(const std::string &file, const std::string &header,
                 const std::vector<TensorToWrite> &tensors,
                 const std::vector<int64_t> &sizes) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  char length[kLengthBytes];
  for (int64_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<char>(uint64_t(header.size()) >> (8 * i));
  stream.write(length, kLengthBytes);
  stream.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (sizes[i] != 0)
      stream.write(static_cast<const char *>(tensors[i].data), sizes[i]);
  stream.close();
  if (!stream.fail())
    return ok();
  return fail("cannot write " + file + ": " +
              std::strerror(errno ? errno : EIO));
}

} // namespace

Failure
wna16::writeSafeTensors(const std::string &file,
                        const std::vector<TensorToWrite> &tensors,
                        const std::map<std::string, std::string> &metadata) {
  Result<std::vector<int64_t>> sizes = sizesOf(tensors);
  if (!sizes)
    return sizes.takeFailure();
  Result<std::string> header = headerOf(tensors, *sizes, metadata);
  if (!header)
    return header.takeFailure();
  // A rename would put a file in the place of a device such as /dev/null.
  if (struct ::stat status;
      ::stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return writeAll(file, *header, tensors, *sizes);
  std::string temporary = file + ".tmp" + std::to_string(::getpid());
  Failure failure = writeAll(temporary, *header, tensors, *sizes);
  if (!failure)
    failure = syncToDisk(temporary);
  if (!failure)
    failure = rename(temporary, file);
  if (failure)
    std::remove(temporary.c_str());
  return failure;
}
