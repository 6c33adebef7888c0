#!/usr/bin/env bash
# acceptance.sh WNA16 DIR: runs all checkpoints below DIR within the limits.
set -u
wna16=$1
checkpoints=0 runs=0 failed=0
for dir in "$2"/*/; do
  checkpoints=$((checkpoints + 1))
  out=0.75lp
  "$wna16" check "$dir" | grep -q 'shared.* dense ' && out=0.9lp
  for backend in cpu emulation; do
    for limits in "--tolerance 0.75lp --out-tolerance $out" \
                  "--dtype f32 --tolerance 1e-6"; do
      runs=$((runs + 1))
      # shellcheck disable=SC2086
      if ! "$wna16" run "$dir" --all --reference "$dir/reference.safetensors" \
          --backend $backend --poison $limits; then
        echo "FAIL: $dir $backend $limits"
        failed=$((failed + 1))
      fi
    done
  done
done
echo "$checkpoints checkpoints, $runs runs, $failed failed"
