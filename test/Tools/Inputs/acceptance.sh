#!/usr/bin/env bash
# acceptance.sh WNA16 DIR: runs all checkpoints below DIR within the limits, on
# the CPU with the kernels of each instruction set that the machine has. Each
# layer has a row for 1, 7 and 33 tokens, which names the backend and a kernel of
# no greater set.
set -u -o pipefail
wna16=$1
checkpoints=0 runs=0 failed=0
isas=()
for isa in portable avx2 avx512 amx; do
  WNA16_ISA=$isa "$wna16" --version >/dev/null 2>&1 && isas+=("$isa")
done
echo "${#isas[@]} sets of instructions"
for dir in "$2"/*/; do
  checkpoints=$((checkpoints + 1))
  out=0.75lp
  "$wna16" check "$dir" | grep -q 'shared.* dense ' && out=0.9lp
  for on in "emulation ${isas[-1]}" "${isas[@]/#/cpu }"; do
    read -r backend isa <<<"$on"
    for limits in "--tolerance 0.75lp --out-tolerance $out" \
                  "--dtype f32 --tolerance 1e-6"; do
      runs=$((runs + 1))
      # shellcheck disable=SC2086
      if ! WNA16_ISA=$isa "$wna16" run "$dir" --all \
          --reference "$dir/reference.safetensors" \
          --backend "$backend" --poison $limits | tee /dev/stderr |
          awk -v backend="$backend" -v isa="$isa" '
               BEGIN { sets = "- portable avx2 avx512 amx" }
               $2 == 1 || $2 == 7 || $2 == 33 {
                 rows[$2]++
                 wrong += NF != 12 || $11 != backend || !index(sets, $12) ||
                          index(sets, $12) > index(sets, isa) ||
                          ($12 == "-") != (backend == "emulation")
               }
               END { exit !(!wrong && rows[1] && rows[1] == rows[7] && rows[7] == rows[33]) }'
      then
        echo "FAIL: $dir $on $limits"
        failed=$((failed + 1))
      fi
    done
  done
done
echo "$checkpoints checkpoints, $runs runs, $failed failed"
