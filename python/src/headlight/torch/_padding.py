"""Padding and packed sequences, told by a mark for each key, as the engine takes them: lengths, offsets, or a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from headlight.torch._operator import Options


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


def with_padding(options: Options, seen: torch.Tensor) -> Options:
    """Those where `seen` [B, Lk] hides keys: as lengths, else as one row for all rows of a sample."""
    lengths = lengths_of(seen) if options.key_lengths is None and options.query_offsets is None else None
    if lengths is None:
        row = seen[:, None, None, :]
        return options._replace(mask=row if options.mask is None else options.mask & row)
    return options if bool((lengths == seen.shape[1]).all()) else options._replace(key_lengths=lengths)


def offsets_of(sequence_of: torch.Tensor) -> torch.Tensor:
    """Where each sequence begins, and the end: [0, 0, 1, 1, 1] -> [0, 2, 5]."""
    begins = torch.nonzero(sequence_of.diff()).flatten() + 1
    return torch.cat([begins.new_zeros(1), begins, begins.new_tensor([len(sequence_of)])])


def is_packed(sequence_of: torch.Tensor) -> bool:
    """Whether any row of [B, L] holds more than one sequence."""
    return bool((sequence_of != sequence_of[:, :1]).any())


def _begins_at_0(options: Options) -> bool:
    start = options.query_start
    return options.key_start is None and (start is None or not bool(start.any()))


def settled(options: Options) -> Options:
    """The same without padding and packed, whose numbers are looked at."""
    padding, packed = options.padding, options.packed
    options = options._replace(padding=None, packed=None)
    if packed is not None and is_packed(packed):
        if len(packed) == 1 and options.query_offsets is None and _begins_at_0(options):
            options = options._replace(query_offsets=offsets_of(packed[0]), query_start=None)
        else:
            same = (packed[:, :, None] == packed[:, None, :])[:, None]
            options = options._replace(mask=same if options.mask is None else options.mask & same)
    return options if padding is None else with_padding(options, padding)
