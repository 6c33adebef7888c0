"""fill.py FILE TENSOR VALUE: makes all 32-bit integers of a tensor one value."""

import json
import struct
import sys

file, tensor, value = sys.argv[1:]
with open(file, "r+b") as data:
    (size,) = struct.unpack("<Q", data.read(8))
    begin, end = json.loads(data.read(size))[tensor]["data_offsets"]
    data.seek(8 + size + begin)
    data.write(struct.pack("<i", int(value)) * ((end - begin) // 4))
