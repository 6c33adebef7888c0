"""fused.py STYLE DIR: a small checkpoint in one of STYLES, and its reference.

The reference is computed in float64 from the values that the tensors stand for,
token by token, with nothing but this file.
"""

import json
import math
import os
import random
import struct
import sys

EXPERTS, TOP_K, GROUP, TOKENS = 4, 2, 32, (1, 5)

# hidden, intermediate: where 2 N = K or N = K, shapes do not tell axes apart.
STYLES = {
    "gpt_oss-float": dict(model="gpt_oss", sizes=(64, 32), turns=True, transposed=True),
    "gpt_oss-experts": dict(model="gpt_oss", sizes=(64, 32), bits=4, single=True),
    "gpt_oss-packed": dict(model="gpt_oss", sizes=(96, 32), bits=4, turns=True),
    "phimoe-packed": dict(model="phimoe", sizes=(64, 32), bits=4, single=True),
    "gemma4-packed": dict(model="gemma4_text", sizes=(64, 32), bits=4, single=True),
    "gemma4-float": dict(model="gemma4_text", sizes=(64, 40)),
    "llama4-float": dict(model="llama4_text", sizes=(64, 64), transposed=True),
    "qwen3_vl-float": dict(model="qwen3_vl_moe_text", sizes=(64, 40), transposed=True),
    "qwen3_5-float": dict(model="qwen3_5_moe_text", sizes=(64, 32)),
    "qwen3_5-packed4": dict(model="qwen3_5_moe_text", sizes=(64, 32), bits=4),
    "qwen3_5-packed8": dict(
        model="qwen3_5_moe_text", sizes=(64, 36), bits=8, zeros=True, nested=True
    ),
}
BLOCKS = {"llama4_text": "feed_forward", "phimoe": "block_sparse_moe"}
ROUTERS = {
    "gpt_oss": "router",
    "llama4_text": "router",
    "gemma4_text": "router.proj",
}
NORMS = {
    "router": "router.scale",
    "experts": "pre_feedforward_layernorm_2.weight",
    "experts_out": "post_feedforward_layernorm_2.weight",
    "shared": "pre_feedforward_layernorm.weight",
    "shared_out": "post_feedforward_layernorm_1.weight",
    "out": "post_feedforward_layernorm.weight",
}
LEAVES = {"phimoe": ("w1", "w3", "w2")}
LIMIT, ALPHA = 0.5, 1.702
JITTER, EPSILON = 0.25, 1e-3


def bf16(values):
    """Numbers that bf16 holds exactly."""
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def flat(nested):
    for item in nested:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


def shape_of(nested):
    return [len(nested)] + shape_of(nested[0]) if isinstance(nested, list) else []


ENCODERS = {
    "BF16": bf16,
    "F64": lambda values: struct.pack(f"<{len(values)}d", *values),
    "I32": lambda values: struct.pack(f"<{len(values)}I", *values),
    "I64": lambda values: struct.pack(f"<{len(values)}q", *values),
}


def write(path, tensors):
    header, data = {}, b""
    for name, (dtype, nested) in tensors.items():
        payload = ENCODERS[dtype](list(flat(nested)))
        span = [len(data), len(data) + len(payload)]
        header[name] = dict(dtype=dtype, shape=shape_of(nested), data_offsets=span)
        data += payload
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def transpose(matrix):
    return [list(column) for column in zip(*matrix)]


def words(values, bits):
    """Packs a list into 32-bit words, lowest bits first."""
    fields = 32 // bits
    return [
        sum(value << (bits * i) for i, value in enumerate(values[at : at + fields]))
        for at in range(0, len(values), fields)
    ]


