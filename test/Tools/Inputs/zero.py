"""zero.py FILE TENSOR: fills a tensor of a safetensors file with zeros."""

import json
import struct
import sys

with open(sys.argv[1], "r+b") as file:
    size = struct.unpack("<Q", file.read(8))[0]
    begin, end = json.loads(file.read(size))[sys.argv[2]]["data_offsets"]
    file.seek(8 + size + begin)
    file.write(bytes(end - begin))
