"""What a mask function of Transformers says, read from what it is made of (transformers.masking_utils).

A compiled program cannot look into a function that it makes, so those that make them note beside it what it says.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from transformers import masking_utils

Tensor = torch.Tensor


class Rule(NamedTuple):
    """Which keys a row sees: those that all of these allow. None says nothing."""

    causal: bool | None = None
    left: int | None = None  # how far before and behind the row
    right: int | None = None
    chunk: int | None = None
    left_padding: Tensor | None = None  # [B]: keys before the first chunk
    packed: Tensor | None = None  # [B, L]: the sequence that each row and key belongs to
    positions: Tensor | None = None  # [B, L], beside packed: where they stand, one after another within a sequence


def rule_of(function: Callable[..., Any]) -> Rule | None:
    """The rule of a mask function, or None for one that says anything else."""
    if function is masking_utils.causal_mask_function:
        return Rule(causal=True)
    if function is getattr(masking_utils, "bidirectional_mask_function", None):
        return Rule()
    noted: Rule | None = getattr(function, "headlight_rule", None)
    if noted is not None or torch.compiler.is_compiling():
        return noted
    if getattr(function, "__module__", None) != masking_utils.__name__ or function.__closure__ is None:
        return None
    maker = function.__qualname__.partition(".")[0]
    parts = dict(zip(function.__code__.co_freevars, (cell.cell_contents for cell in function.__closure__), strict=True))
    reader = _READERS.get(maker)
    return None if reader is None else reader(parts)


def note_rules() -> None:
    """Lets the makers of mask functions note what they say, from the arguments they are given."""
    for name, reader in _READERS.items():
        maker = getattr(masking_utils, name, None)
        if maker is not None and not hasattr(maker, "headlight_notes"):
            setattr(masking_utils, name, _noting(maker, reader))


def _noting(maker: Callable[..., Any], reader: Callable[[dict[str, Any]], Rule | None]) -> Callable[..., Any]:
    code = maker.__code__
    names = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[code.co_argcount] if code.co_flags & inspect.CO_VARARGS else None

    @functools.wraps(maker)
    def make(*given: Any, **named: Any) -> Any:
        function = maker(*given, **named)
        parts = dict(zip(names, given, strict=False), **named)
        if rest is not None:
            parts[rest] = given[len(names) :]
        function.headlight_rule = reader(parts)
        return function

    make.headlight_notes = True  # type: ignore[attr-defined]
    return make


def _all_of(parts: dict[str, Any]) -> Rule | None:
    together: dict[str, Any] = {}
    for function in parts["mask_functions"]:
        rule = rule_of(function)
        if rule is None:
            return None
        said = {name: value for name, value in rule._asdict().items() if value is not None}
        if said.keys() & together.keys():
            return None  # twice the same, which no model of Transformers asks for
        together |= said
    return Rule(**together)


def _sliding(parts: dict[str, Any]) -> Rule | None:
    size = parts["sliding_window"]
    return Rule(left=size - 1) if size > 0 else None


def _positions_of_each_sequence(parts: dict[str, Any]) -> Rule | None:
    # Within a sequence they rise by one, so that distances are those of places; chunks are counted by them.
    rule = rule_of(parts["mask_function"])
    return rule._replace(positions=parts["position_ids"]) if rule is not None and rule.chunk else rule


_READERS: dict[str, Callable[[dict[str, Any]], Rule | None]] = {
    "and_masks": _all_of,
    "sliding_window_overlay": _sliding,
    "sliding_window_bidirectional_overlay": lambda parts: Rule(
        left=parts["sliding_window"], right=parts["sliding_window"]
    ),
    "chunked_overlay": lambda parts: Rule(chunk=parts["chunk_size"], left_padding=parts["left_padding"]),
    "packed_sequence_mask_function": lambda parts: Rule(packed=parts["packed_sequence_mask"]),
    "remap_positions_for_packed_sequence": _positions_of_each_sequence,
}
