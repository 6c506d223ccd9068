"""scaled_dot_product_attention() with the signature and the meanings of torch.nn.functional's."""

from __future__ import annotations

import torch

from headlight.torch._operator import attend, seed_for
from headlight.torch._options import Options
from headlight.torch._place import check_place

Tensor = torch.Tensor


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(scale * query @ key.mT + attn_mask) @ value, as torch.nn.functional.scaled_dot_product_attention().

    query [..., Hq, Lq, D], key [..., Hkv, Lk, D], value [..., Hkv, Lk, Dv] -> [..., Hq, Lq, Dv]; axes before the last
    two may be missing, and are broadcast. float32, bfloat16 or float16, each of the three its own, and the result query's;
    on the CPU; any strides. Differentiable by all three and by a float mask, once, backward.

    attn_mask   broadcast to [..., Hq, Lq, Lk]. bool: True is seen. Else added to the scores, of query's type or float32.
    dropout_p   of the weights, always on, as in torch. What goes follows torch.manual_seed().
    is_causal   row i sees keys 0 to i: the upper left, as in torch. Not together with attn_mask.
    scale       1 / sqrt(D) unless given.
    enable_gqa  Hq may be a multiple of Hkv: as many heads of query share one of key and value, nothing is repeated.

    A row that sees nothing gives zeros, as torch's on the CPU. Raises ValueError for shapes and values, TypeError for
    types and devices.
    """
    _check_place(query, key, value, attn_mask)
    if is_causal and attn_mask is not None:
        raise ValueError("scaled_dot_product_attention: attn_mask given together with is_causal=True, expected one of them")
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"scaled_dot_product_attention: dropout_p is {dropout_p}, expected 0 to 1")
    if torch.is_autocast_enabled("cpu"):
        narrow = torch.get_autocast_dtype("cpu")
        query, key, value = (_autocast(x, narrow) for x in (query, key, value))
        if attn_mask is not None and attn_mask.dtype != torch.float32:  # which is added as it is
            attn_mask = _autocast(attn_mask, narrow)
    lead = None
    if not query.dim() == key.dim() == value.dim() == 4 or not query.shape[0] == key.shape[0] == value.shape[0]:
        query, key, value, lead = _in_four_axes(query, key, value)
    if not query.shape[1] == key.shape[1] == value.shape[1]:
        query, key, value = _with_shared_heads(query, key, value, enable_gqa)
    if attn_mask is not None:
        attn_mask = _of_scores(attn_mask, query.shape[:2] if lead is None else lead, query.shape[2], key.shape[2])
    mask, bias = mask_and_bias(query, attn_mask)
    # With all weights gone torch gives zeros, and zero gradients; no probability of 1 is left for what is kept.
    dropout = dropout_p if dropout_p < 1 else 0.0
    if mask is bias is None and not dropout and not is_causal and scale is None:
        out = attend(query, key, value)
    else:
        seed = seed_for(dropout)
        causal = "top_left" if is_causal else ""
        options = Options(mask=mask, bias=bias, seed=seed, causal=causal, scale=scale, dropout=dropout)
        out = attend(query, key, value, options)
    if dropout_p == 1:
        out = out * 0.0
    return out if lead is None else out.reshape(*lead, *out.shape[-2:])


def _check_place(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """All on the CPU, or all without memory (meta), and with strides. Nearly all are, which is asked fast."""
    try:
        on_the_cpu = query.is_cpu and key.is_cpu and value.is_cpu
        strided = query.layout is key.layout is value.layout is torch.strided
        nested = query.is_nested or key.is_nested or value.is_nested
        if on_the_cpu and strided and not nested and (mask is None or _is_plain_mask(mask)):
            return
    except AttributeError:
        pass  # somebody is no tensor
    check_place("scaled_dot_product_attention", query=query, key=key, value=value, attn_mask=mask)


def _is_plain_mask(mask: Tensor) -> bool:
    return mask.is_cpu and mask.layout is torch.strided and not mask.is_nested


def _autocast(x: Tensor, narrow: torch.dtype) -> Tensor:
    """As torch's autocast has it, which leaves float64 and whole numbers alone."""
    return x.to(narrow) if x.is_floating_point() and x.dtype != torch.float64 else x


