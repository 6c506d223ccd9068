#!/usr/bin/env python3
"""Attention by PyTorch in float64, on the cases of attention_cases.txt.

Writes attention.npy: for each case in order, out [B, Lq, Hq, Dv] and then log-sum-exp [B, Hq, Lq], all float64 in one row.
The inputs come from each case's seed, here as in tests/support/attention_case.cc.
"""

import pathlib
import sys
from dataclasses import dataclass, field

import numpy as np
import torch

from seeded import Random

HERE = pathlib.Path(__file__).parent


@dataclass
class Case:
    """The options of one call; the names are those of the command line."""

    seed: int = 0
    B: int = 1
    Lq: int = 0
    Lk: int = 0
    Hq: int = 1
    Hkv: int = 1
    D: int = 1
    Dv: int = 1
    causal: str = ""
    align: str = ""
    window: list = field(default_factory=lambda: [-1, -1])
    chunk: int = 0
    query_lengths: list = field(default_factory=list)
    key_lengths: list = field(default_factory=list)
    query_offsets: list = field(default_factory=list)
    key_offsets: list = field(default_factory=list)
    mask: list = field(default_factory=list)
    mask_means: str = "attend"
    bias: list = field(default_factory=list)
    bias_has_infinities: int = 0
    scale: float = None
    dropout: float = 0.0

    @staticmethod
    def parse(line):
        case = Case()
        for word in line.split():
            key, value = word.split("=")
            old = getattr(case, key)
            if isinstance(old, list):
                value = [int(n) for n in value.split(",")]
            elif key in ("scale", "dropout"):
                value = float(np.float32(value))
            elif isinstance(old, int):
                value = int(value)
            setattr(case, key, value)
        return case

    def inputs(self):
        """query, key, value, mask or None, bias or None."""
        random = Random(self.seed)
        query = random.normal((self.B, self.Lq, self.Hq, self.D))
        key = random.normal((self.B, self.Lk, self.Hkv, self.D))
        value = random.normal((self.B, self.Lk, self.Hkv, self.Dv))
        mask = bias = None
        if self.mask:
            seen = random.words(int(np.prod(self.mask))) >> np.uint64(62) != 0
            mask = (seen == (self.mask_means == "attend")).reshape(self.mask)
        if self.bias:
            bias = random.normal(self.bias)
            if self.bias_has_infinities:
                bias[(random.words(bias.size) >> np.uint64(61) == 0).reshape(self.bias)] = -np.inf
        return query, key, value, mask, bias


def visible(case, mask):
    """[B, Hq, Lq, Lk], true where a row sees a key: every mask but the additive one."""
    i = np.arange(case.Lq)[:, None]
    j = np.arange(case.Lk)[None, :]
    samples = []
    for b in range(case.B):
        if case.query_offsets:
            starts = np.array(case.query_offsets)
            key_starts = np.array(case.key_offsets or case.query_offsets)
            sequence = np.searchsorted(starts, i, side="right") - 1
            same = sequence == np.searchsorted(key_starts, j, side="right") - 1
            row, key = i - starts[sequence], j - key_starts[sequence]
            rows, keys = np.diff(starts)[sequence], np.diff(key_starts)[sequence]
        else:
            rows = case.query_lengths[b] if case.query_lengths else case.Lq
            keys = case.key_lengths[b] if case.key_lengths else case.Lk
            row, key = i, j
            same = (i < rows) & (j < keys)
        bottom_right = row + (keys - rows)
        position = bottom_right if (case.align or case.causal) == "bottom-right" else row
        seen = same
        if case.causal:
            seen = seen & (key <= (bottom_right if case.causal == "bottom-right" else row))
        left, right = case.window
        if left >= 0:
            seen = seen & (key >= position - left)
        if right >= 0:
            seen = seen & (key <= position + right)
        if case.chunk:
            seen = seen & (key // case.chunk == position // case.chunk)
        samples.append(np.broadcast_to(seen, (case.Hq, case.Lq, case.Lk)))
    seen = np.stack(samples) if samples else np.zeros((0, case.Hq, case.Lq, case.Lk), bool)
    return seen if mask is None else seen & (mask == (case.mask_means == "attend"))


def attend(case, query, key, value, mask, bias, single=False):
    """out, log-sum-exp and probabilities, in float64 unless `single`. PyTorch has neither chunks nor bottom-right alignment, so every
    structural mask becomes one boolean mask; rows that see nothing are zeros, which PyTorch leaves open."""
    kind = torch.float32 if single else torch.float64
    q, k, v = (torch.from_numpy(x).to(kind).transpose(1, 2) for x in (query, key, value))
    group = case.Hq // case.Hkv
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    added = torch.zeros(case.B, case.Hq, case.Lq, case.Lk, dtype=kind)
    if bias is not None:
        added = added + torch.from_numpy(bias).to(kind)
    added = added.masked_fill(~torch.from_numpy(visible(case, mask)), -torch.inf)
    scale = case.D**-0.5 if case.scale is None else case.scale

    scores = scale * (q @ k.transpose(2, 3)) + added
    blind = (scores == -torch.inf).all(-1, keepdim=True)
    if single:  # the plain computation, not a fused kernel
        out = torch.softmax(scores, -1).masked_fill(blind, 0) @ v
    else:
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale)
    out = out.masked_fill(blind, 0).transpose(1, 2)
    log_sum_exp = torch.logsumexp(scores, -1) if case.Lk else torch.full((case.B, case.Hq, case.Lq), -torch.inf)
    probabilities = torch.softmax(scores, -1).masked_fill(blind, 0)
    return out.contiguous().numpy(), log_sum_exp.to(kind).numpy(), probabilities.numpy()


def main():
    lines = (HERE / "attention_cases.txt").read_text().splitlines()
    numbers = []
    for line in lines:
        if line and not line.startswith("#"):
            case = Case.parse(line)
            out, log_sum_exp, _ = attend(case, *case.inputs())
            numbers += [out.ravel(), log_sum_exp.ravel()]
    numbers = np.concatenate(numbers)
    np.save(HERE / "attention.npy", numbers)
    print(f"attention.npy: {numbers.nbytes} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
