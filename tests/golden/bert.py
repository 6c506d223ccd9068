"""Hidden states of BERT models by Hugging Face transformers, in float64.

bert_tiny.npy: for every activation, a seeded tiny BERT on three masked rows of ids: hidden [3, 9, 24], then the mean-pooled,
normalised vectors [3, 24].
minilm.npy (with the path of the unpacked all-MiniLM-L6-v2 folder as argument): for the texts of minilm_texts(), at most four rows of hidden
states each, float32.
"""

import json
import os
import sys

import numpy as np
import torch
from transformers import BertConfig, BertModel

from seeded import Random

here = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEADS, INNER, LAYERS, POSITIONS, TYPES, VOCABULARY = 24, 3, 40, 2, 12, 2, 31
LENGTH = 9
MASK = [[1] * 9, [1] * 5 + [0] * 4, [1, 1, 0, 1, 0, 1, 1, 0, 0]]


def weights(vocabulary=VOCABULARY, positions=POSITIONS):
    """The same tensors, in the same order, as tests/models/tiny_bert.h draws them."""
    random = Random(2024)
    tensors = {}

    def draw(name, shape, scale, around=0.0):
        tensors[name] = np.float32(around) + random.normal(shape, scale)

    def linear(name, out, inside):
        draw(name + ".weight", (out, inside), 0.25)
        draw(name + ".bias", (out,), 0.25)

    def norm(name):
        draw(name + ".LayerNorm.weight", (WIDTH,), 0.25, 1.0)
        draw(name + ".LayerNorm.bias", (WIDTH,), 0.25)

    for table, rows in (("word", vocabulary), ("position", positions), ("token_type", TYPES)):
        draw(f"embeddings.{table}_embeddings.weight", (rows, WIDTH), 0.5)
    norm("embeddings")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            linear(prefix + "attention.self." + part, WIDTH, WIDTH)
        linear(prefix + "attention.output.dense", WIDTH, WIDTH)
        norm(prefix + "attention.output")
        linear(prefix + "intermediate.dense", INNER, WIDTH)
        linear(prefix + "output.dense", WIDTH, INNER)
        norm(prefix + "output")
    return tensors


def pool(hidden, mask):
    mean = (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
    return mean / mean.norm(dim=1, keepdim=True)


def tiny():
    numbers = []
    ids = torch.tensor([[(7 * (LENGTH * row + column) + 3) % VOCABULARY for column in range(LENGTH)] for row in range(3)])
    mask = torch.tensor(MASK)
    for activation in ("gelu", "gelu_new", "relu"):
        config = BertConfig(
            vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            intermediate_size=INNER, hidden_act=activation, max_position_embeddings=POSITIONS, type_vocab_size=TYPES,
            layer_norm_eps=1e-5, attn_implementation="eager")
        model = BertModel(config, add_pooling_layer=False).double().eval()
        state = {name: torch.from_numpy(values).double() for name, values in weights().items()}
        missing = model.load_state_dict(state, strict=False)
        assert not missing.unexpected_keys and all("_ids" in key for key in missing.missing_keys), missing
        with torch.no_grad():
            hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
        numbers += [hidden.flatten().numpy(), pool(hidden, mask).flatten().numpy()]
    np.save(os.path.join(here, "bert_tiny.npy"), np.concatenate(numbers))


def minilm_texts():
    """[text, ids]: the first cases of tokenizer_cases.jsonl, and one that is longer than the model takes."""
    with open(os.path.join(here, "tokenizer_cases.jsonl"), encoding="utf-8", newline="\n") as file:
        cases = [json.loads(line) for line in file]
    return cases[:62] + [case for case in cases if len(case[0]) > 3000]


def chosen_rows(length):
    """At most four, evenly spaced, the first and the last among them."""
    return sorted({step * (length - 1) // 3 for step in range(4)})


def minilm(folder):
    model = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").double().eval()
    rows = []
    for case in minilm_texts():
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([case[1]])).last_hidden_state[0]
        rows.append(hidden[chosen_rows(len(case[1]))].float().numpy())
    np.save(os.path.join(here, "minilm.npy"), np.concatenate(rows))
    print(len(rows), "texts,", sum(len(r) for r in rows), "rows")


if __name__ == "__main__":
    tiny()
    if len(sys.argv) > 1:
        minilm(sys.argv[1])
