"""shard.py CASE DIR: a checkpoint with random weights, and inputs for it.
shard.py --sum WHOLE PART...: whether the parts' results add up to the whole's.

Cases are named after what they cover; sizes along K are small.
"""

import json
import math
import random
import struct
import sys

# tokens, experts, experts a token, hidden, intermediate
CASES = {
    "B01": dict(method="compressed-tensors", sizes=(5, 8, 2, 256, 640), group=128),
    "B02": dict(method="awq", sizes=(3, 4, 2, 256, 768), group=128, zeros=True),
    "B02-gptq8": dict(method="gptq", sizes=(3, 4, 2, 128, 768), group=128, zeros=True, bits=8),
    "B07": dict(method="gptq", sizes=(17, 2, 1, 256, 2688), group=32),
    "B08": dict(method="compressed-tensors", sizes=(1, 4, 2, 256, 544), group=32),
    "B10": dict(method="awq", sizes=(4, 4, 1, 1344, 64), group=32, zeros=True),
    "B11": dict(method="gptq", sizes=(4, 2, 1, 1024, 1024), group=128),
    "B13": dict(method="awq", sizes=(2, 2, 1, 256, 128), group=128, zeros=True),
    "B23": dict(method="gptq", sizes=(4, 4, 2, 256, 512), group=128, order=True),
    "B23-zeros": dict(
        method="gptq", sizes=(4, 4, 2, 128, 768), group=128, order=True, zeros=True
    ),
    "B25": dict(method="compressed-tensors", sizes=(5, 3, 2, 256, 128), group=64, order=True),
    "B28": dict(method="gptq", sizes=(3, 4, 2, 256, 128), group=128, bits=8),
    "B29": dict(method="gptq", sizes=(2, 2, 1, 256, 128), group=-1, bits=8, zeros=True),
    "B35": dict(
        method="awq", alias="awq_marlin", sizes=(1, 8, 8, 128, 1536), group=128, zeros=True
    ),
    "B44": dict(
        method="compressed-tensors", sizes=(2, 4, 4, 64, 2880), group=32, model="gpt_oss"
    ),
    "B56": dict(method="compressed-tensors", sizes=(2, 2, 1, 256, 128), group=32, zeros=True),
    "B58": dict(method="compressed-tensors", sizes=(2, 4, 2, 256, 2048), group=128),
    "B59": dict(method="awq", sizes=(2, 2, 1, 128, 256), group=128, zeros=True),
    "B59-72": dict(method="awq", sizes=(2, 2, 1, 128, 72), group=8, zeros=True),
    "dense": dict(method="none", sizes=(3, 4, 2, 64, 100), group=-1),
    "uneven": dict(method="gptq", sizes=(3, 4, 2, 64, 704), group=32, zeros=True),
    "shared": dict(method="gptq", sizes=(3, 4, 2, 64, 96), group=32, model="qwen2_moe"),
}


