"""What the operators ask of shapes, for programs that are traced: of tensors without numbers, whose extents may be symbols.

headlight.attention() asks the same of tensors with numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Tensor = torch.Tensor


def check_shapes(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None) -> None:
    """Raises ValueError for operands of headlight::attention that do not fit, naming the first of them."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 4:
            raise ValueError(f"attention: {name} has rank {x.dim()}, expected 4")
    batch, heads, rows, dim = query.shape
    of_key, length = key.shape[1:3]
    _check(
        "key", key, (key.shape[0] == batch) & (key.shape[3] == dim), (batch, "any", "any", dim),
        "[B, Hkv, Lk, D], B and D those of query",
    )  # fmt: skip
    shared = heads % of_key == 0 if of_key != 0 else heads == 0
    _require(shared, lambda: f"attention: query has {heads} heads, expected a multiple of the {of_key} of key")
    same = (value.shape[0] == batch) & (value.shape[1] == of_key) & (value.shape[2] == length)
    _check("value", value, same, (batch, of_key, length, "any"), "[B, Hkv, Lk, Dv], all but the last those of key")
    scores = (batch, heads, rows, length)
    for name, given in (("mask", mask), ("bias", bias)):
        if given is None:
            continue
        fits: bool | torch.SymBool = given.dim() <= 4
        for own, wanted in zip(reversed(given.shape), reversed(scores), strict=False):
            fits = fits & ((own == wanted) | (own == 1))
        _check(name, given, fits, scores, "[B, Hq, Lq, Lk] with any axis 1 or, from the first, missing")


def check_marks(query: Tensor, key: Tensor, padding: Tensor | None, packed: Tensor | None) -> None:
    """The same of padding and packed, behind check_shapes()."""
    batch, rows, keys = query.shape[0], query.shape[2], key.shape[2]
    for name, x, expected, letters in (
        ("padding", padding, (batch, keys), "[B, Lk]"),
        ("packed", packed, (batch, rows), "[B, L], where Lq = Lk = L"),
    ):
        if x is None:
            continue
        fits = (x.dim() == 2) & (x.shape[0] == batch) & (x.shape[-1] == keys) & (x.shape[-1] == expected[1])
        _check(name, x, fits, expected, letters)


def check_results(
    query: Tensor, value: Tensor, out: Tensor, log_sum_exp: Tensor, out_gradient: Tensor, by_log_sum_exp: Tensor | None
) -> None:
    """The same of what the backward pass takes of the forward pass, behind check_shapes()."""
    rows = tuple(query.shape[:3])
    for name, x, expected, letters in (
        ("out", out, (*rows, value.shape[3]), "[B, Hq, Lq, Dv]"),
        ("log_sum_exp", log_sum_exp, rows, "[B, Hq, Lq]"),
        ("out_gradient", out_gradient, (*rows, value.shape[3]), "[B, Hq, Lq, Dv]"),
        ("log_sum_exp_gradient", by_log_sum_exp, rows, "[B, Hq, Lq]"),
    ):
        if x is None:
            continue
        fits: bool | torch.SymBool = x.dim() == len(expected)
        for own, wanted in zip(x.shape, expected, strict=False):
            fits = fits & (own == wanted)
        _check(name, x, fits, expected, letters)


def _check(name: str, x: Tensor, fits: bool | torch.SymBool, expected: Sequence[object], letters: str) -> None:
    def sentence() -> str:
        shape = ", ".join(str(extent) for extent in expected)
        return f"attention: {name} has shape {list(x.shape)}, expected [{shape}] ({letters})"

    _require(fits, sentence)


def _require(fits: bool | torch.SymBool, sentence: Callable[[], str]) -> None:
    torch._check_value(fits, sentence)  # type: ignore[no-untyped-call]
