#!/usr/bin/env python3
"""What heads do, by NumPy and SciPy in float64: entropy, divergence, CKA, angles, ranks. Needs no PyTorch.

Writes heads.npy, float64 in one row; tests/reference/heads_golden_test.cc makes the same inputs and says what stands where.
"""

import pathlib

import numpy as np
from scipy.linalg import subspace_angles
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

from seeded import Random

HERE = pathlib.Path(__file__).parent


def attention(random, heads, length):
    """Sharp and blunt rows that sum to 1, many weights 0."""
    u = random.uniform((heads, length, length)).astype(np.float64)
    weights = np.where(u < -0.25, 0.0, (1 + u) ** 4)
    weights[:, :, 0] += 0.125
    return weights / weights.sum(-1, keepdims=True)


def of_attention(weights):
    heads, length, _ = weights.shape
    steps = np.abs(np.arange(length)[:, None] - np.arange(length)[None, :])
    out = [entropy(weights, axis=-1).mean(-1), weights.max(-1).mean(-1), (weights * steps).sum(-1).mean(-1)]
    divergence = [[(jensenshannon(weights[a], weights[b], axis=-1) ** 2).mean() for b in range(heads)] for a in range(heads)]
    out += [np.array(divergence).ravel(), [-np.einsum("aij,bij->ab", weights, weights).mean() / length]]
    return out


def of_places(weights, tokens, separators, reach=2, profile=8):
    """Where the weight of rows [R, L], which belong to `tokens`, lies: by masks over all (row, key) at once."""
    keys = np.arange(weights.shape[1])
    step = keys[None, :] - np.asarray(tokens)[:, None]
    ordered = np.sort(weights, axis=1)
    peak = np.argmax(weights, axis=1)
    sharp = ordered[:, -1] > ordered[:, -2]
    at = [sharp & (peak - tokens == d) for d in (-1, 1, 0)] + [sharp & (peak == 0), sharp & np.isin(peak, separators)]
    first, ends, near = keys == 0, np.isin(keys, separators) & (keys != 0), np.abs(step) <= reach
    even = [np.mean(first | ends), near.mean()]
    shares = [(weights * mask).sum(1).mean() for mask in (first, ends, near)]
    return [[a.mean() for a in at], shares, even, [(weights * (step == d)).sum(1).mean() for d in range(-profile, profile + 1)]]


def centring(n):
    return np.eye(n) - np.ones((n, n)) / n


def cka(x, y):
    """By kernels, not by features: tr(K H L H) over the norms."""
    h = centring(len(x))
    k, l = h @ x @ x.T @ h, h @ y @ y.T @ h
    return np.trace(k @ l) / np.sqrt(np.trace(k @ k) * np.trace(l @ l))


def hsic1(x, y):
    n, ones = len(x), np.ones(len(x))
    k, l = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    mixed = ones @ k @ l @ ones
    return (np.trace(k @ l) + (ones @ k @ ones) * (ones @ l @ ones) / ((n - 1) * (n - 2)) - 2 * mixed / (n - 2)) / (n * (n - 3))


def minibatch_cka(x, y, offsets):
    parts = [slice(a, b) for a, b in zip(offsets, offsets[1:])]
    sums = [sum(hsic1(u[p], v[p]) for p in parts) for u, v in ((x, y), (x, x), (y, y))]
    return sums[0] / np.sqrt(sums[1] * sums[2])


def outputs(random, rows, heads, head_dim):
    """Heads that have more or less in common, away from the origin."""
    own = random.normal((rows, heads, head_dim)).astype(np.float64)
    common = random.normal((rows, 1, head_dim)).astype(np.float64)
    return own + common * np.arange(heads)[None, :, None] + 2


def of_outputs(x, gradient, offsets):
    rows, heads, _ = x.shape
    pairs = [(a, b) for a in range(heads) for b in range(heads)]
    flat = x.transpose(1, 0, 2).reshape(heads, -1)
    unit = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    merged = x.reshape(rows, -1)
    values = np.linalg.svd(centring(rows) @ merged, compute_uv=False)
    samples = [np.abs((x[a:b] * gradient[a:b]).sum((0, 2))) for a, b in zip(offsets, offsets[1:])]
    weight = gradient.reshape(rows, -1)[: heads * x.shape[2]].T @ gradient.reshape(rows, -1)[: heads * x.shape[2]]
    parts = np.einsum("nhd,ehd->nhe", x, weight.reshape(-1, heads, x.shape[2]))
    similarity = sum(cka(x[:, a], x[:, b]) for a, b in pairs if a != b)
    return [[cka(x[:, a], x[:, b]) for a, b in pairs], [minibatch_cka(x[:, a], x[:, b], offsets) for a, b in pairs],
            [hsic1(x[:, 0], x[:, 1])], [np.exp(entropy(values / values.sum()))], [-(unit @ unit.T).mean()],
            np.mean(samples, axis=0), [similarity], np.linalg.norm(parts, axis=2)]


def of_weights(w, heads):
    """w [heads · D, E]."""
    parts = w.reshape(heads, -1, w.shape[1])
    flat = parts.reshape(heads, -1)
    unit = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    angles = [np.sort(subspace_angles(parts[0].T, parts[b].T)) for b in range(1, heads)]
    overlaps = [(np.cos(subspace_angles(a.T, b.T)) ** 2).mean() for a in parts for b in parts]
    norm = np.linalg.norm
    spaces = sum(norm(a @ b.T) ** 2 / (norm(a @ a.T) * norm(b @ b.T)) for i, a in enumerate(parts) for j, b in enumerate(parts) if i != j)
    return angles + [[((unit @ unit.T - np.eye(heads)) ** 2).sum()], overlaps, [spaces]]


def main():
    numbers = []
    for seed, length in ((1, 2), (2, 7), (3, 33)):
        weights = attention(Random(seed), 3, length)
        numbers += of_attention(weights)
        tokens = np.arange(length // 3, length)
        numbers += [n for head in weights for n in of_places(head[tokens], tokens, [length // 2, length - 1])]
    for seed, rows, offsets in ((4, 40, [0, 10, 23, 40]), (5, 9, [0, 4, 9])):
        random = Random(seed)
        x = outputs(random, rows, 3, 5)
        numbers += of_outputs(x, random.normal(x.shape).astype(np.float64), offsets)
    w = Random(6).normal((12, 20)).astype(np.float64)
    w[8:] = w[:4] + w[8:] / 1024  # small angles to the first head
    numbers += of_weights(w, 3)
    np.save(HERE / "heads.npy", np.concatenate([np.ravel(n) for n in numbers]))


if __name__ == "__main__":
    main()
