# shellcheck shell=bash disable=SC2034
# Shared by the scripts: where things are, what must be installed, how to build.
# Source it; it changes into the repository.

set -u -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

llvm=/usr/lib/llvm-22
logs=build/logs
jobs=$(nproc)

say() { printf '== %s\n' "$*"; }
complain() { printf 'error: %s\n' "$*" >&2; }

# build_preset PRESET [TARGET...]: configures and builds, showing progress; the
# log is kept.
build_preset() {
  local preset=$1 targets=()
  shift
  [ $# -gt 0 ] && targets=(--target "$@")
  mkdir -p "$logs"
  say "configure and build preset $preset with $jobs jobs (log: $logs/build-$preset.log)"
  {
    cmake --preset "$preset" &&
      cmake --build "build/$preset" --parallel "$jobs" "${targets[@]}"
  } 2>&1 </dev/null | tee "$logs/build-$preset.log"
}
