"""Unpacks checkpoints by the formulas of their formats and compares them.

usage: unpack.py A B           codes minus zero points, scales and groups agree
       unpack.py --dense A B   B holds A's values, rounded once
       unpack.py --same A B    every tensor is the same, byte for byte
"""

import array
import json
import os
import struct
import sys

AWQ = [0, 4, 1, 5, 2, 6, 3, 7]  # the field that holds a column


def tensors(folder):
    found = {}
    for file in sorted(os.listdir(folder)):
        if file.startswith("model") and file.endswith(".safetensors"):
            data = open(os.path.join(folder, file), "rb").read()
            size = struct.unpack("<Q", data[:8])[0]
            for name, entry in json.loads(data[8 : 8 + size]).items():
                if name != "__metadata__":
                    begin, end = (8 + size + o for o in entry["data_offsets"])
                    found[name] = (entry["dtype"], entry["shape"], data[begin:end])
    return found


def words(tensor):
    assert tensor[0] == "I32", tensor[0]
    out = array.array("I")
    out.frombytes(tensor[2])
    return out


def halves(tensor):
    assert tensor[0] in ("F16", "BF16"), tensor[0]
    out = array.array("H")
    out.frombytes(tensor[2])
    return out


class Module:
    """code[k][n] = Q - z, scale[group][n] as stored bits, group[k]."""


def configuration(folder):
    config = json.load(open(os.path.join(folder, "config.json")))
    quant = config["quantization_config"]
    if quant["quant_method"] != "compressed-tensors":
        return quant
    (group,) = quant["config_groups"].values()
    weights = group["weights"]
    return {
        "quant_method": "compressed-tensors",
        "bits": weights["num_bits"],
        "sym": weights["symmetric"],
        "group_size": weights["group_size"] if weights["strategy"] == "group" else -1,
    }


def unpack(files, module, quant):
    bits = quant["bits"]
    per, mask = 32 // bits, (1 << bits) - 1
    get = lambda suffix: files.get(f"{module}.{suffix}")
    out = Module()
    method = quant["quant_method"]
    transposed = method == "compressed-tensors"
    codes = get("weight_packed" if transposed else "qweight")
    scales = get("weight_scale" if transposed else "scales")
    w, s = words(codes), halves(scales)
    if transposed:
        (n, groups), row = scales[1], codes[1][1]
        k = struct.unpack("<2q", get("weight_shape")[2])[1]
        q = [[w[c * row + i // per] >> bits * (i % per) & mask for c in range(n)] for i in range(k)]
        out.scale = [[s[c * groups + g] for c in range(n)] for g in range(groups)]
    else:
        groups, n = scales[1]
        out.scale = [list(s[g * n : (g + 1) * n]) for g in range(groups)]
        if method == "gptq":
            k = codes[1][0] * per
            q = [[w[i // per * n + c] >> bits * (i % per) & mask for c in range(n)] for i in range(k)]
        else:
            k, row = codes[1]
            q = [[w[i * row + c // 8] >> 4 * AWQ[c % 8] & 15 for c in range(n)] for i in range(k)]
    size = quant["group_size"] if quant["group_size"] > 0 else k
    index = get("weight_g_idx" if transposed else "g_idx")
    out.group = list(words(index)) if index else [i // size for i in range(k)]
    if quant["sym"] if method != "awq" else not quant["zero_point"]:
        zero = [[1 << bits - 1] * n] * groups
    elif transposed:
        z = words(get("weight_zero_point"))
        zero = [[z[c // per * groups + g] >> bits * (c % per) & mask for c in range(n)] for g in range(groups)]
    else:
        z, row = words(get("qzeros")), get("qzeros")[1][1]
        field = (lambda c: AWQ[c % 8]) if method == "awq" else (lambda c: c % per)
        zero = [[z[g * row + c // per] >> bits * field(c) & mask for c in range(n)] for g in range(groups)]
        if method == "gptq" and quant["checkpoint_format"] == "gptq":
            zero = [[v + 1 & mask for v in line] for line in zero]
    out.code = [[v - o for v, o in zip(line, zero[g])] for line, g in zip(q, out.group)]
    out.type = scales[0]
    return out


def modules(files):
    ends = (".qweight", ".weight_packed")
    return sorted(n[: -len(e)] for n in files for e in ends if n.endswith(e))


def value(bits, kind):
    if kind == "F16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def rounded(number, kind):
    """The bits of a number that f32 holds exactly, to nearest even."""
    if kind == "F16":
        return struct.unpack("<H", struct.pack("<e", number))[0]
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def compare(a, b):
    left, right = tensors(a), tensors(b)
    names = modules(left)
    if not names or names != modules(right):
        sys.exit(f"{a} has {len(names)} modules, {b} {len(modules(right))}")
    first, second = configuration(a), configuration(b)
    for name in names:
        x, y = unpack(left, name, first), unpack(right, name, second)
        for what in ("code", "scale", "group", "type"):
            if getattr(x, what) != getattr(y, what):
                sys.exit(f"{name}: {what} differs")
    return names


def dense(a, b):
    left, right, quant = tensors(a), tensors(b), configuration(a)
    for name in modules(left):
        x = unpack(left, name, quant)
        kind, (n, k), _ = right[name + ".weight"]
        got = halves(right[name + ".weight"])
        scale = [[value(v, x.type) for v in line] for line in x.scale]
        for i in range(k):
            for c in range(n):
                # -0 and 0 are one.
                want = rounded(x.code[i][c] * scale[x.group[i]][c], kind)
                if got[c * k + i] != want and (got[c * k + i] | want) != 0x8000:
                    sys.exit(f"{name}[{c}, {i}]: expected {want:#x}, got {got[c * k + i]:#x}")
    return modules(left)


def same(a, b):
    left, right = tensors(a), tensors(b)
    for name in sorted(left.keys() | right.keys()):
        if left.get(name) != right.get(name):
            sys.exit(f"{name} differs")
    return left


kinds = {"--dense": dense, "--same": same}
how = kinds.get(sys.argv[1], compare)
print(len(how(*sys.argv[-2:])), "agree")
