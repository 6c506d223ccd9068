"""Models of families.jsonl as GGUF files, by the package gguf of ggml's authors and the rules of llama.cpp's converters.

gguf_names.jsonl: for each architecture, {"family": the case of families.jsonl, "architecture", "names": {tensor of the folder: tensor of
the GGUF file}}, by the package's own table.
gguf_qwen3.gguf: the case "qwen3", matrices in float16.
"""

import json
import os
import pathlib

import gguf
import numpy as np

from seeded import Random

here = pathlib.Path(os.path.dirname(os.path.abspath(__file__)))
SEED = 31
ARCHITECTURES = {
    "bert with another tokenizer": "bert", "roberta": "bert", "xlm-roberta": "bert", "nomic_bert": "nomic-bert",
    "modernbert": "modern-bert", "gemma3_text": "gemma-embedding", "gemma3_text causal": "gemma3", "qwen3": "qwen3",
    "eurobert": "eurobert", "eurobert with biases": "eurobert", "llama": "llama",
}


def cases():
    for line in (here / "families.jsonl").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            case = json.loads(line)
            if "ids" in case:
                yield case


def names_of(case, architecture):
    number = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    table = gguf.get_tensor_name_map(number, 8)
    names = {}
    for name, *_ in case["tensors"]:
        name_there = table.get_name(name.removeprefix("model."), (".weight", ".bias"))
        # The table of EmbeddingGemma has names without the prefix, that of Gemma 3 those with it.
        name_there = name_there or table.get_name("model." + name.removeprefix("model."), (".weight", ".bias"))
        if name_there:
            names[name] = name_there
    return names


def tensors_of(case):
    random = Random(SEED)
    return {name: np.float32(around) + random.normal(shape, scale) for name, shape, scale, around in case["tensors"]}


def add_byte_level(writer, tokenizer):
    """The keys of a byte-level BPE whose tokenizer.json puts a token behind each text."""
    vocabulary = tokenizer["model"]["vocab"]
    added = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    tokens = {number: token for token, number in vocabulary.items()} | added
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokens[number] for number in range(len(tokens))])
    writer.add_token_types([gguf.TokenType.CONTROL if number in added else gguf.TokenType.NORMAL for number in range(len(tokens))])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(420)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(True)


def in_order_of_pairs(values, heads):
    """Llama's queries or keys as its converter has them: of each head one row of the first half after one of the second."""
    return values.reshape(heads, 2, -1, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def write(path, case, names, architecture, dtype=np.float32):
    config = case["config"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "sliding_window" in config:
        writer.add_sliding_window(config["sliding_window"])
        writer.add_sliding_window_pattern(config["sliding_window_pattern"])
        writer.add_rope_freq_base_swa(config["rope_local_base_freq"])
    writer.add_pooling_type(gguf.PoolingType.LAST)
    first = json.loads((here / "tokenizers" / case["tokenizer"]["file"]).read_text(encoding="utf-8").splitlines()[0])
    add_byte_level(writer, {**first["tokenizer"], **case["tokenizer"]["changes"]})
    for name, values in tensors_of(case).items():
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + np.float32(1)
        if architecture == "llama" and name.split(".")[-2] in ("q_proj", "k_proj"):
            values = in_order_of_pairs(values, config["num_attention_heads" if ".q_proj." in name else "num_key_value_heads"])
        writer.add_tensor(names[name], values.astype(dtype) if values.ndim > 1 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    lines = ["# Made by gguf_models.py."]
    for case in cases():
        architecture = ARCHITECTURES.get(case["name"])
        if architecture is None:
            continue
        names = names_of(case, architecture)
        lines.append(json.dumps({"family": case["name"], "architecture": architecture, "names": names}))
        if case["name"] == "qwen3":
            write("gguf_qwen3.gguf", case, names, architecture, np.float16)
    (here / "gguf_names.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
