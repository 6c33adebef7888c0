"""models.py WNA16 DIR: imports a tiny layer of every architecture.

A row has what a release has: names, keys of config.json (sizes apart) and what
the routing has to be. Values do not matter, so all are zero.
"""

import json
import os
import re
import struct
import subprocess
import sys

EXPERTS, HIDDEN, INNER = 16, 32, 16
LLAMA = ("gate_proj", "up_proj", "down_proj")
MIXTRAL = ("w1", "w3", "w2")
BIAS = "gate.e_score_correction_bias"
DEEPSEEK = dict(n_group=8, topk_group=4, routed_scaling_factor=2.5,
                norm_topk_prob=True, scoring_func="sigmoid", topk_method="noaux_tc")
GROUPED = "sigmoid .* correction.* {groups = 8 .*renormalize, scaling = 2.5.*top_groups = 4"
SIGMOID = "sigmoid .* correction.* {renormalize"
PLAIN, RENORMALIZED = "softmax [^{]*->", "softmax .* {renormalize}"

# class: (model_type, prefix, block, experts, router, shared, other tensors,
#         keys, routing)
MODELS = {
    "Qwen2Moe": ("qwen2_moe", "model.", "mlp.", LLAMA, "gate", "shared_expert.",
                 {"shared_expert_gate.weight": (1, HIDDEN)},
                 dict(norm_topk_prob=False), PLAIN),
    "Qwen3Moe": ("qwen3_moe", "model.", "mlp.", LLAMA, "gate", "", {},
                 dict(norm_topk_prob=True, decoder_sparse_step=1), RENORMALIZED),
    "Qwen3Next": ("qwen3_next", "model.", "mlp.", LLAMA, "gate", "shared_expert.",
                  {"shared_expert_gate.weight": (1, HIDDEN)},
                  dict(norm_topk_prob=True, decoder_sparse_step=1), RENORMALIZED),
    "Qwen3_5Moe": ("qwen3_5_moe_text", "model.language_model.", "mlp.", LLAMA, "gate",
                   "shared_expert.", {"shared_expert_gate.weight": (1, HIDDEN)}, {},
                   RENORMALIZED),
    "Mixtral": ("mixtral", "model.", "block_sparse_moe.", MIXTRAL, "gate", "", {},
                {}, RENORMALIZED),
    "DeepseekV2": ("deepseek_v2", "model.", "mlp.", LLAMA, "gate", "shared_experts.", {},
                   dict(n_group=8, topk_group=3, routed_scaling_factor=16.0,
                        topk_method="group_limited_greedy", norm_topk_prob=False),
                   "softmax .* {groups = 8 .*scaling = 1.6.*top_groups = 3"),
    "DeepseekV3": ("deepseek_v3", "model.", "mlp.", LLAMA, "gate", "shared_experts.",
                   {BIAS: (EXPERTS,)}, DEEPSEEK, GROUPED),
    "KimiK25": ("kimi_k2", "language_model.model.", "mlp.", LLAMA, "gate",
                "shared_experts.", {BIAS: (EXPERTS,)},
                dict(routed_scaling_factor=2.827), SIGMOID),
    "KimiLinear": ("kimi_linear", "model.", "block_sparse_moe.", MIXTRAL, "gate",
                   "shared_experts.", {BIAS: (EXPERTS,)},
                   dict(num_expert_group=1, moe_renormalize=True,
                        moe_router_activation_func="sigmoid"), SIGMOID),
    "Glm4Moe": ("glm4_moe", "model.", "mlp.", LLAMA, "gate", "shared_experts.",
                {BIAS: (EXPERTS,)}, dict(DEEPSEEK, n_group=1, topk_group=1), SIGMOID),
    "Glm4MoeLite": ("glm4_moe_lite", "model.", "mlp.", LLAMA, "gate", "shared_experts.",
                    {BIAS: (EXPERTS,)}, dict(routed_scaling_factor=1.8), SIGMOID),
    "GlmMoeDsa": ("glm_moe_dsa", "model.", "mlp.", LLAMA, "gate", "shared_experts.",
                  {BIAS: (EXPERTS,)}, {}, SIGMOID),
    "GptOss": ("gpt_oss", "model.", "mlp.", LLAMA, "router", "",
               {"router.bias": (EXPERTS,)}, dict(swiglu_limit=7.0),
               "softmax .* {softmax_after_topk}"),
    "Phimoe": ("phimoe", "model.", "block_sparse_moe.", MIXTRAL, "gate", "", {},
               dict(router_jitter_noise=0.01), "sparsemixer .* {jitter = 1.0+e-02"),
    "Olmoe": ("olmoe", "model.", "mlp.", LLAMA, "gate", "", {},
              dict(norm_topk_prob=False), PLAIN),
    "Dbrx": ("dbrx", "transformer.", "ffn.", ("w1", "v1", "w2"), "router.layer", "", {},
             dict(ffn_config=dict(moe_normalize_expert_weights=1)), RENORMALIZED),
    "Jamba": ("jamba", "model.", "feed_forward.", LLAMA, "router", "", {},
              dict(expert_layer_period=2, expert_layer_offset=1), PLAIN),
    "MiniMaxM1": ("minimax_m1", "model.", "block_sparse_moe.", MIXTRAL, "gate", "", {},
                  {}, RENORMALIZED),
    "MiniMaxM2": ("minimax_m2", "model.", "block_sparse_moe.", MIXTRAL, "gate", "",
                  {"e_score_correction_bias": (EXPERTS,)},
                  dict(scoring_func="sigmoid"), SIGMOID),
    "Llama4": ("llama4_text", "language_model.model.", "feed_forward.", LLAMA, "router",
               "shared_expert.", {},
               dict(interleave_moe_layer_step=1, num_experts_per_tok=1),
               "sigmoid [^{]*->(.|\n)*{router_weight_on_input}"),
    "GraniteMoe": ("granitemoe", "model.", "block_sparse_moe.", LLAMA, "router.layer", "",
                   {}, {}, "softmax .* {softmax_after_topk}"),
    "Ernie4_5_Moe": ("ernie4_5_moe", "model.", "mlp.", LLAMA, "gate", "shared_experts.",
                     {"moe_statics.e_score_correction_bias": (1, EXPERTS)},
                     dict(moe_layer_start_index=1),
                     "softmax .* correction.* {renormalize}"),
    "HunYuanMoEV1": ("hunyuan_v1_moe", "model.", "mlp.", LLAMA, "gate.wg", "shared_mlp.",
                     {}, dict(norm_topk_prob=True), RENORMALIZED),
    "BailingMoe": ("bailing_moe", "model.", "mlp.", LLAMA, "gate", "shared_experts.", {},
                   dict(norm_topk_prob=True), RENORMALIZED),
    "NemotronH": ("nemotron_h", "backbone.", "mixer.", LLAMA[1:], "gate",
                  "shared_experts.", {BIAS: (EXPERTS,)},
                  dict(mlp_hidden_act="relu2", routed_scaling_factor=2.5),
                  SIGMOID + "(.|\n)*fused_experts relu2"),
    "Gemma4": ("gemma4_text", "model.language_model.", "", LLAMA, "router.proj", "mlp.",
               {"router.scale": (HIDDEN,), "router.per_expert_scale": (EXPERTS,),
                **{f"{side}_feedforward_layernorm{number}.weight": (HIDDEN,)
                   for side, number in (("pre", ""), ("pre", "_2"), ("post", ""),
                                        ("post", "_1"), ("post", "_2"))}},
               dict(hidden_activation="gelu_pytorch_tanh", hidden_act=None,
                    top_k_experts=2, num_experts_per_tok=None),
               "softmax .* expert_scale.* {renormalize}(.|\n)*fused_experts gelu_tanh"),
}


