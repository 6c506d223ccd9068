"""The options of the operator headlight::attention, and of its way back.

They are those of headlight.attention(). Numbers that a program may compute are tensors, so that a compiled one need not
look at them: seed [], key_lengths [B], query_start and key_start [1] or [B], query_offsets and key_offsets [n + 1]. True
in mask means that a key is seen; mask and bias are broadcast to [B, Hq, Lq, Lk]. left and right are the window's, -1
unbounded. softcap, chunk and dropout are off at 0, causal at "".

padding [B, Lk] of bool, True where a key is seen, and packed [B, L], the number of the sequence that each row and key
belongs to, become lengths and offsets, or else a mask, as the operator runs: a compiled program knows no numbers. Beside
packed query_start may be [B, L], where each row and its key stand. query_offsets of more than one sample count the rows
of all of them one after another: so the engine takes them, as one long sample.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, get_type_hints

import torch

Tensor: TypeAlias = torch.Tensor


class Options(NamedTuple):
    """The options of both operators, in their order, tensors before numbers: their schemas are made of it."""

    mask: Tensor | None = None
    bias: Tensor | None = None
    sinks: Tensor | None = None
    seed: Tensor | None = None
    key_lengths: Tensor | None = None
    query_offsets: Tensor | None = None
    key_offsets: Tensor | None = None
    query_start: Tensor | None = None
    key_start: Tensor | None = None
    padding: Tensor | None = None
    packed: Tensor | None = None
    causal: str = ""
    left: int = -1
    right: int = -1
    chunk: int = 0
    scale: float | None = None
    softcap: float = 0.0
    dropout: float = 0.0


def schema() -> str:
    """The options as an operator's schema has them: "Tensor? mask=None, …, float dropout=0.0"."""
    words = {Tensor | None: "Tensor?", str: "str", int: "int", float: "float", float | None: "float?"}
    types = get_type_hints(Options)
    return ", ".join(f"{words[types[name]]} {name}={otherwise!r}" for name, otherwise in Options._field_defaults.items())


NO_OPTIONS = Options()
COUNT = len(Options._fields)
# So many tensors are before the numbers.
TENSORS = Options._fields.index("causal")