def _in_four_axes(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor, torch.Size]:
    """All of them as [B, H, L, D], and the axes before the last two of the result."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() < 2:
            raise ValueError(f"scaled_dot_product_attention: {name} has shape {list(x.shape)}, expected 2 axes or more")
    # The axis of heads is broadcast where there is no grouping of heads, which is looked at later.
    batch: torch.Size = torch.broadcast_shapes(  # type: ignore[no-untyped-call]
        query.shape[:-3], key.shape[:-3], value.shape[:-3]
    )
    heads = [x.shape[-3] if x.dim() > 2 else 1 for x in (query, key, value)]

    def four(x: Tensor, own_heads: int) -> Tensor:
        wide = x.expand(*batch, own_heads, *x.shape[-2:])
        return wide.reshape(-1, *wide.shape[-3:]) if wide.dim() > 4 else wide[(None,) * (4 - wide.dim())]

    has_heads = max(query.dim(), key.dim(), value.dim()) > 2
    lead = torch.Size((*batch, max(heads))) if has_heads else torch.Size(())
    query, key, value = (four(x, own) for x, own in zip((query, key, value), heads, strict=True))
    return query, key, value, lead


def _with_shared_heads(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> tuple[Tensor, Tensor, Tensor]:
    """As many heads of key as of value, of which those of query are a multiple."""
    heads, of_key, of_value = query.shape[1], key.shape[1], value.shape[1]
    most = max(heads, of_key, of_value)
    if not enable_gqa and not {heads, of_key, of_value} <= {1, most}:
        raise ValueError(
            f"scaled_dot_product_attention: query has {heads} heads, key {of_key} and value {of_value}; "
            "expected as many, or enable_gqa=True"
        )
    if enable_gqa and (not of_key or not of_value or heads % of_key or heads % of_value):
        raise ValueError(
            f"scaled_dot_product_attention: query has {heads} heads, expected a multiple of the {of_key} of key and the "
            f"{of_value} of value"
        )
    query = query.expand(-1, most, -1, -1) if heads == 1 else query
    if of_key != of_value:
        shared = max(of_key, of_value) if 1 in (of_key, of_value) else most
        key, value = key.repeat_interleave(shared // of_key, 1), value.repeat_interleave(shared // of_value, 1)
    return query, key, value


def _of_scores(mask: Tensor, lead: torch.Size, rows: int, keys: int) -> Tensor:
    """A mask of scores [*lead, rows, keys] in four axes or fewer: the axes of the batch as one, as those of query are."""
    scores = (*(1,) * (2 - len(lead)), *lead, rows, keys)
    extents = zip(reversed(mask.shape), reversed(scores), strict=False)
    if mask.dim() > len(scores) or not all(own == wanted or own == 1 for own, wanted in extents):
        raise ValueError(
            f"scaled_dot_product_attention: attn_mask has shape {list(mask.shape)}, "
            f"expected one that broadcasts to {[*lead, rows, keys]}"
        )
    if len(scores) == 4 or mask.dim() < 4:
        return mask
    return mask.expand(*scores[:-3], *mask.shape[-3:]).reshape(-1, *mask.shape[-3:])


def mask_and_bias(query: Tensor, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """What of the two the mask is, in the type that the operator takes."""
    if mask is None:
        return None, None
    if mask.dim() == 0:
        mask = mask[None]
    if mask.dtype == torch.bool:
        return mask, None
    if mask.dtype not in (torch.float32, query.dtype):
        raise TypeError(
            f"scaled_dot_product_attention: attn_mask has numbers of type {mask.dtype}, "
            f"expected torch.bool, torch.float32 or {query.dtype}, which is query's"
        )
    return None, mask.float()
