"""Hidden states and scores of small models of every family, by Transformers' own code, in float64.

families.jsonl: cases, each with what its folder holds beside the weights: config.json as published, its tensors as the file names
them ([name, shape, scale, mean], drawn from a seed in this order), and a tokenizer.json: one of tokenizers/ with changes.
truncations.jsonl: texts and pairs of texts, cut at several lengths by Hugging Face's tokenizers: behind each tokenizer, [first, second
or null, length, ids, types].
families.npy: for each case, float64. Of hidden states: for its rows of ids and mask, hidden [B, L, E], zeros where masked; then the
means of each row's, divided by their length [B, E]. Of scores: for its pairs of texts, the scores [pairs, labels].

Transformers reads the same folder, config.json in the spelling that it knows (`transformers`, where that is another).
"""

import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import tokenizers
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

from seeded import Random

here = pathlib.Path(os.path.dirname(os.path.abspath(__file__)))
SEED, WIDTH, LENGTH = 31, 32, 13
TEXTS = ["the city of New York", "a", "What is café society?", "", "the streets are long and the lights are many, they say, in the city"]

BERT_LIKE = {"hidden_size": WIDTH, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 40}
LLAMA_LIKE = {**BERT_LIKE, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "intermediate_size": 44}
WORD_PIECE, UNIGRAM, BYTES = ("word_piece.jsonl", 450), ("unigram.jsonl", 628), ("byte_level.jsonl", 421)
END = ["<|endoftext|>", 420]
ROBERTA = {"post_processor": {"type": "RobertaProcessing", "cls": END, "sep": END, "trim_offsets": True, "add_prefix_space": False}}