class Model:
    def __init__(self, case):
        self.case = case
        self.random = random.Random(json.dumps(case))
        self.tokens, self.count, self.top_k, self.hidden, self.inner = case["sizes"]
        self.bits, self.group = case.get("bits", 4), case["group"]
        self.name = case.get("model", "qwen3_moe")
        self.block = "model.layers.0.mlp."
        self.tensors = {}

    def put(self, name, dtype, shape, payload):
        self.tensors[name] = (dtype, shape, payload)

    def words(self, name, *shape):
        self.put(name, "I32", shape, self.random.randbytes(4 * math.prod(shape)))

    def floats(self, name, dtype, scale, *shape):
        """Positive and negative numbers of up to `scale`; scales are positive."""
        count = math.prod(shape)
        low = 1 if dtype == "F16" else -31
        values = [scale * self.random.randint(low, 31) / 32 for _ in range(count)]
        if dtype == "BF16":
            payload = b"".join(struct.pack("<f", value)[2:] for value in values)
        else:
            payload = struct.pack(f"<{count}{'e' if dtype == 'F16' else 'f'}", *values)
        self.put(name, dtype, shape, payload)

    def linear(self, name, rows, columns, order):
        pack = 32 // self.bits
        groups = 1 if self.group < 0 else -(-columns // self.group)
        scale = 4 / 2**self.bits / math.sqrt(columns)
        if self.case["method"] == "none":
            return self.floats(name + ".weight", "BF16", 2 * scale, rows, columns)
        if self.case["method"] == "compressed-tensors":
            self.words(name + ".weight_packed", rows, -(-columns // pack))
            self.floats(name + ".weight_scale", "F16", scale, rows, groups)
            if self.case.get("zeros"):
                self.words(name + ".weight_zero_point", -(-rows // pack), groups)
            shape = struct.pack("<2q", rows, columns)
            self.put(name + ".weight_shape", "I64", (2,), shape)
        elif self.case["method"] == "awq":
            self.words(name + ".qweight", columns, rows // pack)
            self.words(name + ".qzeros", groups, rows // pack)
            self.floats(name + ".scales", "F16", scale, groups, rows)
        else:
            self.words(name + ".qweight", columns // pack, rows)
            self.words(name + ".qzeros", groups, rows // pack)
            self.floats(name + ".scales", "F16", scale, groups, rows)
        index = [k // self.group if self.group > 0 else 0 for k in range(columns)]
        if self.case.get("order"):
            random.Random(order).shuffle(index)
        leaf = {"gptq": ".g_idx", "compressed-tensors": ".weight_g_idx"}
        if self.case["method"] == "gptq" or self.case.get("order"):
            payload = struct.pack(f"<{columns}i", *index)
            self.put(name + leaf[self.case["method"]], "I32", (columns,), payload)

    def expert(self, base, order):
        sizes = (
            ("gate_proj", self.inner, self.hidden),
            ("up_proj", self.inner, self.hidden),
            ("down_proj", self.hidden, self.inner),
        )
        for leaf, rows, columns in sizes:
            # Gate and up share their order.
            self.linear(base + leaf, rows, columns, 2 * order + (leaf == "down_proj"))
            if self.name == "gpt_oss":
                self.floats(base + leaf + ".bias", "BF16", 1, rows)

    def config(self):
        case = self.case
        config = dict(
            model_type=self.name,
            hidden_size=self.hidden,
            moe_intermediate_size=self.inner,
            num_experts=self.count,
            num_experts_per_tok=self.top_k,
            num_hidden_layers=1,
            hidden_act="silu",
            norm_topk_prob=True,
            torch_dtype="bfloat16",
        )
        if self.name == "gpt_oss":
            config["swiglu_limit"] = 7.0
        if self.name == "qwen2_moe":
            config["shared_expert_intermediate_size"] = self.inner
        if case["method"] == "none":
            return config
        quantization = dict(
            quant_method=case.get("alias", case["method"]),
            bits=self.bits,
            group_size=self.group,
        )
        if case["method"] == "gptq":
            quantization.update(
                sym=not case.get("zeros"),
                desc_act=bool(case.get("order")),
                checkpoint_format="gptq",
            )
        elif case["method"] == "awq":
            quantization.update(version="gemm", zero_point=True)
        else:
            weights = dict(
                num_bits=self.bits,
                type="int",
                symmetric=not case.get("zeros"),
                strategy="group",
                group_size=self.group,
                actorder="group" if case.get("order") else None,
            )
            quantization = dict(
                quant_method="compressed-tensors",
                format="pack-quantized",
                ignore=["re:.*router$", "re:.*mlp.gate$"],
                config_groups=dict(group_0=dict(targets=["Linear"], weights=weights)),
            )
        return dict(config, quantization_config=quantization)

    def build(self):
        router = "router" if self.name == "gpt_oss" else "gate"
        self.floats(self.block + router + ".weight", "BF16", 1, self.count, self.hidden)
        if self.name == "gpt_oss":
            self.floats(self.block + router + ".bias", "BF16", 1, self.count)
        for e in range(self.count):
            self.expert(f"{self.block}experts.{e}.", e)
        if self.name == "qwen2_moe":
            self.expert(self.block + "shared_expert.", self.count)
            self.floats(self.block + "shared_expert_gate.weight", "BF16", 1, 1, self.hidden)


def write(path, tensors):
    header, start = {}, 0
    for name, (dtype, shape, payload) in tensors.items():
        span = [start, start + len(payload)]
        header[name] = dict(dtype=dtype, shape=list(shape), data_offsets=span)
        start += len(payload)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, payload in tensors.values():
            file.write(payload)


def read(path, name):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        tensor = json.loads(file.read(size))[name]
        file.seek(8 + size + tensor["data_offsets"][0])
        count = math.prod(tensor["shape"])
        assert tensor["dtype"] == "F32", tensor
        return struct.unpack(f"<{count}f", file.read(4 * count))


def check_sum(whole, parts):
    for name in ("experts_out", "out"):
        wanted = read(whole, name)
        sums = [math.fsum(terms) for terms in zip(*(read(part, name) for part in parts))]
        norm = math.fsum(value * value for value in wanted)
        error = math.fsum((a - b) ** 2 for a, b in zip(wanted, sums))
        if not (norm > 0 and math.sqrt(error / norm) <= 1e-6):
            sys.exit(f"{name} of {len(parts)} ranks is off: {error} of {norm}")


def main():
    if sys.argv[1] == "--sum":
        return check_sum(sys.argv[2], sys.argv[3:])
    model = Model(CASES[sys.argv[1]])
    model.build()
    write(sys.argv[2] + "/model.safetensors", model.tensors)
    with open(sys.argv[2] + "/config.json", "w") as file:
        json.dump(model.config(), file)
    model.tensors = {}
    model.floats("x.M", "F32", 1, model.tokens, model.hidden)
    write(sys.argv[2] + "/input", model.tensors)


main()
