//===- TileEmulator.cpp - AMX on machines without it ----------------------===//
//
// Part of the WNA16 project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileEmulator.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <ucontext.h>
#include <unistd.h>

using namespace wna16test;

namespace {

/// What LDTILECFG reads.
struct Config {
  uint8_t palette, startRow, reserved[14];
  uint16_t rowBytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(Config) == 64);

struct State {
  Config config;
  uint8_t tiles[8][16][64];
  int64_t products;
};

/// An instruction: VEX with three bytes, an opcode and its operands.
struct Instruction {
  int prefix; ///< 0: none, 1: 66, 2: F3, 3: F2
  int opcode;
  int mod, reg, rm; ///< fields of ModRM, extended
  int other;        ///< the register in VEX.vvvv
  uint64_t address; ///< of the memory operand
  uint64_t stride;  ///< what a tile's rows are apart
  int64_t bytes;
};

} // namespace

static State state;

[[noreturn]] static void refuse(const char *message) {
  const char *parts[] = {"TileEmulator: ", message, "\n"};
  for (const char *part : parts)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0)
      break;
  std::abort();
}

static void check(bool holds, const char *message) {
  if (!holds)
    refuse(message);
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static uint64_t registerOf(const mcontext_t &context, int number) {
  constexpr int kRegisters[] = {
      REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(context.gregs[kRegisters[number]]);
}

/// The memory operand of ModRM at `at`; returns the byte after it.
static const uint8_t *readMemory(const mcontext_t &context, const uint8_t *at,
                                 int extendBase, int extendIndex,
                                 Instruction &instruction) {
  int base = *at++ & 7;
  if (base == 4) {
    const int sib = *at++, index = (sib >> 3 & 7) | extendIndex << 3;
    base = sib & 7;
    if (index != 4)
      instruction.stride = registerOf(context, index) << (sib >> 6);
  }
  check(instruction.mod != 0 || base != 5, "an address without a register");
  instruction.address = registerOf(context, base | extendBase << 3);
  if (instruction.mod == 1) {
    instruction.address += static_cast<int64_t>(static_cast<int8_t>(*at));
    at += 1;
  } else if (instruction.mod == 2) {
    int32_t displacement;
    std::memcpy(&displacement, at, 4);
    instruction.address += static_cast<int64_t>(displacement);
    at += 4;
  }
  return at;
}

static Instruction decode(const mcontext_t &context) {
  const auto *at = reinterpret_cast<const uint8_t *>(context.gregs[REG_RIP]);
  check(at[0] == 0xc4 && (at[1] & 31) == 2 && (at[2] & 0x84) == 0,
        "expected VEX.128.0F38.W0");
  Instruction instruction = {};
  instruction.prefix = at[2] & 3;
  instruction.other = ~at[2] >> 3 & 15;
  instruction.opcode = at[3];
  const int modRM = at[4];
  instruction.mod = modRM >> 6;
  instruction.reg = (modRM >> 3 & 7) | (~at[1] >> 7 & 1) << 3;
  instruction.rm = (modRM & 7) | (~at[1] >> 5 & 1) << 3;
  const uint8_t *end = instruction.mod == 3
                           ? at + 5
                           : readMemory(context, at + 4, ~at[1] >> 5 & 1,
                                        ~at[1] >> 6 & 1, instruction);
  instruction.bytes = end - at;
  return instruction;
}

//===----------------------------------------------------------------------===//
// Executing
//===----------------------------------------------------------------------===//

static void loadConfig(uint64_t address) {
  std::memset(&state, 0, offsetof(State, products));
  std::memcpy(&state.config, reinterpret_cast<const void *>(address),
              sizeof state.config);
  const Config &config = state.config;
  check(config.palette == 1 && config.startRow == 0,
        "expected palette 1 from row 0");
  for (uint8_t byte : config.reserved)
    check(byte == 0, "a reserved byte is not zero");
  for (int i = 0; i < 16; ++i)
    check(config.rows[i] <= 16 && config.rowBytes[i] <= 64 &&
              (i < 8 || (!config.rows[i] && !config.rowBytes[i])) &&
              !config.rows[i] == !config.rowBytes[i],
          "a tile is larger than 16 rows of 64 bytes");
}

static void checkTile(int tile) {
  check(tile < 8 && state.config.rows[tile], "the tile is not configured");
}

static void moveTile(const Instruction &instruction, bool isLoad) {
  checkTile(instruction.reg);
  auto &tile = state.tiles[instruction.reg];
  if (isLoad)
    std::memset(tile, 0, sizeof tile);
  const int64_t bytes = state.config.rowBytes[instruction.reg];
  for (int64_t row = 0; row < state.config.rows[instruction.reg]; ++row) {
    auto *memory = reinterpret_cast<uint8_t *>(instruction.address +
                                               row * instruction.stride);
    if (isLoad)
      std::memcpy(tile[row], memory, bytes);
    else
      std::memcpy(memory, tile[row], bytes);
  }
}

/// c += signed bytes of a times unsigned bytes of b.
static void multiply(int c, int a, int b) {
  for (int tile : {c, a, b})
    checkTile(tile);
  const Config &config = state.config;
  check(c != a && c != b && a != b, "a tile is used twice");
  check(config.rows[a] == config.rows[c] &&
            config.rowBytes[a] == 4 * config.rows[b] &&
            config.rowBytes[b] == config.rowBytes[c] &&
            config.rowBytes[c] % 4 == 0,
        "the tiles of a product do not fit each other");
  for (int m = 0; m < config.rows[c]; ++m)
    for (int n = 0; n < config.rowBytes[c]; n += 4) {
      uint32_t sum;
      std::memcpy(&sum, &state.tiles[c][m][n], 4);
      for (int k = 0; k < config.rowBytes[a]; ++k)
        sum += static_cast<uint32_t>(static_cast<int8_t>(state.tiles[a][m][k]) *
                                     state.tiles[b][k / 4][n + k % 4]);
      std::memcpy(&state.tiles[c][m][n], &sum, 4);
    }
  ++state.products;
}

static void execute(const Instruction &instruction) {
  const bool inMemory = instruction.mod != 3;
  const auto is = [&](int opcode, int prefix) {
    return instruction.opcode == opcode && instruction.prefix == prefix;
  };
  if (is(0x49, 0) && inMemory && instruction.reg == 0)
    return loadConfig(instruction.address);
  if (is(0x49, 0) && instruction.reg == 0 && instruction.rm == 0) {
    std::memset(&state, 0, offsetof(State, products));
    return;
  }
  check(state.config.palette == 1, "no configuration is loaded");
  if (is(0x49, 3) && !inMemory) {
    checkTile(instruction.reg);
    std::memset(state.tiles[instruction.reg], 0, sizeof state.tiles[0]);
    return;
  }
  if ((is(0x4b, 3) || is(0x4b, 2)) && inMemory)
    return moveTile(instruction, /*isLoad=*/is(0x4b, 3));
  if (is(0x5e, 2) && !inMemory)
    return multiply(instruction.reg, instruction.rm, instruction.other);
  refuse("an instruction that it does not know");
}

static void handle(int, siginfo_t *, void *data) {
  mcontext_t &context = static_cast<ucontext_t *>(data)->uc_mcontext;
  const Instruction instruction = decode(context);
  execute(instruction);
  context.gregs[REG_RIP] += instruction.bytes;
}

//===----------------------------------------------------------------------===//
// The emulator
//===----------------------------------------------------------------------===//

TileEmulator::TileEmulator() {
  state = {};
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &previous);
}

TileEmulator::~TileEmulator() { sigaction(SIGILL, &previous, nullptr); }

int64_t TileEmulator::products() const { return state.products; }

bool TileEmulator::isConfigured() const { return state.config.palette != 0; }
