#!/usr/bin/env bash
# shard.sh WNA16 DIR CASE:SIZES...: the results of all ranks add up to those of
# one that emulation computes from the whole, for each number of ranks.
set -u
wna16=$1 dir=$2
shift 2
here=$(dirname "$0")
sums=0 failed=0
for entry in "$@"; do
  case=${entry%%:*}
  model=$dir/$case
  mkdir -p "$model"
  python3 "$here/shard.py" "$case" "$model" || exit 1
  run=("$wna16" run "$model" --layer 0 --input "$model/input" --dtype f32 --poison)
  "${run[@]}" --backend emulation -o "$model/whole" >/dev/null || exit 1
  for size in ${entry#*:}; do
    parts=()
    for ((rank = 0; rank < size; ++rank)); do
      "${run[@]}" --backend cpu --tp "$rank/$size" -o "$model/part$rank" \
        >/dev/null || exit 1
      parts+=("$model/part$rank")
    done
    sums=$((sums + 1))
    if ! python3 "$here/shard.py" --sum "$model/whole" "${parts[@]}"; then
      echo "FAIL: $case at $size ranks"
      failed=$((failed + 1))
    fi
  done
done
echo "$sums sums, $failed failed"
