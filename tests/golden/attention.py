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
    softcap: float = 0.0
    alibi: int = 0
    sinks: int = 0
    key_start: list = field(default_factory=list)
    query_start: list = field(default_factory=list)
    dropout: float = 0.0

    @staticmethod
    def parse(line):
        case = Case()
        for word in line.split():
            key, value = word.split("=")
            old = getattr(case, key)
            if isinstance(old, list):
                value = [int(n) for n in value.split(",")]
            elif key in ("scale", "softcap", "dropout"):
                value = float(np.float32(value))
            elif isinstance(old, int):
                value = int(value)
            setattr(case, key, value)
        return case

    def inputs(self):
        """query, key, value, mask or None, bias or None, sinks or None."""
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
        sinks = random.normal((self.Hq,)) if self.sinks else None
        return query, key, value, mask, bias, sinks


def start_of(starts, sequence):
    """Of the sequence, or for each entry of an array of sequences."""
    return np.array(starts)[sequence if len(starts) > 1 else 0] if starts else 0


def places(case, b):
    """Of sample b: whether a row and a key are of one sequence, and nothing of it padding, [Lq, Lk]; where rows stand for windows, chunks
    and slopes, and where for causal; where keys stand. The last three broadcast against the first."""
    i = np.arange(case.Lq)[:, None]
    j = np.arange(case.Lk)[None, :]
    if case.query_offsets:
        starts = np.array(case.query_offsets)
        key_starts = np.array(case.key_offsets or case.query_offsets)
        sequence = np.searchsorted(starts, i, side="right") - 1
        same = sequence == np.searchsorted(key_starts, j, side="right") - 1
        row, key = i - starts[sequence], j - key_starts[sequence]
        rows, keys = np.diff(starts)[sequence], np.diff(key_starts)[sequence]
    else:
        sequence = b
        rows = case.query_lengths[b] if case.query_lengths else case.Lq
        keys = case.key_lengths[b] if case.key_lengths else case.Lk
        row, key = i, j
        same = (i < rows) & (j < keys)
    first_key = start_of(case.key_start, sequence)

    def position(align):
        if case.query_start:
            return start_of(case.query_start, sequence) + row
        return first_key + row + (keys - rows if align == "bottom-right" else 0)

    return same, position(case.align or case.causal), position(case.causal), first_key + key


def visible(case, mask):
    """[B, Hq, Lq, Lk], true where a row sees a key: every mask but the additive one."""
    samples = []
    for b in range(case.B):
        seen, position, causal_position, key = places(case, b)
        if case.causal:
            seen = seen & (key <= causal_position)
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


def slopes(case):
    """[Hq], float32, as ALiBi gives them for a number of heads that is a power of two."""
    return (2.0 ** (-8 * np.arange(1, case.Hq + 1) / case.Hq)).astype(np.float32)


def slopes_times_distances(case):
    """[B, Hq, Lq, Lk]: what slopes take from the scores."""
    distances = np.zeros((case.B, 1, case.Lq, case.Lk))
    for b in range(case.B):
        _, position, _, key = places(case, b)
        distances[b, 0] = np.abs(position - key)
    return slopes(case).astype(np.float64)[:, None, None] * distances


def sinks_of_rows(case, sinks):
    """[B, Hq, Lq, 1]: a logit for each row; padding has none."""
    rows = sinks[None, :, None, None].expand(case.B, -1, case.Lq, -1)
    if not case.query_lengths:
        return rows
    padding = torch.arange(case.Lq) >= torch.tensor(case.query_lengths)[:, None]
    return rows.masked_fill(padding[:, None, :, None], -torch.inf)


def capped(case, scores):
    return case.softcap * torch.tanh(scores / case.softcap) if case.softcap else scores


def attend(case, query, key, value, mask, bias, sinks, single=False):
    """out, log-sum-exp and probabilities, in float64 unless `single`. PyTorch has neither chunks nor bottom-right alignment, so every
    structural mask becomes one boolean mask; rows that see nothing are zeros, which PyTorch leaves open. Caps and sinks are written out,
    for its fused function has neither."""
    kind = torch.float32 if single else torch.float64
    q, k, v = (torch.from_numpy(x).to(kind).transpose(1, 2) for x in (query, key, value))
    group = case.Hq // case.Hkv
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    added = torch.zeros(case.B, case.Hq, case.Lq, case.Lk, dtype=kind)
    if bias is not None:
        added = added + torch.from_numpy(bias).to(kind)
    if case.alibi:
        added = added - torch.from_numpy(slopes_times_distances(case)).to(kind)
    added = added.masked_fill(~torch.from_numpy(visible(case, mask)), -torch.inf)
    scale = case.D**-0.5 if case.scale is None else case.scale

    scores = capped(case, scale * (q @ k.transpose(2, 3))) + added
    logits = scores
    if sinks is not None:
        logits = torch.cat([scores, sinks_of_rows(case, torch.from_numpy(sinks).to(kind))], -1)
    blind = (scores == -torch.inf).all(-1, keepdim=True)
    probabilities = torch.softmax(logits, -1)[..., : case.Lk].masked_fill(blind, 0)
    if single or case.softcap or sinks is not None:  # the plain computation, not a fused kernel
        out = probabilities @ v
    else:
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added, scale=scale)
    out = out.masked_fill(blind, 0).transpose(1, 2)
    log_sum_exp = torch.logsumexp(logits, -1) if logits.shape[-1] else torch.full((case.B, case.Hq, case.Lq), -torch.inf)
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
