"""bench.py OPTIONS TOKENS FLOPS_A_TOKEN ERROR < REPORT

Checks `wna16 bench --json`, whose options are OPTIONS as JSON. Whatever the speed
of the machine, its figures have to agree with one another.
"""

import json
import math
import sys

ROW = ["tokens", "time_us", "gb_per_s", "gflop_per_s", "floor_us",
       "ratio_to_floor", "error"]

options, tokens, flops, bound = sys.argv[1:]
report = json.load(sys.stdin)
assert sorted(report) == ["ceilings", "options", "rows"], report
assert report["options"] == json.loads(options), report["options"]
ceilings = report["ceilings"]
assert all(ceiling >= 0 for ceiling in ceilings.values()), ceilings
assert ceilings["read_gb_per_s"] > 0, ceilings
rows = report["rows"]
assert [row["tokens"] for row in rows] == [int(m) for m in tokens.split(",")]
for row in rows:
    assert all(math.isfinite(row[key]) and row[key] > 0 for key in ROW), row
    assert row["error"] <= float(bound), row
    done = row["tokens"] * int(flops)
    rate = 1e-3 * done / row["time_us"]
    assert math.isclose(row["gflop_per_s"], rate, rel_tol=0.02), row
    if ceilings["fma_gflop_per_s"]:
        least = 1e-3 * done / ceilings["fma_gflop_per_s"]
        assert row["floor_us"] >= 0.98 * least - 0.01, (row, ceilings)
