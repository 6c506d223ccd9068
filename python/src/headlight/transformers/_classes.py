"""Models of Transformers that choose among classes for attention, and do not ask the attention interface."""

from __future__ import annotations

import functools
import sys
import warnings
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from headlight.torch import scaled_dot_product_attention
from headlight.torch._operator import attend, seed_for
from headlight.torch._options import Options
from headlight.torch._padding import lengths_of

Tensor = torch.Tensor


def cover_model_classes(name: str) -> None:
    """Adds `name` to the classes of a model's module when the first such model is made."""
    checked = PreTrainedModel._check_and_adjust_attn_implementation
    if hasattr(checked, "covers_classes"):
        return

    @functools.wraps(checked)
    def check(self: PreTrainedModel, attn_implementation: str | None, *given: Any, **options: Any) -> Any:
        if attn_implementation == name:
            _cover(sys.modules[type(self).__module__], name)
        return checked(self, attn_implementation, *given, **options)

    check.covers_classes = True  # type: ignore[attr-defined]
    PreTrainedModel._check_and_adjust_attn_implementation = check  # type: ignore[method-assign]


def _cover(module: ModuleType, name: str) -> None:
    """A table of classes is told by what it holds: BERT's is BERT_SELF_ATTENTION_CLASSES, StableLM's ATTENTION_CLASSES."""
    for choice in list(vars(module).values()):
        if not isinstance(choice, dict) or "eager" not in choice or name in choice:
            continue
        if "sdpa" in choice:
            choice[name] = _redirected(choice["sdpa"])
        else:
            choice[name] = choice["eager"]
            warnings.warn(
                f"headlight: {module.__name__} has no attention but {choice['eager'].__name__}, which runs as it is",
                stacklevel=2,
            )


def _redirected(theirs: Any) -> Any:
    """The same class or function, with torch's attention replaced."""
    if isinstance(theirs, type):
        return type(f"Headlight{theirs.__name__}", (_Redirected, theirs), {"__module__": __name__})

    @functools.wraps(theirs)
    def call(*given: Any, **options: Any) -> Any:
        with _Redirection(padding_alone=False):
            return theirs(*given, **options)

    return call


class _Redirected(torch.nn.Module):
    """In front of a class for "sdpa"."""

    def forward(self, *given: Any, **options: Any) -> Any:
        with _Redirection(_takes_padding_alone(type(self).__mro__[2].__name__)):
            return super().forward(*given, **options)


def _takes_padding_alone(name: str) -> bool:
    """Whether a class hands on the [B, Lk] of padding that its model was given, as DistilBERT's for "eager" does."""
    return name.startswith("DistilBert")


class _Redirection(TorchFunctionMode):
    """Within it, on this thread, torch's scaled_dot_product_attention is headlight's."""

    def __init__(self, padding_alone: bool) -> None:
        super().__init__()
        self.padding_alone = padding_alone

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            options = dict(kwargs or {})
            mask = options.get("attn_mask")
            if self.padding_alone and mask is not None and mask.dim() == 2:
                options["attn_mask"] = (mask != 0)[:, None, None, :]
            return _attention(*args, **options)
        return func(*args, **(kwargs or {}))


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, **options: Any
) -> Tensor:
    """As torch's. A mask of padding alone becomes lengths."""
    if attn_mask is not None and attn_mask.dim() == 4 and attn_mask.shape[1:3] == (1, 1):
        lengths = _lengths_of_padding(attn_mask[:, 0, 0])
        if lengths is not None:
            given = Options(
                key_lengths=lengths, scale=options.get("scale"), dropout=dropout_p, seed=seed_for(dropout_p)
            )
            return attend(query, key, value, given)
    return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, **options)


def _lengths_of_padding(mask: Tensor) -> Tensor | None:
    """[B] where mask [B, L] hides what lies behind some length, with False or with a number that leaves no weight."""
    if torch.compiler.is_compiling():
        return None
    if mask.dtype == torch.bool:
        return lengths_of(mask)
    seen = mask == 0
    if not bool((seen | (mask <= torch.finfo(mask.dtype).min / 2)).all()):
        return None
    return lengths_of(seen)
