# -*- Python -*-

import os
import shutil

import lit.formats
from lit.llvm import llvm_config

config.name = "WNA16"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Consumer"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.wna16_binary_dir, "test")

tools_dir = os.path.join(config.wna16_binary_dir, "bin")
libs_dir = os.path.join(config.wna16_binary_dir, "lib")

# Tests call tools by name: ours, then FileCheck and the like, then the system's.
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)
llvm_config.with_environment("PATH", tools_dir, append_path=True)
# ccache keeps its cache below HOME.
llvm_config.with_system_environment(["HOME", "CCACHE_DIR", "CI"])

config.substitutions += [
    ("%wna16-opt", os.path.join(tools_dir, "wna16-opt")),
    ("%wna16-lsp-server", os.path.join(tools_dir, "wna16-lsp-server")),
    ("%wna16_runtime", os.path.join(libs_dir, "libwna16_runtime" + config.shlib_ext)),
    ("%wna16_plugin", os.path.join(libs_dir, "WNA16Plugin" + config.shlib_ext)),
    ("%wna16_build_dir", config.wna16_binary_dir),
    ("%mlir_lib_dir", config.mlir_lib_dir),
    ("%mlir_cmake_dir", config.mlir_cmake_dir),
    ("%inputs", os.path.join(config.test_source_root, "Inputs")),
    ("%cmake", config.cmake),
    ("%cxx", config.cxx_compiler),
    # The bare name last: the others begin with it.
    (r"%wna16\b", os.path.join(tools_dir, "wna16")),
]

# Stock mlir-opt loads the plugin.
if shutil.which("mlir-opt-22", path=config.environment["PATH"]):
    config.available_features.add("stock-mlir-opt")

if os.path.exists("/dev/nvidiactl"):
    config.available_features.add("cuda-device")

# Sets of instructions that kernels are written for, by a flag that each adds.
if os.path.exists("/proc/cpuinfo"):
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next((line.split() for line in cpuinfo
                      if line.startswith("flags")), [])
    for isa, flag in (("avx2", "avx2"), ("avx512", "avx512_vnni"),
                      ("amx", "amx_int8")):
        if flag in flags:
            config.available_features.add(isa)

# Checkpoints and golden files that are too big for the repository.
test_data = os.environ.get("WNA16_TEST_DATA", "")
if os.path.isdir(test_data):
    config.available_features.add("test-data")
    config.environment["WNA16_TEST_DATA"] = test_data
    config.substitutions.append(("%test_data", test_data))
