#!/usr/bin/env python3
"""PyTorch's attention and transformer layers in float64, on the cases of layers_cases.txt.

Writes layers.npy: the output [B, Lq, width] of each case in order, float64 in one row. From the case's seed come, in this order: the
weights, by ascending name (matrices scaled by 1/sqrt(columns), norm weights about 1, everything else 0.1 · normal); the inputs query
[B, Lq, width], then key [B, Lk, key_width] and value [B, Lk, value_width], or the decoder's memory [B, Lk, width]; the mask [Lq, Lk].
"""

import pathlib
import sys

import numpy as np
import torch

from seeded import Random

HERE = pathlib.Path(__file__).parent
DEFAULTS = dict(layer="", seed=0, B=1, Lq=0, Lk=0, width=0, heads=1, key_width=0, value_width=0, feed_forward=0, norm="post",
                activation="relu", bias=1, causal=0, mask=0, key_lengths="", memory_lengths="")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh")}


def parse(line):
    case = dict(DEFAULTS)
    for word in line.split():
        key, value = word.split("=")
        case[key] = int(value) if isinstance(DEFAULTS[key], int) else value
    return case


def make_layer(case):
    bias = bool(case["bias"])
    if case["layer"] == "attention":
        return torch.nn.MultiheadAttention(case["width"], case["heads"], bias=bias, batch_first=True,
                                           kdim=case["key_width"] or None, vdim=case["value_width"] or None)
    kind = torch.nn.TransformerEncoderLayer if case["layer"] == "encoder" else torch.nn.TransformerDecoderLayer
    return kind(case["width"], case["heads"], case["feed_forward"], activation=ACTIVATIONS[case["activation"]],
                norm_first=case["norm"] == "pre", batch_first=True, bias=bias)


def fill(layer, random):
    for name, parameter in sorted(layer.named_parameters()):
        shape = tuple(parameter.shape)
        if len(shape) == 2:
            values = random.normal(shape, 1 / np.sqrt(shape[1]))
        else:
            values = random.normal(shape, 0.1)
            if "norm" in name and name.endswith("weight"):
                values = np.float32(1) + values
        parameter.data = torch.from_numpy(values).double()


def padding(lengths, length):
    """Lengths as PyTorch wants them: true is padding."""
    if not lengths:
        return None
    lengths = torch.tensor([int(n) for n in lengths.split(",")])
    return torch.arange(length)[None, :] >= lengths[:, None]


def run(case):
    random = Random(case["seed"])
    layer = make_layer(case).eval()
    fill(layer, random)
    tensor = lambda *shape: torch.from_numpy(random.normal(shape)).double()
    B, Lq, Lk, width = case["B"], case["Lq"], case["Lk"] or case["Lq"], case["width"]
    query = tensor(B, Lq, width)
    own = Lk if case["layer"] == "attention" else Lq
    if case["layer"] == "attention":
        key, value = tensor(B, Lk, case["key_width"] or width), tensor(B, Lk, case["value_width"] or width)
    elif case["layer"] == "decoder":
        memory = tensor(B, Lk, width)
    hidden = torch.zeros(Lq, own, dtype=torch.bool)  # true is hidden
    if case["mask"]:
        seen = (random.words(Lq * own) >> np.uint64(62) != 0).reshape(Lq, own)
        seen[:, 0] = True  # PyTorch has no answer for a row that sees nothing
        hidden |= torch.from_numpy(~seen)
    if case["causal"]:
        hidden |= torch.ones(Lq, own, dtype=torch.bool).triu(1)
    keys = padding(case["key_lengths"], own)
    if case["layer"] == "attention":
        return layer(query, key, value, attn_mask=hidden, key_padding_mask=keys, need_weights=False)[0]
    if case["layer"] == "encoder":
        return layer(query, src_mask=hidden, src_key_padding_mask=keys)
    return layer(query, memory, tgt_mask=hidden, tgt_key_padding_mask=keys,
                 memory_key_padding_mask=padding(case["memory_lengths"], Lk))


@torch.no_grad()
def main():
    torch.backends.mha.set_fastpath_enabled(False)
    lines = (HERE / "layers_cases.txt").read_text().splitlines()
    outputs = [run(parse(line)).contiguous().numpy().ravel() for line in lines if line and not line.startswith("#")]
    numbers = np.concatenate(outputs)
    np.save(HERE / "layers.npy", numbers)
    print(f"layers.npy: {numbers.nbytes} bytes, largest {np.abs(numbers).max():.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
