"""What Transformers makes in place of an L x L mask when it is asked for one for headlight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map
from transformers.masking_utils import causal_mask_function, eager_mask, sdpa_mask

from headlight.torch._operator import Options
from headlight.torch._padding import lengths_of
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
    if torch.compiler.is_compiling():
        # A program cannot look at numbers; without any, what the model's attention does without a mask is right.
        rows = given["cache_position"].shape[0] if "cache_position" in given else given["q_length"]
        return None if function is causal_mask_function and padding is None and rows == kv_length else make()
    rule, (rows, first) = rule_of(function), rows_of(given)
    options = None
    if rule is not None and first is not None:
        options = _options(rule, batch_size, rows, first, kv_length, kv_offset, padding)
    if options is None:
        options = Options(mask=sdpa_mask(**sizes, **given))
    return IntervalMask((batch_size, 1, rows, kv_length), given.get("dtype", torch.float32), options, make)


def rows_of(given: dict[str, Any]) -> tuple[int, int | None]:
    """How many rows there are, and where the first stands, or None where they do not follow one another."""
    if "cache_position" in given:  # Transformers 4
        positions = given["cache_position"]
        rows, first = positions.shape[0], int(positions[0]) if positions.shape[0] else 0
        return rows, first if torch.equal(positions, torch.arange(first, first + rows)) else None
    return int(given["q_length"]), int(given.get("q_offset", 0))


def _options(
    rule: Rule, batch: int, rows: int, row_start: int, keys: int, key_start: int, padding: Tensor | None
) -> Options | None:
    options = Options(
        causal="top_left" if rule.causal else "", left=-1 if rule.left is None else rule.left,
        right=-1 if rule.right is None else rule.right, chunk=rule.chunk or 0,
        query_start=torch.tensor([row_start]) if row_start else None,
        key_start=torch.tensor([key_start]) if key_start else None,
    )  # fmt: skip
    if rule.chunk and rule.left_padding is not None and bool(rule.left_padding.any()):
        return None  # chunks that begin elsewhere in each sample
    if rule.packed is not None and bool((rule.packed != rule.packed[:, :1]).any()):
        if batch != 1 or padding is not None or rows != keys or row_start or key_start or rule.chunk:
            return None
        return options._replace(query_offsets=_offsets(rule.packed[0]))
    return options if padding is None else with_padding(options, padding, key_start, keys)


def _offsets(sequence_of: Tensor) -> Tensor:
    """Where each sequence begins, and the end: [0, 0, 1, 1, 1] -> [0, 2, 5]."""
    begins = torch.nonzero(sequence_of.diff()).flatten() + 1
    return torch.cat([begins.new_zeros(1), begins, begins.new_tensor([len(sequence_of)])])


def with_padding(options: Options, seen: Tensor, key_start: int, keys: int) -> Options:
    """Those where `seen` [B, any], by position, hides keys: as lengths, else as one row for all rows of a sample."""
    seen = seen[:, key_start : key_start + keys].bool()
    missing = keys - seen.shape[1]
    lengths = lengths_of(seen)
    if lengths is not None:
        whole = not missing and bool((lengths == keys).all())
        return options if whole else options._replace(key_lengths=lengths)
    seen = torch.nn.functional.pad(seen, (0, missing))
    return options._replace(mask=seen[:, None, None, :])