MPNET = {"post_processor": {**ROBERTA["post_processor"], "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}}


def at_end(token, number):
    """A template that puts one token behind each text."""
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    text = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    return {"post_processor": {"type": "TemplateProcessing", "single": [text[0], special], "pair": [text[0], special, text[1], special],
                               "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}}}}


# name: (class, tokenizer, changes of it, config.json, where it differs what Transformers reads instead)
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10, "rope_theta": 5000.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
NOMIC = {"n_embd": WIDTH, "n_layer": 3, "n_head": 4, "n_inner": 40, "n_positions": 40, "activation_function": "swiglu", "type_vocab_size": 2,
         "layer_norm_epsilon": 1e-6, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "prenorm": False,
         "qkv_proj_bias": False, "causal": False, "auto_map": {"AutoModel": "modeling.NomicBertModel"}}
NOMIC_HERE = {**BERT_LIKE, "hidden_act": "silu", "type_vocab_size": 2, "layer_norm_eps": 1e-6}
NTK = 4.0
GTE = {**BERT_LIKE, "hidden_act": "gelu", "type_vocab_size": 1, "layer_norm_eps": 1e-6}
GEMMA = {**LLAMA_LIKE, "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 10, "sliding_window": 6, "rms_norm_eps": 1e-6}
MODELS = {
    "bert with another tokenizer": ("BertModel", UNIGRAM, {}, {**BERT_LIKE, "type_vocab_size": 2, "tokenizer_class": "XLMRobertaTokenizer"}, None),
    "distilbert": ("DistilBertModel", WORD_PIECE, {}, {
        "dim": WIDTH, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 40, "activation": "gelu"}, None),
    "roberta": ("RobertaModel", BYTES, ROBERTA, {**BERT_LIKE, "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5}, None),
    "xlm-roberta": ("XLMRobertaModel", UNIGRAM, {}, {**BERT_LIKE, "type_vocab_size": 1, "pad_token_id": 1, "hidden_act": "relu"}, None),
    "modernbert": ("ModernBertModel", BYTES, ROBERTA, {
        **BERT_LIKE, "local_attention": 6, "global_attn_every_n_layers": 2, "global_rope_theta": 160000.0, "local_rope_theta": 100.0}, None),
    "modernbert by layer": ("ModernBertModel", BYTES, ROBERTA, {
        **BERT_LIKE, "local_attention": 4, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "norm_bias": True,
        "attention_bias": True, "mlp_bias": True, "norm_eps": 1e-4, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 700.0}, "sliding_attention": {"rope_theta": 50.0}}}, None),
    "nomic_bert": ("NomicBertModel", WORD_PIECE, {}, NOMIC, NOMIC_HERE),
    "nomic_bert by other keys": ("NomicBertModel", WORD_PIECE, {}, {**NOMIC_HERE, "rope_parameters": {"rope_type": "default", "rope_theta": 90.0}}, None),
    "gemma3_text": ("Gemma3TextModel", BYTES, at_end(*END), {
        **GEMMA, "use_bidirectional_attention": True, "sliding_window_pattern": 2, "rope_theta": 1e6, "rope_local_base_freq": 300.0}, None),
    "gemma3_text causal": ("Gemma3TextModel", BYTES, at_end(*END), {
        **GEMMA, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"], "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}}, None),
    "qwen3": ("Qwen3Model", BYTES, at_end(*END), {**LLAMA_LIKE, "hidden_act": "silu", "rope_theta": 1e6, "rms_norm_eps": 1e-6}, None),
    "qwen3 with windows": ("Qwen3Model", BYTES, at_end(*END), {
        **LLAMA_LIKE, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1, "attention_bias": True, "rope_scaling": YARN}, None),
    "eurobert": ("EuroBertModel", BYTES, at_end(*END), {**LLAMA_LIKE, "rope_theta": 250000, "rms_norm_eps": 1e-5}, None),
    "eurobert with biases": ("EuroBertModel", BYTES, at_end(*END), {
        **LLAMA_LIKE, "attention_bias": True, "mlp_bias": True, "rope_parameters": {**LLAMA3, "rope_theta": 400.0}}, None),
    "llama": ("LlamaModel", BYTES, at_end(*END), {**LLAMA_LIKE, "hidden_act": "silu", "rope_theta": 900.0, "rms_norm_eps": 1e-5}, None),
    "llama with biases": ("LlamaModel", BYTES, at_end(*END), {
        **LLAMA_LIKE, "hidden_act": "silu", "attention_bias": True, "mlp_bias": True, "rope_parameters": {**LLAMA3, "rope_theta": 400.0}}, None),
    "llama with both sides": ("LlamaModel", BYTES, at_end(*END), {**LLAMA_LIKE, "hidden_act": "silu", "rope_theta": 900.0, "is_causal": False}, None),
    "qwen3 with windows on both sides": ("Qwen3Model", BYTES, at_end(*END), {
        **LLAMA_LIKE, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1, "rope_theta": 900.0, "is_causal": False}, None),
    "new": ("GteModel", UNIGRAM, {}, {
        **GTE, "position_embedding_type": "rope", "rope_theta": 500.0, "rope_scaling": {"type": "ntk", "factor": NTK}, "pack_qkv": True,
        "layer_norm_type": "layer_norm", "logn_attention_scale": False},
        {**GTE, "rope_parameters": {"rope_type": "linear", "factor": NTK ** (2 / (WIDTH // 4)), "rope_theta": 500.0 * NTK}}),
    "gte": ("GteModel", UNIGRAM, {}, {**GTE, "type_vocab_size": 0, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}, None),
    "mpnet": ("MPNetModel", WORD_PIECE, MPNET, {
        **BERT_LIKE, "relative_attention_num_buckets": 32, "pad_token_id": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}, None),
}
CLASSIFIERS = {
    "bert": ("BertForSequenceClassification", WORD_PIECE, {}, {**BERT_LIKE, "layer_norm_eps": 1e-6, "type_vocab_size": 2}, None),
    "distilbert": ("DistilBertForSequenceClassification", *MODELS["distilbert"][1:]),
    "roberta": ("RobertaForSequenceClassification", *MODELS["roberta"][1:]),
    "xlm-roberta": ("XLMRobertaForSequenceClassification", *MODELS["xlm-roberta"][1:]),
    "modernbert": ("ModernBertForSequenceClassification", BYTES, ROBERTA, {
        **MODELS["modernbert"][3], "classifier_pooling": "cls", "classifier_bias": True}, None),
    "modernbert by the mean": ("ModernBertForSequenceClassification", BYTES, ROBERTA, {
        **MODELS["modernbert"][3], "classifier_pooling": "mean", "classifier_activation": "relu", "norm_bias": True}, None),
    "nomic_bert": ("NomicBertForSequenceClassification", *MODELS["nomic_bert"][1:]),
    "new": ("GteForSequenceClassification", *MODELS["new"][1:]),
    "mpnet": ("MPNetForSequenceClassification", *MODELS["mpnet"][1:]),
    "qwen3": ("Qwen3ForSequenceClassification", *MODELS["qwen3"][1:]),
    "eurobert": ("EuroBertForSequenceClassification", *MODELS["eurobert"][1:]),
    "eurobert by the mean": ("EuroBertForSequenceClassification", BYTES, at_end(*END), {**MODELS["eurobert"][3], "classifier_pooling": "mean"}, None),
    "eurobert by the first": ("EuroBertForSequenceClassification", BYTES, at_end(*END), {**MODELS["eurobert"][3], "classifier_pooling": "bos"}, None),
    "llama": ("LlamaForSequenceClassification", *MODELS["llama"][1:]),
}
LABELS = {"bert": 3, "modernbert by the mean": 2, "eurobert by the mean": 4}


def model_type(name):
    return name.split(" ")[0]


def scale_of(name, shape):
    if len(shape) == 1:
        is_norm = "orm" in name or "_ln." in name
        around = 1.0 if is_norm and name.endswith("weight") else 0.0
        return 0.25, around
    return (0.5 if "embed" in name and "norm" not in name else 0.25), 0.0


def tensors_of(model):
    """What the model's file would hold, with the numbers of a seed."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(pathlib.Path(folder) / "model.safetensors", "pt") as file:
            shapes = {name: list(file.get_slice(name).get_shape()) for name in sorted(file.keys())}
    listed = [[name, shape, *scale_of(name, shape)] for name, shape in shapes.items()]
    if "gemma" in model.config.model_type:  # whose weights of norms are what is added to 1
        listed = [[name, shape, scale, 0.0] for name, shape, scale, around in listed]
    random = Random(SEED)
    return listed, {name: np.float32(around) + random.normal(shape, scale) for name, shape, scale, around in listed}


def load(name, entry, labels=None):
    kind, tokenizer, changes, config, other = entry
    published = {"model_type": model_type(name), "vocab_size": tokenizer[1], **config}
    read = {**(config if other is None else other), "vocab_size": tokenizer[1]}
    if labels:
        # Published folders name the labels, and how many there are follows.
        more = {"architectures": [kind], "id2label": {str(n): f"LABEL_{n}" for n in range(labels)}}
        published, read = {**published, **more}, {**read, "id2label": {n: f"LABEL_{n}" for n in range(labels)}}
    read.setdefault("pad_token_id", 3)
    cls = getattr(transformers, kind)
    listed, tensors = tensors_of(cls(cls.config_class(**json.loads(json.dumps(read)))))
    with tempfile.TemporaryDirectory() as name_:
        folder = pathlib.Path(name_)
        cls.config_class(**json.loads(json.dumps(read))).save_pretrained(folder)
        save_file({key: torch.from_numpy(np.array(value)) for key, value in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
        model, info = cls.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    return model.eval(), published, listed


def rows(vocabulary, padding):
    """Three rows: whole, shorter, and with padding in front."""
    random = Random(SEED + 1)
    ids = (random.words(3 * LENGTH) % np.uint64(vocabulary - 5)).astype(np.int64).reshape(3, LENGTH) + 4
    mask = np.ones_like(ids)
    mask[1, 7:] = 0
    mask[2, :4] = 0
    ids[mask == 0] = padding
    return ids, mask


def hidden_case(name, entry):
    model, config, listed = load(name, entry)
    ids, mask = rows(entry[1][1], 1)
    hidden = np.zeros((*ids.shape, WIDTH))
    by_ids = "roberta" in name or name == "mpnet"
    for row, seen in enumerate(mask != 0):
        if by_ids:  # which finds positions from the ids of padding
            given = {"input_ids": ids[row], "attention_mask": mask[row]}
        else:
            given = {"input_ids": ids[row, seen], "position_ids": np.flatnonzero(seen)}
        with torch.no_grad():
            states = model(**{key: torch.from_numpy(value)[None] for key, value in given.items()}).last_hidden_state[0].numpy()
        hidden[row, seen] = states[seen] if by_ids else states
    mean = hidden.sum(1)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    assert np.isfinite(hidden).all() and np.isfinite(mean).all()
    return {"name": name, "config": config, "tensors": listed, "tokenizer": {"file": entry[1][0], "changes": entry[2]},
            "ids": ids.tolist(), "mask": mask.tolist()}, [hidden, mean]


def tokenizer_of(entry):
    first = json.loads((here / "tokenizers" / entry[1][0]).read_text(encoding="utf-8").splitlines()[0])["tokenizer"]
    return tokenizers.Tokenizer.from_str(json.dumps({**first, **entry[2]}))


def score_case(name, entry):
    labels = LABELS.get(name, 1)
    model, config, listed = load(name, entry, labels)
    tokenizer = tokenizer_of(entry)
    pairs = [(query, text) for query in TEXTS[:3] for text in TEXTS]
    scores = []
    longest = 37 if "max_position_embeddings" in config and "pad_token_id" in config else 40
    tokenizer.enable_truncation(longest)
    for pair in pairs:
        encoding = tokenizer.encode(*pair)
        types = {"token_type_ids": torch.tensor([encoding.type_ids])} if config.get("type_vocab_size", 0) > 1 or "n_embd" in config else {}
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([encoding.ids]), **types).logits[0]
        # As sentence-transformers' CrossEncoder does where no file names a function.
        scores.append((torch.sigmoid(logits) if labels == 1 else logits).numpy())
    return {"name": name, "config": config, "tensors": listed, "tokenizer": {"file": entry[1][0], "changes": entry[2]},
            "pairs": pairs, "longest": longest, "labels": labels}, [np.stack(scores)]


def truncations():
    tokens = [(WORD_PIECE, {}), (UNIGRAM, {}), (BYTES, ROBERTA), (BYTES, at_end(*END)), (BYTES, {})]
    for file, changes in tokens:
        tokenizer = tokenizer_of((None, file, changes))
        yield {"file": file[0], "changes": changes}
        for second in (None, TEXTS[1], TEXTS[2], TEXTS[4]):
            around = len(tokenizer.encode("", second and "").ids)
            for first in TEXTS:
                for length in (around, around + 1, around + 5, around + 8):
                    tokenizer.enable_truncation(length)
                    encoding = tokenizer.encode(first, second)
                    yield [first, second, length, encoding.ids, encoding.type_ids]
                tokenizer.no_truncation()


def main():
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    cases, numbers = [], []
    for make, entries in ((hidden_case, MODELS), (score_case, CLASSIFIERS)):
        for name, entry in entries.items():
            case, arrays = make(name, entry)
            cases.append(case)
            numbers += arrays
            print(make.__name__, name, [array.shape for array in arrays], float(np.abs(arrays[0]).max()), file=sys.stderr)
    text = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    (here / "families.jsonl").write_text("# Made by families.py.\n" + text, encoding="utf-8")
    lines = "".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in truncations())
    (here / "truncations.jsonl").write_text("# Made by families.py.\n" + lines, encoding="utf-8")
    np.save(here / "families.npy", np.concatenate([array.ravel() for array in numbers]).astype(np.float64))


if __name__ == "__main__":
    main()
