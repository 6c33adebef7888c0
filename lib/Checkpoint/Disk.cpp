//===- Disk.cpp - Files that outlast a loss of power ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Disk.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

using namespace wna16;

Failure wna16::systemFailure(const std::string &what) {
  return fail(what + ": " + std::strerror(errno));
}

Failure wna16::syncToDisk(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return systemFailure("cannot open " + path);
  Failure failure;
  // Not every file system can do so for every kind of file.
  if (::fsync(fd) != 0 && errno != EINVAL)
    failure = systemFailure("cannot write " + path);
  ::close(fd);
  return failure;
}

Failure wna16::rename(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return systemFailure("cannot write " + to);
  // The file has its name; a directory that cannot be read is no failure.
  std::string parent = std::filesystem::path(to).parent_path();
  (void)syncToDisk(parent.empty() ? "." : parent);
  return ok();
}
