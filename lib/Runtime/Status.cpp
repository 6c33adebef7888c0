//===- Status.cpp - The calling thread's status ---------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include <cstdarg>
#include <cstdio>

namespace {

struct ThreadStatus {
  wna16_status code = WNA16_OK;
  char message[512] = "";
};
thread_local ThreadStatus current;

} // namespace

wna16_status wna16::setStatus(wna16_status code, const char *format, ...) {
  if (current.code != WNA16_OK)
    return current.code;
  current.code = code;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(current.message, sizeof current.message, format, arguments);
  va_end(arguments);
  return code;
}

uint32_t wna16_abi_version(void) { return WNA16_ABI_VERSION; }

wna16_status wna16_status_get(void) { return current.code; }

const char *wna16_status_message(void) { return current.message; }

void wna16_status_clear(void) {
  current.code = WNA16_OK;
  current.message[0] = '\0';
}
