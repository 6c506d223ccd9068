"""What Transformers makes in place of an L x L mask when it is asked for one for headlight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map
from transformers.masking_utils import causal_mask_function, eager_mask, sdpa_mask

from headlight.torch._options import Options
from headlight.torch._padding import is_packed, settled, with_padding
from headlight.transformers._rules import Rule, rule_of

Tensor = torch.Tensor


class IntervalMask(torch.Tensor):
    """A mask [B, 1, Lq, Lk] that is not made: it holds what headlight's operator takes instead.

    Whoever else looks at its numbers, such as a model that computes attention itself, gets what "eager" makes: 0 where a
    key is seen, and the lowest number where it is not.
    """

    options: Options
    make: Callable[[], Tensor]

    @staticmethod
    def __new__(
        cls, shape: tuple[int, ...], dtype: torch.dtype, options: Options, make: Callable[[], Tensor]
    ) -> IntervalMask:
        mask: IntervalMask = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype)
        mask.options, mask.make = options, make
        return mask

    def dense(self) -> Tensor:
        return self.make()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def dense(x: Any) -> Any:
            return x.dense() if isinstance(x, IntervalMask) else x

        if getattr(func, "__name__", "") in ("__get__", "dim", "size"):  # shape, dtype, device: of no numbers
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        return func(*tree_map(dense, args), **tree_map(dense, kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise NotImplementedError(f"{func} of a mask that headlight has not made")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"IntervalMask(shape={list(self.shape)}, {self.options})"


def make_mask(batch_size: int, kv_length: int, kv_offset: int = 0, **given: Any) -> Tensor | None:
    """As transformers.masking_utils.eager_mask, whose arguments it takes (those of Transformers 4 and of 5)."""
    sizes: dict[str, Any] = dict(batch_size=batch_size, kv_length=kv_length, kv_offset=kv_offset)
    given = {**given, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}

    def make() -> Tensor:
        mask: Any = eager_mask(**sizes, **given)
        return mask  # type: ignore[no-any-return]

    function, padding = given.get("mask_function", causal_mask_function), given.get("attention_mask")
    rule, (rows, first) = rule_of(function), rows_of(given)
    options = None
    if rule is not None and first is not None:
        options = _options(rule, batch_size, rows, first, kv_length, kv_offset, padding)
    if torch.compiler.is_compiling():
        # What nobody looks at is no part of the program, and attention() looks at the options alone.
        mask = make()
        if options is not None:
            mask.options = options  # type: ignore[attr-defined]
        return mask
    if options is None:
        options = Options(mask=sdpa_mask(**sizes, **given))
    return IntervalMask((batch_size, 1, rows, kv_length), given.get("dtype", torch.float32), options, make)


def options_of(mask: Tensor | None) -> Options | None:
    """What make_mask() gave beside the numbers, where it knew."""
    options: Options | None = getattr(mask, "options", None)
    return options


def rows_of(given: dict[str, Any]) -> tuple[int, int | Tensor | None]:
    """How many rows there are, and where the first stands, or None where they do not follow one another."""
    if "cache_position" not in given:
        first = given.get("q_offset", 0)
        return int(given["q_length"]), first if not isinstance(first, Tensor) or _is_traced() else int(first)
    positions = given["cache_position"]  # of Transformers 4
    rows = positions.shape[0]
    if not rows:
        return 0, 0
    if _is_traced():
        # Who decodes hands in rows that follow one another: whoever does not is told so by what is compiled.
        if rows > 1:
            follow = (positions == positions[0] + torch.arange(rows, device=positions.device)).all()
            message = "headlight: cache_position has a gap, expected positions that follow one another"
            torch._assert_async(follow, message)  # pyright: ignore[reportPrivateImportUsage]
        return rows, positions[0]
    first = int(positions[0])
    follow = torch.equal(positions, torch.arange(first, first + rows, device=positions.device))
    return rows, first if follow else None


def _is_traced() -> bool:
    return torch.compiler.is_compiling()


def _start(place: int | Tensor) -> Tensor | None:
    if isinstance(place, Tensor):
        return place.reshape(1).clone()  # a static cache of Transformers 5 counts on in it
    return torch.full((1,), place, device="cpu") if place else None


def _options(
    rule: Rule, batch: int, rows: int, row_start: int | Tensor, keys: int, key_start: int, padding: Tensor | None
) -> Options | None:
    options = Options(
        causal="top_left" if rule.causal else "", left=-1 if rule.left is None else rule.left,
        right=-1 if rule.right is None else rule.right, chunk=rule.chunk or 0,
        query_start=_start(row_start), key_start=_start(key_start),
    )  # fmt: skip
    shift = None
    if rule.chunk and rule.left_padding is not None and (_is_traced() or bool(rule.left_padding.any())):
        # Chunks are counted from the first key that is no padding: as if all stood that much further on, up to a chunk.
        shift = -rule.left_padding % rule.chunk
        options = options._replace(query_start=shift + row_start, key_start=shift + key_start)
    if rule.packed is not None and (_is_traced() or is_packed(rule.packed)):
        if padding is not None or rows != keys or key_start:
            return None
        if not _is_traced() and row_start:
            return None
        options = options._replace(packed=rule.packed)
        if rule.chunk:
            by_row = torch.arange(rows, device=rule.packed.device)[None]
            places = by_row if rule.positions is None else rule.positions
            places = places.expand(batch, -1) if shift is None else places + shift[:, None]
            options = options._replace(query_start=places, key_start=None)
        # Of one row that is looked at once. Of several it is up to each call, which may have a bias or show weights.
        return options if _is_traced() or batch > 1 else settled(options)
    if padding is None:
        return options
    seen = seen_of(padding, key_start, keys)
    return options._replace(padding=seen) if _is_traced() else with_padding(options, seen)


def seen_of(padding: Tensor, key_start: int, keys: int) -> Tensor:
    """[B, keys] of a mask [B, any] by position: what it does not reach is not seen."""
    seen = padding[:, key_start : key_start + keys].bool()
    return torch.nn.functional.pad(seen, (0, keys - seen.shape[1]))
