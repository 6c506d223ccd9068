#!/usr/bin/env python3
"""Heads put together in other ways than by concatenation, in PyTorch and float64, on the cases of merges_cases.txt.

Writes merges.npy: for each case in order the output [B, L, width], then the gradient of Σ output · direction by the input x
[B, L, width], then by each parameter in the order of its name, all float64 in one row. From the case's seed come, in this order:
the parameters, by ascending name (matrices scaled by 1/sqrt(columns), everything else 0.1 · normal); x and direction.
"""

import pathlib
import sys

import numpy as np
import torch
from torch.nn.functional import linear, scaled_dot_product_attention, softmax

from seeded import Random

HERE = pathlib.Path(__file__).parent


def shapes(merge, width, heads):
    one_head = merge in ("average", "weighted", "weighted_by_input")
    found = {"in_proj_weight": (3 * width, width), "in_proj_bias": (3 * width,),
             "out_proj.weight": (width, width // heads if one_head else width), "out_proj.bias": (width,)}
    if merge == "weighted":
        found["merge_logits"] = (heads,)
    if merge == "weighted_by_input":
        found["merge_proj.weight"] = (heads, width)
    if merge.startswith("gated"):
        found["gate_proj.weight"] = (heads if merge == "gated_by_head" else width, width)
    return dict(sorted(found.items()))


def attend(p, x, heads, causal):
    """[B, L, H, D]"""
    B, L, width = x.shape
    parts = linear(x, p["in_proj_weight"], p["in_proj_bias"]).reshape(B, L, 3, heads, width // heads)
    query, key, value = parts.permute(2, 0, 3, 1, 4)
    return scaled_dot_product_attention(query, key, value, is_causal=causal).transpose(1, 2)


def put_together(merge, p, x, head):
    B, L, H, D = head.shape
    if merge == "average":
        return head.mean(2)
    if merge == "weighted":
        return (softmax(p["merge_logits"], 0)[:, None] * head).sum(2)
    if merge == "weighted_by_input":
        return (softmax(linear(x, p["merge_proj.weight"]), -1)[..., None] * head).sum(2)
    if merge == "gated_by_head":
        return (torch.sigmoid(linear(x, p["gate_proj.weight"]))[..., None] * head).reshape(B, L, H * D)
    if merge == "gated_by_element":
        return torch.sigmoid(linear(x, p["gate_proj.weight"])) * head.reshape(B, L, H * D)
    return head.reshape(B, L, H * D)


def run(line):
    case = dict(word.split("=") for word in line.split())
    merge, width, heads = case["merge"], int(case["width"]), int(case["heads"])
    random = Random(int(case["seed"]))
    parameters = {}
    for name, shape in shapes(merge, width, heads).items():
        values = random.normal(shape, 1 / np.sqrt(shape[1]) if len(shape) == 2 else 0.1)
        parameters[name] = torch.from_numpy(values).double().requires_grad_()
    shape = (int(case["B"]), int(case["L"]), width)
    x = torch.from_numpy(random.normal(shape)).double().requires_grad_()
    direction = torch.from_numpy(random.normal(shape)).double()
    head = attend(parameters, x, heads, bool(int(case.get("causal", 0))))
    out = linear(put_together(merge, parameters, x, head), parameters["out_proj.weight"], parameters["out_proj.bias"])
    (out * direction).sum().backward()
    gradients = [x.grad] + [parameter.grad for parameter in parameters.values()]
    return [tensor.detach().contiguous().numpy().ravel() for tensor in [out] + gradients]


def main():
    lines = (HERE / "merges_cases.txt").read_text().splitlines()
    numbers = np.concatenate([part for line in lines if line and not line.startswith("#") for part in run(line)])
    np.save(HERE / "merges.npy", numbers)
    print(f"merges.npy: {numbers.nbytes} bytes, largest {np.abs(numbers).max():.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
