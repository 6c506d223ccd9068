"""Vectors of texts by small model folders, by sentence-transformers and Transformers, in float64.

model_folders.jsonl: cases, each with what its folder holds beside the weights, and the token ids of each text.
model_folders.npy: for each case the vectors of its texts, [texts, width], divided by their length, float64.

Every folder begins as BASE; a case changes or adds members of files ({"config.json": {"vocab_size": 40}}), puts texts in the
place of whole files, or takes files away (null). The weights are those of bert.py, with as many rows as config.json says;
a module's are drawn from the seed that stands beside its file (WEIGHTS).
"""

import copy
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import bert
from seeded import Random

here = os.path.dirname(os.path.abspath(__file__))
TEXTS = ["A new city", "the Straße in New York, café!", "b [MASK] abb\u4e2d\u56fdB", "Tok tokAB [TOK] x<tok> tok.\u00e9  <tok>y"]
WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e ##a ##b ##ab the new york city in , . ! caf cafe café Café A New York B Tok tok ##s
 ##tr \u4e2d \u56fd x y ##y strasse Stra ##ße < > ab s q t _t""".split()
ROWS, POSITIONS = 56, 24

BASE = {
    "config.json": {
        "model_type": "bert", "vocab_size": ROWS, "hidden_size": bert.WIDTH, "num_hidden_layers": bert.LAYERS,
        "num_attention_heads": bert.HEADS, "intermediate_size": bert.INNER, "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS, "type_vocab_size": bert.TYPES, "layer_norm_eps": 1e-5},
    "vocab.txt": "\n".join(WORDS) + "\n",
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}],
    "1_Pooling/config.json": {"word_embedding_dimension": bert.WIDTH, "pooling_mode": "mean"},
}
TOKENIZER_JSON = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [
        {"id": n, "content": WORDS[n], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for n in range(5)],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {t: {"id": t, "ids": [n], "tokens": [t]} for n, t in ((2, "[CLS]"), (3, "[SEP]"))}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {word: n for n, word in enumerate(WORDS)}},
}
MASK = {"content": "[MASK]", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def token(content, **flags):
    return {**MASK, "content": content, "special": False, **flags}


def modules(*entries):
    """Of (path, type) behind the Transformer."""
    entries = [("", "Transformer"), *entries]
    return [{"idx": n, "name": str(n), "path": path, "type": "sentence_transformers.models." + kind} for n, (path, kind) in enumerate(entries)]


def dense(width, out, **more):
    return {"in_features": width, "out_features": out, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh", **more}


def with_json(**parts):
    document = copy.deepcopy(TOKENIZER_JSON)
    for path, value in parts.items():
        place = document
        *parents, last = path.split("__")
        for parent in parents:
            place = place[parent]
        place[last] = value
    return document


def cases():
    """(name, changes, arguments of encode)"""
    W = bert.WIDTH
    yield "plain", {}, {}
    for mode in ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"):
        yield "pooling " + mode, {"1_Pooling/config.json": {"pooling_mode": mode}}, {}
    yield "poolings in a list", {"1_Pooling/config.json": {"pooling_mode": ["max", "cls", "mean"]}}, {}
    older = {"pooling_mode": None, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False,
             "pooling_mode_mean_sqrt_len_tokens": True, "pooling_mode_weightedmean_tokens": False, "pooling_mode_lasttoken": False}
    yield "poolings by older keys", {"1_Pooling/config.json": older}, {}
    yield "pooling by an older key", {"1_Pooling/config.json": {"pooling_mode": None, "pooling_mode_cls_token": True}}, {}
    yield "no pooling by older keys", {"1_Pooling/config.json": {"pooling_mode": None, "pooling_mode_cls_token": False}}, {}
    yield "pooling at another path", {"modules.json": modules(("9_Other/place", "Pooling")), "9_Other/place/config.json": {"embedding_dimension": W, "pooling_mode": "cls"}}, {}
    yield "dense at another path", {"modules.json": modules(("1_Pooling", "Pooling"), ("3_Dense", "Dense")), "3_Dense/config.json": dense(W, 10)}, {}
    layers = modules(("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Normalize", "Normalize"), ("4_Dense", "Dense"), ("5_Dropout", "Dropout"))
    identity = {"activation_function": "torch.nn.modules.linear.Identity", "bias": False}
    yield "layers in their order", {
        "modules.json": layers, "2_Dense/config.json": dense(2 * W, 30, **identity), "4_Dense/config.json": dense(30, 7),
        "5_Dropout/config.json": {"dropout": 0.5}, "1_Pooling/config.json": {"pooling_mode": ["mean", "max"]}}, {}
    for function in ("ReLU", "GELU", "SiLU", "Sigmoid"):
        yield "dense " + function, {"modules.json": modules(("1_Pooling", "Pooling"), ("2_Dense", "Dense")),
                                    "2_Dense/config.json": dense(W, 12, activation_function="torch.nn.modules.activation." + function)}, {}
    yield "layer norm", {"modules.json": modules(("1_Pooling", "Pooling"), ("2_LayerNorm", "LayerNorm"), ("3_Normalize", "Normalize")),
                         "2_LayerNorm/config.json": {"dimension": W}}, {}
    prompts = {"prompts": {"query": "the city: ", "passage": ""}, "default_prompt_name": None}
    yield "prompt by name", {"config_sentence_transformers.json": prompts}, {"prompt_name": "query"}
    yield "prompt by default", {"config_sentence_transformers.json": {**prompts, "default_prompt_name": "query"}}, {}
    for mode in ("mean", "cls", "max", "weightedmean", "lasttoken", "mean_sqrt_len_tokens"):
        yield "prompt left out of " + mode, {"config_sentence_transformers.json": {**prompts, "default_prompt_name": "query"},
                                             "1_Pooling/config.json": {"pooling_mode": mode, "include_prompt": False}}, {}
    yield "max_seq_length", {"sentence_bert_config.json": {"max_seq_length": 6}}, {}
    yield "model_max_length", {"sentence_bert_config.json": {"max_seq_length": None, "do_lower_case": False}, "tokenizer_config.json": {"model_max_length": 5}}, {}
    yield "model_max_length without end", {"tokenizer_config.json": {"model_max_length": 1000000000000000019884624838656}}, {}
    yield "max_seq_length before model_max_length", {"sentence_bert_config.json": {"max_seq_length": 7}, "tokenizer_config.json": {"model_max_length": 5}}, {}
    cased = {"tokenizer_config.json": {"do_lower_case": False}}
    yield "cased", cased, {}
    yield "cased, then do_lower_case", {**cased, "sentence_bert_config.json": {"max_seq_length": 20, "do_lower_case": True}}, {}
    yield "accents stay", {"tokenizer_config.json": {"strip_accents": False}}, {}
    yield "ideographs stay", {"tokenizer_config.json": {"tokenize_chinese_chars": False}}, {}
    yield "another vocabulary in tokenizer.json", {"tokenizer.json": with_json(model__vocab={w: n for n, w in enumerate(WORDS[:5] + WORDS[:4:-1])})}, {}
    yield "tokenizer.json alone", {"tokenizer.json": TOKENIZER_JSON, "vocab.txt": None}, {}
    whole = {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "pad_token": "[PAD]"}}
    yield "cased by tokenizer.json", {**whole, "tokenizer.json": with_json(normalizer__lowercase=False)}, {}
    yield "tokenizer.json before BertTokenizer", {"tokenizer.json": with_json(normalizer__lowercase=False)}, {}
    yield "no clean-up", {**whole, "tokenizer.json": with_json(normalizer__clean_text=False)}, {}
    yield "no normalizer", {**whole, "tokenizer.json": with_json(normalizer=None)}, {}
    yield "another prefix", {**whole, "tokenizer.json": with_json(model__continuing_subword_prefix="_")}, {}
    yield "short words", {**whole, "tokenizer.json": with_json(model__max_input_chars_per_word=3)}, {}
    yield "another unknown", {**whole, "tokenizer.json": with_json(model__unk_token="q")}, {}
    yield "other ends", {**whole, "tokenizer.json": with_json(post_processor={"type": "BertProcessing", "sep": ["x", WORDS.index("x")], "cls": ["y", WORDS.index("y")]})}, {}
    yield "other names", {"tokenizer_config.json": {"cls_token": "x", "sep_token": "y", "unk_token": "q", "mask_token": "the"}}, {}
    size = len(WORDS)
    decoder = {str(n): {**MASK, "content": WORDS[n]} for n in range(5)}

    def added(*tokens):
        new = [one["content"] for one in tokens if one["content"] not in WORDS]
        ids = [str((WORDS + new).index(one["content"])) for one in tokens]
        return {"tokenizer_config.json": {"added_tokens_decoder": {**decoder, **dict(zip(ids, tokens))}}}

    yield "added token", added(token("tok")), {}
    yield "added token, one word", added(token("tok", single_word=True)), {}
    yield "added token, normalized", added(token("Tok", normalized=True)), {}
    yield "added token, normalized, one word", added(token("tok", normalized=True, single_word=True)), {}
    yield "added token, white space", added(token("<tok>", lstrip=True, rstrip=True)), {}
    yield "added token, white space, normalized", added(token("TOK", lstrip=True, rstrip=True, normalized=True), token("new  york", normalized=True)), {}
    yield "added tokens that begin alike", added(token("to"), token("tok"), token("tokA"), token("\u4e2d\u56fd", normalized=True), token("New York")), {}
    yield "added token of the vocabulary", {"tokenizer_config.json": {"added_tokens_decoder": {**decoder, str(WORDS.index("tok")): token("tok")}}}, {}
    yield "added_tokens.json", {"added_tokens.json": {"[TOK]": size, "tok": WORDS.index("tok"), "a new": size + 1}, "tokenizer_config.json": {"additional_special_tokens": ["tok"]}, "special_tokens_map.json": {"mask_token": "[MASK]"}}, {}
    yield "additional_special_tokens", {"tokenizer_config.json": {"additional_special_tokens": ["Tok", "[TOK]"], "image_token": "city"}}, {}
    yield "extra_special_tokens by name", {"tokenizer_config.json": {"extra_special_tokens": {"a_token": "Tok"}, "bos_token": "<tok>"}}, {}
    yield "special_tokens_map.json", {"special_tokens_map.json": {"cls_token": "x", "mask_token": {**MASK, "content": "tok", "lstrip": True}}}, {}
    more = TOKENIZER_JSON["added_tokens"] + [{**token("tok.", normalized=True), "id": size}]
    yield "added tokens of tokenizer.json", {"tokenizer.json": with_json(added_tokens=more)}, {}
    yield "added tokens of tokenizer.json, all of it", {**whole, "tokenizer.json": with_json(added_tokens=more)}, {}
    yield "no mask", {"vocab.txt": "\n".join(w if w != "[MASK]" else "mask" for w in WORDS) + "\n"}, {}
    yield "empty last lines", {"vocab.txt": "\n".join(WORDS) + "\n" * 20}, {}
    in_folder = {name: None for name in ("config.json", "vocab.txt")}
    yield "transformer in a folder of its own", {
        **in_folder, "0_Transformer/config.json": BASE["config.json"], "0_Transformer/vocab.txt": BASE["vocab.txt"],
        "0_Transformer/sentence_bert_config.json": {"max_seq_length": 8},
        "modules.json": [{**entry, "path": "0_Transformer"} if entry["path"] == "" else entry for entry in BASE["modules.json"]]}, {}


def merged(changes):
    files = copy.deepcopy(BASE)
    for name, change in changes.items():
        if change is None:
            del files[name]
        elif isinstance(change, dict) and isinstance(files.get(name), dict):
            files[name].update(change)
            files[name] = {key: value for key, value in files[name].items() if not (name.startswith("1_") and value is None)}
        else:
            files[name] = change
    return files


def write_weights(files, folder):
    tensors = bert.weights(ROWS, POSITIONS)
    where = "0_Transformer" if "0_Transformer/config.json" in files else ""
    save_file({name: torch.from_numpy(values) for name, values in tensors.items()}, folder / where / "model.safetensors")
    # The same draws as tests/models/golden_folder.h makes.
    random = Random(77)
    for name, document in sorted(files.items()):
        if "in_features" in document:
            drawn = {"linear.weight": random.normal((document["out_features"], document["in_features"]), 0.25)}
            if document["bias"]: drawn["linear.bias"] = random.normal((document["out_features"],), 0.25)
        elif "dimension" in document:
            drawn = {"norm.weight": np.float32(1) + random.normal((document["dimension"],), 0.25), "norm.bias": random.normal((document["dimension"],), 0.25)}
        else:
            continue
        save_file({key: torch.from_numpy(values) for key, values in drawn.items()}, (folder / name).parent / "model.safetensors")


def encode(files, arguments):
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        write_weights(files, folder)
        model = SentenceTransformer(str(folder), device="cpu").double()
        # One by one: a text's vector is that of the text alone.
        vectors = np.stack([model.encode([text], **arguments)[0].astype(np.float64) for text in TEXTS])
        ids = [model.tokenizer(text)["input_ids"] for text in TEXTS]
    assert np.isfinite(vectors).all()
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), ids


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    written, numbers = [], []
    for name, changes, arguments in cases():
        files = merged(changes)
        vectors, ids = encode(files, arguments)
        print(name, vectors.shape, ids[2], ids[3], file=sys.stderr)
        kept = {path: content for path, content in files.items() if content != BASE.get(path)}
        gone = [path for path in BASE if path not in files]
        written.append({"name": name, "files": kept, "without": gone, "prompt": arguments.get("prompt_name", ""), "ids": ids, "width": vectors.shape[1]})
        numbers.append(vectors.ravel())
    lines = [json.dumps({"base": BASE, "texts": TEXTS}, ensure_ascii=True)] + [json.dumps(case, ensure_ascii=True) for case in written]
    with open(os.path.join(here, "model_folders.jsonl"), "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")
    np.save(os.path.join(here, "model_folders.npy"), np.concatenate(numbers))


if __name__ == "__main__":
    main()
