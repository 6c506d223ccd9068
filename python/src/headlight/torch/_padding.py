"""Padding and packed sequences, told by a mark for each key, as the engine takes them: lengths, offsets, or a mask."""

from __future__ import annotations

import torch

from headlight.torch._options import Options


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
    """Where each sequence of [B, L] begins, and the end, rows of all samples counted one after another:
    [[0, 0, 1, 1, 1], [0, 0, 0, 0, 1]] -> [0, 2, 5, 9, 10]."""
    batch, rows = sequence_of.shape
    begins = torch.ones_like(sequence_of, dtype=torch.bool)
    begins[:, 1:] = sequence_of.diff() != 0
    return torch.cat([torch.nonzero(begins.flatten()).flatten(), sequence_of.new_tensor([batch * rows], dtype=torch.int64)])


def is_packed(sequence_of: torch.Tensor) -> bool:
    """Whether any row of [B, L] holds more than one sequence."""
    return bool((sequence_of != sequence_of[:, :1]).any())


def _begins_at_0(options: Options) -> bool:
    start = options.query_start
    return options.key_start is None and (start is None or not bool(start.any()))


def settled(options: Options) -> Options:
    """The same without padding and packed, whose numbers are looked at.

    query_offsets then count the rows of all samples one after another, as the operator hands them to the engine.
    """
    padding, packed = options.padding, options.packed
    options = options._replace(padding=None, packed=None)
    if packed is not None:
        options = _with_sequences(options, packed, padding is None)
    return options if padding is None else with_padding(options, padding)


def _with_sequences(options: Options, packed: torch.Tensor, is_whole: bool) -> Options:
    """Those where packed [B, L] tells sequences apart: as offsets, else as a mask. is_whole: none has padding."""
    start = options.query_start
    places = start if start is not None and start.dim() == 2 else None  # of each row, and of its key
    if not is_packed(packed):
        return options if places is None else options._replace(query_start=places[:, 0], key_start=places[:, 0])
    alone = is_whole and options.mask is None and options.bias is None  # which do not lie as rows one after another
    if (len(packed) == 1 or alone) and options.query_offsets is None and (places is not None or _begins_at_0(options)):
        offsets = offsets_of(packed)
        starts = None if places is None else places.flatten()[offsets[:-1]]
        return options._replace(query_offsets=offsets, query_start=starts, key_start=starts)
    return with_mask_of_sequences(options, packed)


def with_mask_of_sequences(options: Options, packed: torch.Tensor) -> Options:
    """Those where a mask [B, 1, L, L] tells sequences apart."""
    same = packed[:, :, None] == packed[:, None, :]
    start = options.query_start
    if start is not None and start.dim() == 2:  # chunks begin elsewhere in each sequence
        chunk = start // options.chunk
        same = same & (chunk[:, :, None] == chunk[:, None, :])
        options = options._replace(chunk=0, query_start=None)
    same = same[:, None]
    return options._replace(packed=None, mask=same if options.mask is None else options.mask & same)
