#!/usr/bin/env python3
"""PyTorch in training, float64: twenty SGD steps of a two-layer encoder, Post-LN and Pre-LN, and AdamW on given gradients.

Writes training.npy, float64 in one row. For each normalisation the twenty losses, then every parameter after the last step, by ascending
name; then the numbers of AdamW after ten steps. From the seed come, in this order: the weights, by ascending name, as in layers.py;
token ids, token types and labels. AdamW (seed 3): the values, then the gradients of each step.
"""

import pathlib
import sys

import numpy as np
import torch

from layers import fill
from seeded import Random

HERE = pathlib.Path(__file__).parent
VOCABULARY, POSITIONS, TYPES, CLASSES = 20, 8, 2, 11
WIDTH, HEADS, FEED_FORWARD, SEQUENCES, LENGTH, STEPS = 16, 4, 24, 3, 7, 20


class Encoder(torch.nn.Module):
    """Parameters named as headlight::Encoder names them, and a head beside."""

    def __init__(self, norm_first):
        super().__init__()
        self.norm_first = norm_first
        self.word_embeddings = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.position_embeddings = torch.nn.Embedding(POSITIONS, WIDTH)
        self.token_type_embeddings = torch.nn.Embedding(TYPES, WIDTH)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(WIDTH, HEADS, FEED_FORWARD, dropout=0.0, activation="gelu", norm_first=norm_first,
                                             batch_first=True) for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, ids, types):
        x = self.word_embeddings(ids) + self.position_embeddings(torch.arange(LENGTH)) + self.token_type_embeddings(types)
        if not self.norm_first:
            x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        if self.norm_first:
            x = self.norm(x)
        return self.head(x)


def integers(random, shape, count):
    return torch.from_numpy((random.words(int(np.prod(shape))) % np.uint64(count)).astype(np.int64).reshape(shape))


def train(seed, norm_first):
    random = Random(seed)
    model = Encoder(norm_first)
    fill(model, random)
    ids = integers(random, (SEQUENCES, LENGTH), VOCABULARY)
    types = integers(random, (SEQUENCES, LENGTH), TYPES)
    labels = integers(random, (SEQUENCES, LENGTH), CLASSES)
    labels[:, 0] = -100
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids, types).reshape(-1, CLASSES), labels.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"losses {losses[0]:.4f} to {losses[-1]:.4f}", file=sys.stderr)
    parameters = [parameter.detach().numpy().ravel() for _, parameter in sorted(model.named_parameters())]
    return np.concatenate([losses] + parameters)


def adamw():
    random = Random(3)
    values = torch.nn.Parameter(torch.from_numpy(random.normal((100,))))
    optimizer = torch.optim.AdamW([values], lr=0.01, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)
    for _ in range(10):
        values.grad = torch.from_numpy(random.normal((100,)))
        optimizer.step()
    return values.detach().numpy().astype(np.float64)


def main():
    numbers = np.concatenate([train(1, False), train(2, True), adamw()])
    np.save(HERE / "training.npy", numbers)
    print(f"training.npy: {numbers.nbytes} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