class Model:
    def __init__(self, style):
        self.style = style
        self.name = style["model"]
        self.hidden, self.inner = style["sizes"]
        self.random = random.Random(json.dumps(style))
        self.bits = style.get("bits", 0)
        self.block = "model.layers.0." + BLOCKS.get(self.name, "mlp") + "."
        if self.name == "gemma4_text":
            self.block = "model.language_model.layers.0."
        self.norms, self.scales = {}, [1.0] * EXPERTS
        self.tensors = {}

    def floats(self, *shape):
        if len(shape) > 1:
            return [self.floats(*shape[1:]) for _ in range(shape[0])]
        return [self.random.randint(-31, 31) / 128 for _ in range(shape[0])]

    def linear(self, rows, columns):
        """Values [out, in], and the parts of them that a packed file holds."""
        if not self.bits:
            return self.floats(rows, columns), None
        top = 2**self.bits
        groups = -(-columns // GROUP)
        codes = [[self.random.randrange(top) for _ in range(columns)] for _ in range(rows)]
        zeros = [[top // 2] * groups for _ in range(rows)]
        if self.style.get("zeros"):
            zeros = [[self.random.randrange(top) for _ in range(groups)] for _ in range(rows)]
        scales = [
            [self.random.randint(8, 15) / (64 * top) for _ in range(groups)]
            for _ in range(rows)
        ]
        values = [
            [
                (codes[n][k] - zeros[n][k // GROUP]) * scales[n][k // GROUP]
                for k in range(columns)
            ]
            for n in range(rows)
        ]
        return values, (codes, zeros, scales)

    def packed(self, parts):
        codes, zeros, scales = parts
        out = dict(
            packed=("I32", [words(row, self.bits) for row in codes]),
            scale=("BF16", scales),
        )
        if self.style.get("zeros"):
            columns = [words(column, self.bits) for column in transpose(zeros)]
            out["zero_point"] = ("I32", transpose(columns))
        return out

    def rows_in_file(self, gate, up):
        if not self.style.get("turns"):
            return gate + up
        return [row for pair in zip(gate, up) for row in pair]

    def experts(self):
        """Lists of (gate, up, down, gate bias, up bias, down bias)."""
        biased = self.name == "gpt_oss"
        layers, files = [], []
        for _ in range(EXPERTS):
            linears = [
                self.linear(self.inner, self.hidden),
                self.linear(self.inner, self.hidden),
                self.linear(self.hidden, self.inner),
            ]
            sizes = (self.inner, self.inner, self.hidden)
            biases = [self.floats(n) if biased else [0] * n for n in sizes]
            layers.append([values for values, _ in linears] + biases)
            files.append([parts for _, parts in linears])
        if self.style.get("single"):
            self.store_singly(layers, files)
        elif self.bits:
            self.store_packed(files)
        else:
            self.store_floats(layers)
        if biased and not self.style.get("single"):
            base = self.block + "experts."
            first = [self.rows_in_file(e[3], e[4]) for e in layers]
            self.tensors[base + "gate_up_proj_bias"] = ("BF16", first)
            self.tensors[base + "down_proj_bias"] = ("BF16", [e[5] for e in layers])
        return layers

    def store_floats(self, layers):
        turned = transpose if self.style.get("transposed") else lambda matrix: matrix
        first = [turned(self.rows_in_file(e[0], e[1])) for e in layers]
        self.tensors[self.block + "experts.gate_up_proj"] = ("BF16", first)
        second = [turned(e[2]) for e in layers]
        self.tensors[self.block + "experts.down_proj"] = ("BF16", second)

    def store_packed(self, files):
        mark = ".weight_" if self.style.get("nested") else "_"
        for leaf in ("gate_up_proj", "down_proj"):
            stacks = {}
            for gate, up, down in files:
                parts = down
                if leaf == "gate_up_proj":
                    parts = [self.rows_in_file(a, b) for a, b in zip(gate, up)]
                for part, (dtype, rows) in self.packed(parts).items():
                    stacks.setdefault(part, (dtype, []))[1].append(rows)
                extents = [EXPERTS, len(parts[0]), len(parts[0][0])]
            stacks["shape"] = ("I64", extents)
            for part, tensor in stacks.items():
                self.tensors[self.block + "experts." + leaf + mark + part] = tensor

    def store_singly(self, layers, files):
        for e, (layer, parts) in enumerate(zip(layers, files)):
            leaves = LEAVES.get(self.name, ("gate_proj", "up_proj", "down_proj"))
            for i, leaf in enumerate(leaves):
                base = f"{self.block}experts.{e}.{leaf}."
                for part, tensor in self.packed(parts[i]).items():
                    self.tensors[base + "weight_" + part] = tensor
                extents = [len(layer[i]), len(layer[i][0])]
                self.tensors[base + "weight_shape"] = ("I64", extents)
                if self.name == "gpt_oss":
                    self.tensors[base + "bias"] = ("BF16", layer[3 + i])

    def add_shared(self, module):
        """A dense expert beside the others."""
        shared = [
            self.floats(self.inner, self.hidden),
            self.floats(self.inner, self.hidden),
            self.floats(self.hidden, self.inner),
        ]
        for leaf, values in zip(("gate_proj", "up_proj", "down_proj"), shared):
            self.tensors[f"{self.block}{module}.{leaf}.weight"] = ("BF16", values)
        return shared + [[0] * self.inner, [0] * self.inner, [0] * self.hidden]

    def add_norms(self):
        for norm, tensor in NORMS.items():
            self.norms[norm] = [1 + value for value in self.floats(self.hidden)]
            self.tensors[self.block + tensor] = ("BF16", self.norms[norm])
        self.scales = [1 + value for value in self.floats(EXPERTS)]
        name = self.block + "router.per_expert_scale"
        self.tensors[name] = ("BF16", self.scales)

    def config(self):
        config = dict(
            model_type=self.name,
            hidden_size=self.hidden,
            moe_intermediate_size=self.inner,
            num_experts=EXPERTS,
            num_experts_per_tok=1 if self.name == "llama4_text" else TOP_K,
            num_hidden_layers=1,
            hidden_act="gelu_pytorch_tanh" if self.norms else "silu",
            rms_norm_eps=EPSILON,
            swiglu_limit=LIMIT if self.name == "gpt_oss" else None,
            norm_topk_prob=True,
            router_jitter_noise=JITTER if self.name == "phimoe" else None,
            torch_dtype="bfloat16",
        )
        if self.bits:
            weights = dict(
                num_bits=self.bits,
                type="int",
                symmetric=not self.style.get("zeros"),
                strategy="group",
                group_size=GROUP,
            )
            config["quantization_config"] = dict(
                quant_method="compressed-tensors",
                format="pack-quantized",
                ignore=["re:.*router", "re:.*mlp.gate$", "re:.*language_model.*mlp"],
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights)),
            )
        return config


def product(matrix, vector, bias=None):
    sums = [math.fsum(a * b for a, b in zip(row, vector)) for row in matrix]
    return [a + b for a, b in zip(sums, bias)] if bias else sums


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def normed(x, weight, scale=1):
    size = math.sqrt(math.fsum(value * value for value in x) / len(x) + EPSILON)
    return [value / size * w * scale for value, w in zip(x, weight)]


def gelu_tanh(value):
    inner = math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)
    return 0.5 * value * (1 + math.tanh(inner))


def activate(model, gate, up):
    if model.norms:
        return gelu_tanh(gate) * up
    if model.name != "gpt_oss":
        return gate * sigmoid(gate) * up
    gate, up = min(gate, LIMIT), max(-LIMIT, min(up, LIMIT))
    return (up + 1) * gate * sigmoid(ALPHA * gate)


def run_expert(model, expert, x):
    gate, up, down, gate_bias, up_bias, down_bias = expert
    gates = product(gate, x, gate_bias)
    ups = product(up, x, up_bias)
    inner = [activate(model, a, b) for a, b in zip(gates, ups)]
    return product(down, inner, down_bias)


def mix(logits, ids):
    """Softmaxes over what each choice left, as far as it is near."""
    weights, left = [], set(range(EXPERTS))
    for chosen in ids:
        top = logits[chosen]
        near = [
            logits[e]
            for e in left
            if top - logits[e] <= 2 * JITTER * max(abs(logits[e]), top)
        ]
        weights.append(1 / sum(math.exp(logit - top) for logit in near))
        left.remove(chosen)
    return weights


def route(model, logits):
    """Chosen experts and their weights."""
    top = 1 if model.name == "llama4_text" else TOP_K
    ids = sorted(range(EXPERTS), key=lambda e: -logits[e])[:top]
    if model.name == "llama4_text":
        return ids, [sigmoid(logits[e]) for e in ids]
    if model.name == "phimoe":
        return ids, mix(logits, ids)
    # A softmax over all, renormalised, is a softmax over the chosen ones.
    powers = [math.exp(logits[e]) for e in ids]
    weights = [power / sum(powers) for power in powers]
    return ids, [weight * model.scales[e] for e, weight in zip(ids, weights)]


def forward(model, experts, shared, router, bias, x):
    if model.norms:
        return forward_normed(model, experts, shared, router, x)
    logits = product(router, x, bias)
    ids, weights = route(model, logits)
    out = [0.0] * model.hidden
    for e, weight in zip(ids, weights):
        if model.name == "llama4_text":
            y = run_expert(model, experts[e], [weight * value for value in x])
        else:
            y = [weight * value for value in run_expert(model, experts[e], x)]
        out = [a + b for a, b in zip(out, y)]
    total = out
    if shared:
        y = run_expert(model, shared, x)
        total = [a + b for a, b in zip(out, y)]
    return dict(router_logits=logits, topk_ids=ids, topk_weights=weights,
                experts_out=out, out=total)


def forward_normed(model, experts, shared, router, x):
    """Gemma-4: what the layer adds to the hidden state after attention."""
    norms = model.norms
    logits = product(router, normed(x, norms["router"], model.hidden**-0.5))
    ids, weights = route(model, logits)
    inner = normed(x, norms["experts"])
    routed = [0.0] * model.hidden
    for e, weight in zip(ids, weights):
        y = run_expert(model, experts[e], inner)
        routed = [a + weight * b for a, b in zip(routed, y)]
    beside = run_expert(model, shared, normed(x, norms["shared"]))
    parts = zip(
        normed(routed, norms["experts_out"]), normed(beside, norms["shared_out"])
    )
    out = normed([a + b for a, b in parts], norms["out"])
    return dict(router_logits=logits, topk_ids=ids, topk_weights=weights,
                experts_out=routed, out=out)


def main():
    style, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    model = Model(STYLES[style])
    experts = model.experts()
    router = model.floats(EXPERTS, model.hidden)
    base = model.block + ROUTERS.get(model.name, "gate")
    model.tensors[base + ".weight"] = ("BF16", router)
    bias = model.floats(EXPERTS) if model.name == "gpt_oss" else None
    if bias:
        model.tensors[base + ".bias"] = ("BF16", bias)
    shared = None
    if model.name == "llama4_text":
        shared = model.add_shared("shared_expert")
    if model.name == "gemma4_text":
        shared = model.add_shared("mlp")
        model.add_norms()
    write(os.path.join(directory, "model.safetensors"), model.tensors)
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(model.config(), file, indent=1)

    reference = {}
    for tokens in TOKENS:
        x = [[4 * value for value in row] for row in model.floats(tokens, model.hidden)]
        reference[f"x.M{tokens}"] = ("BF16", x)
        rows = [forward(model, experts, shared, router, bias, row) for row in x]
        for name in rows[0]:
            dtype = "I64" if name == "topk_ids" else "F64"
            values = [row[name] for row in rows]
            reference[f"layers.0.{name}.M{tokens}"] = (dtype, values)
    write(os.path.join(directory, "reference.safetensors"), reference)


main()
