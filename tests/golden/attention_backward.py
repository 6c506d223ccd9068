#!/usr/bin/env python3
"""Gradients of attention by PyTorch's autograd in float64, on the cases of attention_backward_cases.txt.

Writes attention_backward.npy: for each case in order the gradients of query, key, value and, where there are some, bias and sinks, all
float64 in one row. Inputs and out_gradient come from each case's seed, as in tests/support/attention_case.cc and attention_gradients.h.
"""

import pathlib
import sys

import numpy as np
import torch

from attention import Case, capped, sinks_of_rows, slopes_times_distances, visible
from seeded import GOLDEN_RATIO, Random

HERE = pathlib.Path(__file__).parent
M64 = (1 << 64) - 1


def philox(counter, seed):
    """Philox4x32-10 (Salmon et al. 2011) of four arrays of words."""
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    low = np.uint64(0xFFFFFFFF)
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(keys[0]),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(keys[1]),
            a & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def dropout_factors(case):
    """[B, Hq, Lq, Lk]: 0 or 1 / (1 - p). Rows and keys count within their sequence."""
    if not case.dropout:
        return np.ones((1, 1, 1, 1))
    i, j = np.arange(case.Lq), np.arange(case.Lk)
    if case.query_offsets:
        starts, key_starts = np.array(case.query_offsets), np.array(case.key_offsets or case.query_offsets)
        # The last sequence that starts at or before; those before it may be empty.
        i = i - starts[np.searchsorted(starts, i, side="right") - 1]
        j = j - key_starts[np.searchsorted(key_starts, j, side="right") - 1]
    plane = np.arange(case.B * case.Hq).reshape(case.B, case.Hq, 1, 1)
    shape = (case.B, case.Hq, case.Lq, case.Lk)
    counter = [j[None, None, None, :] // 4, i[None, None, :, None], plane, np.array(case.seed + 7)]
    words = np.stack(philox([np.broadcast_to(word, shape) for word in counter], int(GOLDEN_RATIO) * (case.seed + 1) & M64))
    word = np.take_along_axis(words, np.broadcast_to(j % 4, shape)[None], 0)[0]
    p = float(np.float32(case.dropout))
    return (word >= int(p * 2**32)) / (1 - p)


def gradients(case):
    query, key, value, mask, bias, sinks = case.inputs()
    out_gradient = Random(case.seed + 0x5EED).normal((case.B, case.Lq, case.Hq, case.Dv))
    leaves = [torch.from_numpy(x).double().requires_grad_() for x in (query, key, value)]
    group = case.Hq // case.Hkv
    q = leaves[0].transpose(1, 2)
    k, v = (x.transpose(1, 2).repeat_interleave(group, 1) for x in leaves[1:])
    scores = capped(case, (case.D**-0.5 if case.scale is None else case.scale) * (q @ k.transpose(2, 3)))
    if bias is not None:
        leaves.append(torch.from_numpy(bias).double().requires_grad_())
        scores = scores + leaves[-1]
    if case.alibi:
        scores = scores - torch.from_numpy(slopes_times_distances(case))
    scores = scores.masked_fill(~torch.from_numpy(visible(case, mask)), -torch.inf)
    if sinks is not None:
        leaves.append(torch.from_numpy(sinks).double().requires_grad_())
        scores = torch.cat([scores, sinks_of_rows(case, leaves[-1])], -1)
    blind = (scores == -torch.inf).all(-1, keepdim=True)
    # A row that sees nothing is zeros, which autograd would call NaN.
    probabilities = (torch.softmax(torch.where(blind, 0.0, scores), -1) * ~blind)[..., : case.Lk]
    out = ((probabilities * torch.from_numpy(dropout_factors(case))) @ v).transpose(1, 2)
    return torch.autograd.grad(out, leaves, torch.from_numpy(out_gradient).double())


def main():
    lines = (HERE / "attention_backward_cases.txt").read_text().splitlines()
    numbers = []
    for line in lines:
        if line and not line.startswith("#"):
            numbers += [x.numpy().ravel() for x in gradients(Case.parse(line))]
    numbers = np.concatenate(numbers)
    np.save(HERE / "attention_backward.npy", numbers)
    print(f"attention_backward.npy: {numbers.nbytes} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
