"""The way back through the weights that attention shows, for those who train with them: in memory of Lq x Lk."""

from __future__ import annotations

import torch


def gradients_by_weights(
    query: torch.Tensor, key: torch.Tensor, weights: torch.Tensor, by_weights: torch.Tensor, scale: float | None,
    softcap: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """What the gradient by weights adds to those by query, by key and by the scores.

    query [B, Hq, Lq, D], key [B, Hkv, Lk, D], weights P and by_weights dP [B, Hq, Lq, Lk] of float32. With
    dS = P * (dP - sum_j dP P): dQ = scale * dS K, dK = scale * dS^T Q; a soft cap c takes its own derivative,
    1 - tanh(score / c)^2, of the scores before it.
    """
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    wide_query, wide_key = query.float(), key.float()
    shared = key.shape[1]
    groups = query.shape[1] // shared
    if groups > 1:
        wide_key = wide_key.repeat_interleave(groups, dim=1)
    by_scores = weights * (by_weights - (by_weights * weights).sum(-1, keepdim=True))
    by_products = by_scores
    if softcap:
        by_products = by_scores * (1 - torch.tanh(wide_query @ wide_key.mT * (factor / softcap)) ** 2)
    by_query = factor * (by_products @ wide_key)
    by_key = factor * (by_products.mT @ wide_query)
    by_key = by_key.reshape(len(by_key), shared, groups, *by_key.shape[2:]).sum(2)
    return by_query.to(query.dtype), by_key.to(key.dtype), by_scores
