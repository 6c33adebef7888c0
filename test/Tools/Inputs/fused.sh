#!/usr/bin/env bash
# fused.sh WNA16 DIR STYLE...: makes checkpoints and runs them within limits. In
# bf16 two roundings, of activations and of the result, of up to 2^-9 each.
set -u
wna16=$1 dir=$2
shift 2
here=$(dirname "$0")
runs=0 failed=0
for style in "$@"; do
  model=$dir/$style
  python3 "$here/fused.py" "$style" "$model" || exit 1
  for backend in cpu emulation emulation_otf; do
    for limits in "--tolerance 3.9e-3" "--dtype f32 --tolerance 1e-6"; do
      runs=$((runs + 1))
      # shellcheck disable=SC2086
      if ! "$wna16" run "$model" --all --backend $backend --poison $limits \
          --reference "$model/reference.safetensors"; then
        echo "FAIL: $style $backend $limits"
        failed=$((failed + 1))
      fi
    done
  done
done
echo "$runs runs, $failed failed"