def write(path, shapes):
    header, size = {}, 0
    for name, shape in shapes.items():
        length = 2
        for extent in shape:
            length *= extent
        header[name] = dict(dtype="BF16", shape=shape, data_offsets=[size, size + length])
        size += length
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(size))


def expert(base, leaves):
    sizes = {leaf: (INNER, HIDDEN) for leaf in leaves[:-1]}
    sizes[leaves[-1]] = (HIDDEN, INNER)
    return {f"{base}{leaf}.weight": shape for leaf, shape in sizes.items()}


def make(directory, row):
    model_type, prefix, block, leaves, router, shared, others, keys, _ = row
    # The second layer: the first is dense in some models.
    base = f"{prefix}layers.1.{block}"
    inner = "experts.mlp." if model_type == "dbrx" else "experts."
    shapes = {f"{base}{router}.weight": (EXPERTS, HIDDEN)}
    for e in range(EXPERTS):
        shapes.update(expert(f"{base}{inner}{e}.", leaves))
    if shared:
        shapes.update(expert(base + shared, leaves))
    shapes.update({base + name: shape for name, shape in others.items()})
    os.makedirs(directory, exist_ok=True)
    write(os.path.join(directory, "model.safetensors"), shapes)
    config = dict(model_type=model_type, hidden_size=HIDDEN, num_experts=EXPERTS,
                  num_experts_per_tok=2, num_hidden_layers=2, hidden_act="silu",
                  torch_dtype="bfloat16")
    config.update(keys)
    config = {key: value for key, value in config.items() if value is not None}
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(config, file, indent=1)


def main():
    tool, root = sys.argv[1:]
    failed = 0
    for name, row in MODELS.items():
        directory = os.path.join(root, name)
        make(directory, row)
        run = subprocess.run([tool, "import", directory], capture_output=True, text=True)
        if run.returncode or not re.search("wna16.route " + row[-1], run.stdout):
            failed += 1
            print(f"FAIL: {name}: expected a route like {row[-1]}")
            print(run.stderr or "\n".join(
                line for line in run.stdout.splitlines() if "route" in line))
    print(f"{len(MODELS)} architectures, {failed} failed")


main()
