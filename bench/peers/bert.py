"""The weights of all-MiniLM-L6-v2, or seeded ones of that shape where tools/run has not fetched them, and the model in float64."""

import functools
import json
import math
import pathlib
import struct
from dataclasses import dataclass

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "downloads/all-MiniLM-L6-v2"
SEEDED = ROOT / "build/peers/seeded-MiniLM"
CONFIG = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": 384, "intermediate_size": 1536, "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512, "num_attention_heads": 12, "num_hidden_layers": 6, "type_vocab_size": 2, "vocab_size": 30522,
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    folder: pathlib.Path
    config: dict
    tensors: dict  # by their names in BERT files

    def layer(self, number):
        """The tensors of one layer, by the end of their names: `attention.self.query.weight` and so on."""
        prefix = f"encoder.layer.{number}."
        return {name.removeprefix(prefix): tensor for name, tensor in self.tensors.items() if name.startswith(prefix)}

    @property
    def layers(self):
        return range(self.config["num_hidden_layers"])

    @property
    def heads(self):
        return self.config["num_attention_heads"]

    @property
    def epsilon(self):
        return self.config["layer_norm_eps"]

    def embedded(self, length):
        """Position and token type together [length, width]: what is added to every sequence."""
        return self.tensors["embeddings.position_embeddings.weight"][:length] + self.tensors["embeddings.token_type_embeddings.weight"][0]


@functools.cache
def load():
    if not (PUBLISHED / "model.safetensors").exists():
        if not (SEEDED / "model.safetensors").exists():
            write_seeded(SEEDED)
        return read(SEEDED)
    return read(PUBLISHED)


def read(folder):
    data = (folder / "model.safetensors").read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], np.float32).reshape(entry["shape"])
    return Model(folder, json.loads((folder / "config.json").read_text()), tensors)


def shapes():
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    linear = lambda name, out, inside: {f"{name}.weight": (out, inside), f"{name}.bias": (out,)}
    norm = lambda name: {f"{name}.LayerNorm.weight": (width,), f"{name}.LayerNorm.bias": (width,)}
    tables = {"word": "vocab_size", "position": "max_position_embeddings", "token_type": "type_vocab_size"}
    found = {f"embeddings.{name}_embeddings.weight": (CONFIG[rows], width) for name, rows in tables.items()} | norm("embeddings")
    for number in range(CONFIG["num_hidden_layers"]):
        prefix = f"encoder.layer.{number}."
        for part in ("query", "key", "value"):
            found |= linear(f"{prefix}attention.self.{part}", width, width)
        found |= linear(f"{prefix}attention.output.dense", width, width) | norm(f"{prefix}attention.output")
        found |= linear(f"{prefix}intermediate.dense", inner, width)
        found |= linear(f"{prefix}output.dense", width, inner) | norm(f"{prefix}output")
    return found


def write_seeded(folder):
    random = np.random.default_rng(1)
    header, offset = {}, 0
    for name, shape in shapes().items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"word{n}" for n in range(CONFIG["vocab_size"] - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes().items():
            around = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            file.write((around + 0.05 * random.standard_normal(shape)).astype(np.float32).tobytes())


def hidden_states(model, ids):
    """In float64: ids [B, L] → [B, L, width]."""
    wide = lambda tensor: tensor.astype(np.float64)
    linear = lambda x, tensors, name: x @ wide(tensors[name + ".weight"]).T + wide(tensors[name + ".bias"])

    def norm(x, tensors, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + model.epsilon)
        return scaled * wide(tensors[name + ".LayerNorm.weight"]) + wide(tensors[name + ".LayerNorm.bias"])

    batch, length = ids.shape
    error_function = np.vectorize(math.erf)
    x = wide(model.tensors["embeddings.word_embeddings.weight"][ids]) + wide(model.embedded(length))
    x = norm(x, model.tensors, "embeddings")
    for number in model.layers:
        layer = model.layer(number)
        heads = lambda part: linear(x, layer, f"attention.self.{part}").reshape(batch, length, model.heads, -1).transpose(0, 2, 1, 3)
        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (weights / weights.sum(-1, keepdims=True)) @ value
        seen = seen.transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(x + linear(seen, layer, "attention.output.dense"), layer, "attention.output")
        inner = linear(x, layer, "intermediate.dense")
        inner = 0.5 * inner * (1 + error_function(inner / np.sqrt(2)))
        x = norm(x + linear(inner, layer, "output.dense"), layer, "output")
    return x
