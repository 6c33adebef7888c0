"""Compares pictures of layouts with the formulas of the kernels.

usage: picture.py FOLDER
"""

import re
import sys
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
folder = sys.argv[1]


def texts(name):
    """The texts of a picture, in order: coordinates are joined from tspans."""
    root = ET.parse(f"{folder}/{name}.svg").getroot()
    return ["".join(t.itertext()) for t in root.iter(SVG + "text")]


def bands(name):
    """The numbers of each drawn band of the first map."""
    root = ET.parse(f"{folder}/{name}.svg").getroot()
    groups = [g for g in root.iter(SVG + "g") if g.get("id")]
    return [[int(t.text) for t in g.iter(SVG + "text")] for g in groups]


def words(name, count):
    found = [t for t in texts(name) if re.fullmatch(r"k\d+ n\d+", t)]
    return [tuple(int(p[1:]) for p in t.split()) for t in found[:count]]


def check(what, got, want):
    if got != want:
        sys.exit(f"{what}: expected {want}, got {got}")
    print(what, "ok")


# Marlin, thread t = 0: field p of word u.
check(
    "marlin-4 words",
    words("marlin-4", 32),
    [(8 * (p & 1) + (p >> 2), 16 * u + 8 * (p >> 1 & 1)) for u in range(4) for p in range(8)],
)
# Its thread for (k, n); rows k and k + 8 lie in the same ones.
check(
    "marlin-4 map",
    bands("marlin-4"),
    [[4 * (n & 7) + (k >> 1 & 3) for n in range(64)] for k in (0, 2, 4, 6)],
)
check(
    "marlin-8 words",
    words("marlin-8", 16),
    [(8 * (p & 1) + (p >> 1), 16 * (w // 2) + 8 * (w & 1)) for w in range(4) for p in range(4)],
)
order = [0, 2, 4, 6, 1, 3, 5, 7]
check("awq-4 words", words("awq-4", 32), [(0, 8 * w + n) for w in range(4) for n in order])
check("gptq-4 words", words("gptq-4", 32), [(k, w) for w in range(4) for k in range(8)])
# The CPU's blocks: byte (k/4)*64 + (n/16)*32 + (n&7)*4 + (k&3), high half for
# n & 8, in vectors of 16 bytes.
check(
    "cpu_blocked-4 map",
    bands("cpu_blocked-4"),
    [[(k // 4 * 64 + n // 16 * 32 + (n & 7) * 4) // 16 for n in range(0, 32, 4)] for k in range(0, 128, 4)],
)
