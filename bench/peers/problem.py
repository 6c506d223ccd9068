"""A case's inputs, and its result in float64 on a sample of rows."""

import functools

import ml_dtypes
import numpy as np

import bert

CHECKED_ROWS = 96


class GemmProblem:
    def __init__(self, case):
        random = np.random.default_rng(1)
        self.case = case
        self.a = random.standard_normal((case.m, case.k), np.float32)
        self.weights = random.standard_normal((case.k, case.n), np.float32)

    def error(self, out):
        rows = sampled(self.case.m)
        return worst_error(out[rows], self.a[rows].astype(np.float64) @ self.weights.astype(np.float64))


class AttentionProblem:
    """query, key, value: [B, L, H, D]; contiguous cases hold key and value in [B, H, L, D] memory, seen through strides."""

    def __init__(self, case):
        self.case = case
        self.random = np.random.default_rng(1)
        self.query = self.draw(case.query_length, case.heads, False)
        self.key = self.draw(case.key_length, case.kv_heads, case.contiguous)
        self.value = self.draw(case.key_length, case.kv_heads, case.contiguous)

    def draw(self, length, heads, contiguous):
        """float32; of a case in bfloat16, numbers that it holds exactly."""
        batch, head_dim = self.case.batch, self.case.head_dim
        memory = self.random.standard_normal((batch, heads, length, head_dim) if contiguous else (batch, length, heads, head_dim), np.float32)
        memory = held_in(self.case.type, memory)
        return memory.transpose(0, 2, 1, 3) if contiguous else memory

    def mask(self):
        """[B or 1, 1, Lq or 1, Lk], true where seen, for those who know no intervals."""
        case = self.case
        if case.boolean:
            return np.random.default_rng(2).random((1, 1, case.query_length, case.key_length)) > 1 / 8
        if case.key_lengths:
            return (np.arange(case.key_length) < np.array(case.key_lengths)[:, None])[:, None, None, :]
        bounds = np.array([case.visible(0, row) for row in range(case.query_length)])
        keys = np.arange(case.key_length)
        return ((keys >= bounds[:, :1]) & (keys < bounds[:, 1:]))[None, None]

    @property
    def masked(self):
        """Whether those who know no intervals need the mask."""
        return self.case.boolean or self.case.window >= 0 or bool(self.case.key_lengths)

    def slopes(self):
        return np.float32(0.01) * np.arange(1, self.case.heads + 1, dtype=np.float32)

    def bias(self):
        """[1, H, Lq, Lk]: the slopes as a bias."""
        distances = np.abs(np.arange(self.case.query_length)[:, None] - np.arange(self.case.key_length))
        return -self.slopes()[None, :, None, None] * distances.astype(np.float32)

    def grouped(self):
        """One query whose heads share key heads, as as many queries as share one: [B, Hkv, Hq / Hkv, D], [B, Hkv, Lk, D], [B, Hkv, Lk, D]."""
        case = self.case
        query = self.query.reshape(case.batch, case.kv_heads, case.heads // case.kv_heads, case.head_dim)
        return query, self.key.transpose(0, 2, 1, 3), self.value.transpose(0, 2, 1, 3)

    def padded(self, tensor):
        """A packed tensor [1, sum, H, D] as [sequences, longest, H, D] with zeros behind the shorter ones."""
        lengths = self.case.sequences
        out = np.zeros((len(lengths), max(lengths), *tensor.shape[2:]), np.float32)
        for sample, piece in enumerate(self.pieces(tensor)):
            out[sample, : piece.shape[1]] = piece
        return out

    def packed(self, padded):
        """The other way round."""
        return np.concatenate([row[:length] for row, length in zip(padded, self.case.sequences)])[None]

    def pieces(self, tensor):
        """Views [1, length, H, D] of the packed sequences."""
        begin = 0
        for length in self.case.sequences:
            yield tensor[:, begin : begin + length]
            begin += length

    @functools.cached_property
    def truth(self):
        case, rows = self.case, sampled(self.case.query_length)
        out = np.zeros((case.batch, len(rows), case.heads, case.head_dim))
        seen = self.mask()[0, 0] if case.boolean else None
        for sample in range(case.batch):
            for head in range(case.heads):
                shared = head * case.kv_heads // case.heads
                key = self.key[sample, :, shared].astype(np.float64)
                value = self.value[sample, :, shared].astype(np.float64)
                for n, row in enumerate(rows):
                    begin, end = case.visible(sample, row)
                    scores = key[begin:end] @ self.query[sample, row, head].astype(np.float64) / np.sqrt(case.head_dim)
                    if case.slopes:
                        scores -= self.slopes()[head].astype(np.float64) * np.abs(np.arange(begin, end) - row)
                    if case.boolean:
                        scores[~seen[row]] = -np.inf
                    weights = np.exp(scores - scores.max())
                    out[sample, n, head] = weights @ value[begin:end] / weights.sum()
        return out

    def error(self, out):
        return worst_error(out[:, sampled(self.case.query_length)], self.truth)


class EncoderProblem:
    def __init__(self, case):
        self.case = case
        self.model = bert.load()
        random = np.random.default_rng(1)
        self.ids = random.integers(1000, 30000, (case.batch, case.tokens), np.int64)

    @functools.cached_property
    def truth(self):
        return bert.hidden_states(self.model, self.ids[[0, -1]])

    def error(self, out):
        return worst_error(out[[0, -1]], self.truth)


class FamilyProblem:
    def __init__(self, case):
        import families  # which wants transformers

        self.case = case
        self.model = families.load(case.family)
        self.ids = np.random.default_rng(1).integers(families.FIRST_WORD, families.VOCABULARY, (case.batch, case.tokens), np.int64)

    @property
    def truth(self):
        return self.model.in_float64(self.ids[[0, -1]])

    def error(self, out):
        return worst_error(out[[0, -1]], self.truth)


class AttentionTrainingProblem:
    """query, key, value and the gradient of the output: [1, L, H, D], float32; of a case in bfloat16, numbers that it holds exactly. A
    result is (out, dq, dk, dv), each of that shape."""

    def __init__(self, case):
        random = np.random.default_rng(1)
        self.case = case
        shape = (1, case.length, case.heads, case.head_dim)
        drawn = (random.standard_normal(shape, np.float32) for _ in range(4))
        self.query, self.key, self.value, self.out_gradient = (held_in(case.type, numbers) for numbers in drawn)

    @functools.cached_property
    def truth(self):
        """In float64, one head after another."""
        case, scale = self.case, self.case.head_dim**-0.5
        results = tuple(np.empty(self.query.shape) for _ in range(4))
        hidden = np.triu(np.full((case.length, case.length), -np.inf), 1) if case.causal else 0.0
        for head in range(case.heads):
            inputs = (self.query, self.key, self.value, self.out_gradient)
            query, key, value, out_gradient = (tensor[0, :, head].astype(np.float64) for tensor in inputs)
            weights = query @ key.T * scale + hidden
            weights = np.exp(weights - weights.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            out = weights @ value
            scores = weights * (out_gradient @ value.T - np.sum(out * out_gradient, axis=1, keepdims=True)) * scale
            for result, rows in zip(results, (out, scores @ key, scores.T @ query, weights.T @ out_gradient)):
                result[0, :, head] = rows
        return results

    def error(self, results):
        if self.case.dropout:
            return self.dropout_error(*(tensor.astype(np.float64) for tensor in results))
        return max(worst_error_of_all(ours, truth) for ours, truth in zip(results, self.truth))

    def dropout_error(self, out, query_gradient, key_gradient, value_gradient):
        """Everybody drops weights of their own choice. Whatever was dropped, the output is linear in the values, and scores turn alike with
        queries and keys; and a tenth of the output's energy comes from what was dropped."""
        linear = np.sum(out * self.out_gradient) - np.sum(value_gradient * self.value)
        alike = np.sum(query_gradient * self.query) - np.sum(key_gradient * self.key)
        norms = np.linalg.norm(value_gradient) * np.linalg.norm(self.value), np.linalg.norm(key_gradient) * np.linalg.norm(self.key)
        dropped = np.linalg.norm(out - self.truth[0]) / np.linalg.norm(self.truth[0])
        if not 0.2 < dropped < 0.5:
            return np.inf  # √(0.1 / 0.9) of the norm, where weights are spread
        return max(abs(linear) / norms[0], abs(alike) / norms[1])


class LayerTrainingProblem:
    """x and the gradient of the output, [B, L, width]. Parameters are drawn by headlight and given to the others by name; a result is
    (y, dx, gradient of linear1.weight)."""

    def __init__(self, case):
        random = np.random.default_rng(1)
        self.case = case
        shape = (case.batch, case.length, case.width)
        self.x, self.y_gradient = (random.standard_normal(shape, np.float32) for _ in range(2))
        self.parameters = {}

    @functools.cached_property
    def truth(self):
        import pytorch_peer  # whose autograd in float64 shares nothing with its fast paths

        return pytorch_peer.layer_in_float64(self)

    def error(self, results):
        return max(worst_error_of_all(ours, truth) for ours, truth in zip(results, self.truth))


def held_in(type, numbers):
    """As float32, what numbers of that type hold of them."""
    return numbers.astype(ml_dtypes.bfloat16).astype(np.float32) if type == "bfloat16" else numbers


def sampled(rows):
    return np.unique(np.linspace(0, rows - 1, CHECKED_ROWS).astype(int))


def worst_error(out, truth):
    """The largest error of an element, over the norm of its row. Plain float32 stays below 1e-6, bfloat16 does not below 1e-4."""
    return float(np.max(np.abs(out - truth) / np.linalg.norm(truth, axis=-1, keepdims=True)))


def worst_error_of_all(out, truth):
    """The largest error of an element, over the largest norm of a row: gradients have rows of nothing."""
    return float(np.max(np.abs(out - truth)) / np.max(np.linalg.norm(truth, axis=-1)))


def make(case):
    kinds = {"gemm": GemmProblem, "minilm": EncoderProblem, "families": FamilyProblem, "attention_backward": AttentionTrainingProblem,
             "training": LayerTrainingProblem}  # fmt: skip
    return kinds.get(case.suite, AttentionProblem)(case)
