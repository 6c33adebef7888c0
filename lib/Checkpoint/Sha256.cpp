//===- Sha256.cpp - SHA-256 -----------------------------------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checkpoint/Sha256.h"

#include <array>
#include <cmath>
#include <cstring>

namespace wna16 {

namespace {

uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

/// The constants are fractions of roots of the first primes.
struct Constants {
  std::array<uint32_t, 64> round;
  std::array<uint32_t, 8> start;

  Constants() {
    int found = 0;
    for (int n = 2; found < 64; ++n) {
      bool prime = true;
      for (int d = 2; d * d <= n; ++d)
        prime &= n % d != 0;
      if (!prime)
        continue;
      if (found < 8)
        start[size_t(found)] = fraction(std::sqrt((long double)(n)));
      round[size_t(found++)] = fraction(std::cbrt((long double)(n)));
    }
  }

private:
  static uint32_t fraction(long double x) {
    return uint32_t((x - std::floor(x)) * 4294967296.0L);
  }
};

void mix(std::array<uint32_t, 8> &state, const uint8_t *block,
         const Constants &constants) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 |
           uint32_t(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  std::array<uint32_t, 8> s = state;
  for (int i = 0; i < 64; ++i) {
    uint32_t e = s[4];
    uint32_t t1 = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                  ((e & s[5]) ^ (~e & s[6])) + constants.round[size_t(i)] +
                  w[i];
    uint32_t a = s[0];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                  ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < 8; ++i)
    state[i] += s[i];
}

} // namespace

std::string sha256(const void *data, int64_t bytes) {
  static const Constants constants;
  std::array<uint32_t, 8> state = constants.start;
  std::string message(static_cast<const char *>(data), size_t(bytes));
  message.push_back(char(0x80));
  while (message.size() % 64 != 56)
    message.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    message.push_back(char(uint64_t(bytes) * 8 >> shift));
  for (size_t i = 0; i < message.size(); i += 64)
    mix(state, reinterpret_cast<const uint8_t *>(message.data()) + i,
        constants);
  std::string text;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4)
      text.push_back("0123456789abcdef"[word >> shift & 15]);
  return text;
}

} // namespace wna16
