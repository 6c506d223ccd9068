#!/usr/bin/env python3
"""Angles of rotary position embeddings of every kind, by the functions of Transformers in float64.

Writes rotary.npy, float64 in one row: for each case of CASES, as tests/reference/rotary_golden_test.cc has them in the same order, θ of each
pair, and what cos and sin are multiplied by.
"""

import contextlib
import pathlib
from unittest import mock

import numpy as np
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HERE = pathlib.Path(__file__).parent
PAIRS = 8
FACTORS = {"short_factor": [1 + i / 8 for i in range(PAIRS)], "long_factor": [1 + 2 * i for i in range(PAIRS)]}

# Head dim, base, length of the sequence, length of training, and the parameters of Transformers.
CASES = [
    (16, 10000, 7, 64, {"rope_type": "linear", "factor": 1.0}),
    (32, 10000, 7, 64, {"rope_type": "linear", "factor": 1.0, "partial_rotary_factor": 0.5}),
    (16, 500, 7, 64, {"rope_type": "linear", "factor": 2.5}),
    (16, 10000, 40, 64, {"rope_type": "dynamic", "factor": 4.0}),
    (16, 10000, 65, 64, {"rope_type": "dynamic", "factor": 4.0}),
    (16, 10000, 500, 64, {"rope_type": "dynamic", "factor": 1.5}),
    (16, 500000, 7, 8192, {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}),
    (16, 10000, 7, 100, {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 0.5, "high_freq_factor": 3.0}),
    (16, 10000, 7, 4096, {"rope_type": "yarn", "factor": 16.0}),
    (16, 1000, 7, 300, {"rope_type": "yarn", "factor": 4.0, "beta_fast": 8.0, "beta_slow": 2.0, "truncate": False}),
    (16, 10000, 7, 2, {"rope_type": "yarn", "factor": 0.5}),
    (16, 10000, 7, 4096, {"rope_type": "yarn", "factor": 16.0, "attention_factor": 0.75}),
    (16, 10000, 64, 64, {"rope_type": "longrope", "factor": 8.0, **FACTORS}),
    (16, 10000, 65, 64, {"rope_type": "longrope", "factor": 8.0, **FACTORS}),
    (16, 10000, 65, 64, {"rope_type": "longrope", "factor": 1.0, "attention_factor": 1.25, **FACTORS}),
    (32, 10000, 7, 64, {"rope_type": "proportional", "factor": 2.0, "partial_rotary_factor": 0.5}),
]


@contextlib.contextmanager
def float64():
    """Transformers names float32 as the type of all that it computes."""
    with contextlib.ExitStack() as stack:
        for name in ("float", "float32"):
            stack.enter_context(mock.patch.object(torch, name, torch.float64))
        stack.enter_context(mock.patch.object(torch.Tensor, "float", torch.Tensor.double))
        yield


def frequencies(head_dim, base, length, original, parameters):
    config = LlamaConfig(hidden_size=2 * head_dim, num_attention_heads=2, head_dim=head_dim, max_position_embeddings=original)
    config.rope_parameters = {"rope_theta": float(base), "original_max_position_embeddings": original, **parameters}
    function = ROPE_INIT_FUNCTIONS[parameters["rope_type"]]
    theta, factor = function(config, torch.device("cpu"), seq_len=length)
    return theta, float(factor)


def main():
    numbers = []
    for case in CASES:
        as_published, _ = frequencies(*case)
        with float64():
            theta, factor = frequencies(*case)
        assert theta.dtype == torch.float64 and torch.allclose(theta, as_published.double(), rtol=1e-5), case
        numbers += [*theta.tolist(), factor]
    np.save(HERE / "rotary.npy", np.array(numbers))


if __name__ == "__main__":
    main()
