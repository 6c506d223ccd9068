"""Padding masks that are lengths."""

from __future__ import annotations

import torch


def lengths_of(seen: torch.Tensor) -> torch.Tensor | None:
    """[B] of int64 where each row of `seen` [B, L] is True up to some length and False behind it; else None.

    None, too, in a program that is being compiled or traced, which cannot look at numbers, and under torch.vmap.
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None or seen.is_meta:
        return None
    lengths = seen.sum(1)
    as_lengths = torch.arange(seen.shape[1], device=seen.device) < lengths[:, None]
    try:
        return lengths if torch.equal(as_lengths, seen) else None
    except RuntimeError:  # of make_fx, FakeTensorMode and vmap, whose tensors have no numbers of their own
        return None
