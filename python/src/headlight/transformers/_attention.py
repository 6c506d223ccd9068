"""Attention as the attention interface of Transformers calls it."""

from __future__ import annotations

from typing import Any

import torch

from headlight.torch._functional import mask_and_bias
from headlight.torch._operator import attend_with_weights, seed_for
from headlight.torch._options import Options
from headlight.torch._padding import with_padding
from headlight.transformers._masks import IntervalMask, options_of, seen_of

Tensor = torch.Tensor


def attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """(out, weights): out [B, Lq, Hq, Dv]; weights [B, Hq, Lq, Lk] where output_attentions asks for them, else None.

    query [B, Hq, Lq, D], key [B, Hkv, Lk, D], value [B, Hkv, Lk, Dv]. attention_mask is what make_mask() gave, or a
    mask [B, 1 or Hq, Lq, Lk]: bool, where True is seen, or float, added to the scores; None is no mask, or the causal
    one where the model says that it is causal. options: softcap, s_aux (sinks [Hq]), position_bias (added to the
    scores, [1 or B, Hq, Lq, Lk]), head_mask, sliding_window, cu_seq_lens_q and cu_seq_lens_k, output_attentions; others are the model's own and say nothing here.
    """
    given = _masks(module, query, key, attention_mask, is_causal, options)
    position_bias = options.get("position_bias")
    if position_bias is not None:
        position_bias = position_bias.float()
        given = given._replace(bias=position_bias if given.bias is None else given.bias + position_bias)
    sinks = options.get("s_aux")
    given = given._replace(
        sinks=None if sinks is None else sinks.float(),
        seed=seed_for(dropout),
        scale=_scale(module, query) if scaling is None else scaling,
        softcap=options.get("softcap") or 0.0,
        dropout=dropout,
    )
    wanted = bool(options.get("output_attentions"))
    out, weights = attend_with_weights(query, key, value, given, wanted)
    head_mask = options.get("head_mask")
    if head_mask is not None:
        out = out * head_mask  # [1, Hq, 1, 1]: what all weights of a head are multiplied with
    return out.transpose(1, 2), weights


def _masks(
    module: torch.nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool | None, options: dict[str, Any]
) -> Options:  # fmt: skip
    given = options_of(mask)
    if mask is not None and given is not None:
        if mask.shape[-1] > key.shape[2]:  # of a cache that gives fewer keys than it holds
            numbers = mask.dense() if isinstance(mask, IntervalMask) else mask
            return Options(bias=numbers[..., : key.shape[2]].float())
        offsets = options.get("cu_seq_lens_q") if len(query) == 1 and given.query_offsets is None else None
        if offsets is None or given.query_start is not None:
            return given
        return given._replace(query_offsets=offsets, key_offsets=options.get("cu_seq_lens_k"))
    if mask is None:
        if is_causal is None:
            is_causal = getattr(module, "is_causal", True)
        window = options.get("sliding_window")
        causal = is_causal and (query.shape[2] > 1 or bool(window))  # a single row sees all keys, but for a window
        return Options(causal="bottom_right" if causal else "", left=window - 1 if window and is_causal else -1)
    if mask.dim() == 2:  # [B, Lk], of models that make no other
        seen = seen_of(mask, 0, key.shape[2])
        return Options(padding=seen) if torch.compiler.is_compiling() else with_padding(Options(), seen)
    shown, bias = mask_and_bias(query, mask[..., : key.shape[2]])
    return Options(mask=shown, bias=bias)


def _scale(module: torch.nn.Module, query: Tensor) -> float | None:
    """That of models which pass none: 1 / sqrt(D), but for the ways of GPT-2."""
    if getattr(module, "scale_attn_weights", True) and not getattr(module, "scale_attn_by_inverse_layer_idx", False):
        return None
    scale: float = query.shape[-1] ** -0.5 if getattr(module, "scale_attn_weights", True) else 1.0
    if getattr(module, "scale_attn_by_inverse_layer_idx", False):
        layer: Any = module
        scale /= layer.layer_idx + 1.0
    return scale
