"""What the tests compare with: the formulas in float64, written out, and how far float32 may be from them."""

import numpy as np


def visible(query_length, key_length, *, causal=None, align=None, window=None, chunk=0, query_start=None, key_start=0):
    """Which keys each row of one sequence sees, [Lq, Lk]."""
    place = align or causal or "top_left"
    if query_start is None:
        query_start = key_start + (key_length - query_length if place == "bottom_right" else 0)
    row = query_start + np.arange(query_length)[:, None]
    key = key_start + np.arange(key_length)[None, :]
    seen = np.ones((query_length, key_length), bool)
    if causal:
        seen &= key <= row
    left, right = window or (None, None)
    if left not in (None, -1):
        seen &= key >= row - left
    if right not in (None, -1):
        seen &= key <= row + right
    if chunk:
        seen &= key // chunk == row // chunk
    return seen, np.abs(row - key)


def attention(query, key, value, *, query_lengths=None, key_lengths=None, mask=None, mask_means=None, bias=None,
              scale=None, softcap=None, alibi=None, sinks=None, query_start=None, key_start=0, **positions):
    """out [B, Lq, Hq, Dv], log_sum_exp [B, Hq, Lq] and probabilities [B, Hq, Lq, Lk], all float64."""
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    batch, rows, heads, head_dim = query.shape
    keys, group = key.shape[1], heads // key.shape[2]
    key, value = (np.repeat(x, group, axis=2) for x in (key, value))
    scores = np.einsum("bihd,bjhd->bhij", query, key) * (1 / np.sqrt(head_dim) if scale is None else scale)
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    hidden = np.zeros(scores.shape, bool)
    if mask is not None:
        hidden |= np.asarray(mask).astype(bool) == (mask_means == "ignore")
    for b in range(batch):
        length = rows if query_lengths is None else query_lengths[b]
        seen_keys = keys if key_lengths is None else key_lengths[b]
        start = [None if start is None else int(np.ravel(start)[b % np.size(start)]) for start in (query_start, key_start)]
        seen, distance = visible(length, seen_keys, query_start=start[0], key_start=start[1], **positions)
        hidden[b, :, :length, :seen_keys] |= ~seen
        hidden[b, :, length:] = True
        hidden[b, :, :, seen_keys:] = True
        if alibi is not None:
            scores[b, :, :length, :seen_keys] -= np.asarray(alibi, np.float64)[:, None, None] * distance
    scores = np.where(hidden, -np.inf, scores)
    logits = scores
    if sinks is not None:
        logit = np.broadcast_to(np.asarray(sinks, np.float64)[None, :, None, None], (batch, heads, rows, 1)).copy()
        for b in range(batch):
            if query_lengths is not None:
                logit[b, :, query_lengths[b]:] = -np.inf
        logits = np.concatenate([scores, logit], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        top = logits.max(-1, keepdims=True)
        log_sum_exp = np.log(np.exp(logits - np.where(np.isinf(top), 0, top)).sum(-1)) + np.where(np.isinf(top), 0, top)[..., 0]
        probabilities = np.where(hidden, 0, np.exp(scores - np.where(np.isinf(log_sum_exp), 0, log_sum_exp)[..., None]))
    return np.einsum("bhij,bjhd->bihd", probabilities, value), log_sum_exp, probabilities


def attention_backward(query, key, value, out_gradient, *, lse_gradient=0.0, **options):
    """The gradients by query, key, value and bias (of the shape of the scores), all float64."""
    out, _, probabilities = attention(query, key, value, **options)
    query, key, value, out_gradient = (np.asarray(x, np.float64) for x in (query, key, value, out_gradient))
    head_dim, shared = query.shape[-1], key.shape[2]
    group = query.shape[2] // shared
    wide_key, wide_value = (np.repeat(x, group, axis=2) for x in (key, value))
    scale = 1 / np.sqrt(head_dim) if options.get("scale") is None else options["scale"]
    delta = np.einsum("bihd,bihd->bhi", out_gradient, out) - np.float64(lse_gradient)
    by_scores = probabilities * (np.einsum("bihd,bjhd->bhij", out_gradient, wide_value) - delta[..., None])
    by_capped = by_scores
    if options.get("softcap"):
        raw = np.einsum("bihd,bjhd->bhij", query, wide_key) * scale
        by_capped = by_scores * (1 - np.tanh(raw / options["softcap"]) ** 2)
    def together(x):
        return x.reshape(*x.shape[:2], shared, group, x.shape[-1]).sum(3)
    by_query = scale * np.einsum("bhij,bjhd->bihd", by_capped, wide_key)
    by_key = together(scale * np.einsum("bhij,bihd->bjhd", by_capped, query))
    by_value = together(np.einsum("bhij,bihd->bjhd", probabilities, out_gradient))
    return by_query, by_key, by_value, by_scores


def assert_close(result, expected, *, unit=2.0**-24, spare=32.0):
    """Each row within some roundings of its own length, or of the largest row where sums cancel."""
    result, expected = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    assert result.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(result[~finite], expected[~finite])
    if not finite.any():
        return
    error = np.abs(np.where(finite, result - np.where(finite, expected, 0), 0))
    size = max(1.0, np.abs(expected[finite]).max())
    assert error.max() <= spare * unit * size, f"off by {error.max():.3g}, {error.max() / unit / size:.1f} roundings"
