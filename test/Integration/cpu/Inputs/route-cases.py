"""route-cases.py FILE (--mlir | --ids): cases of routing as a module that
prints the ids of each, or these ids as the file has them."""

import struct
import sys


def rows(path):
    for line in open(path):
        line = line.split("#")[0].strip()
        if line:
            yield [column.split() for column in line.split("|")]


def tensor(values):
    words = (struct.unpack("<I", struct.pack("<f", float(v)))[0] for v in values)
    return "[" + ", ".join(f"0x{word:08X}" for word in words) + "]"


def function(number, plan, logits, correction):
    kind, k, groups, kept = plan
    e = len(logits)
    scoring = "softmax" if kind == "after_topk" else kind
    flags = ", softmax_after_topk" if kind == "after_topk" else ""
    bias, operand = "", ""
    if correction:
        bias = f"%c = arith.constant dense<{tensor(correction)}> : tensor<{e}xf32>"
        operand = f"correction(%c : tensor<{e}xf32>)"
    return f"""
func.func @case_{number}(%l: tensor<1x{e}xf32>) {{
  {bias}
  %w = tensor.empty() : tensor<1x{k}xf32>
  %i = tensor.empty() : tensor<1x{k}xi32>
  %weights, %ids = wna16.route {scoring} logits(%l : tensor<1x{e}xf32>) {operand}
      outs(%w, %i : tensor<1x{k}xf32>, tensor<1x{k}xi32>)
      {{groups = {groups} : i64, top_groups = {kept} : i64{flags}}}
      -> tensor<1x{k}xf32>, tensor<1x{k}xi32>
  %0 = tensor.cast %ids : tensor<1x{k}xi32> to tensor<*xi32>
  call @printMemrefI32(%0) : (tensor<*xi32>) -> ()
  return
}}"""


def call(number, logits):
    shape = f"tensor<1x{len(logits)}xf32>"
    return f"""  %l{number} = arith.constant dense<[{tensor(logits)}]> : {shape}
  call @case_{number}(%l{number}) : ({shape}) -> ()"""


cases = list(rows(sys.argv[1]))
if sys.argv[2] == "--ids":
    for *_, ids in cases:
        print("[" + ",".join(ids) + "]")
else:
    print("func.func private @printMemrefI32(tensor<*xi32>)")
    for number, (plan, logits, correction, _) in enumerate(cases):
        print(function(number, plan, logits, correction))
    print("func.func @main() {")
    for number, (_, logits, _, _) in enumerate(cases):
        print(call(number, logits))
    print("  return\n}")
