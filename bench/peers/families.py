"""Encoders of other families than BERT: published shapes, seeded weights, PyTorch modules of Hugging Face's Transformers.

A model is written once into build/peers/families, as a folder that headlight loads. What others make of its module lies beside it.
"""

import contextlib
import copy
import functools
import io
import json
import pathlib

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2] / "build/peers/families"
# A row of the table of embeddings is looked up, however many there are. Ids below the first word have meanings of their own.
VOCABULARY, FIRST_WORD = 1000, 3
POSITIONS = 4096
TRACED_TOKENS = 16
OPSET = 17

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def modernbert(shape):
    return transformers.ModernBertModel(transformers.ModernBertConfig(
        **common(shape), local_attention=2 * shape.reach, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
    ))  # fmt: skip


def xlm_roberta(shape):
    options = common(shape) | {"max_position_embeddings": POSITIONS + 2, "type_vocab_size": 1}  # positions begin behind the padding's id
    return transformers.XLMRobertaModel(transformers.XLMRobertaConfig(**options), add_pooling_layer=False)


def embedding_gemma(shape):
    window = 2 * shape.reach  # both sides together
    scale = {"query_pre_attn_scalar": shape.head_dim, "use_bidirectional_attention": True, "sliding_window": window}
    return transformers.Gemma3TextModel(transformers.Gemma3TextConfig(**common(shape), **decoder(shape), **scale))


def qwen3(shape):
    turning = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
    return transformers.Qwen3Model(transformers.Qwen3Config(**common(shape), **decoder(shape), **turning))


def common(shape):
    return {"vocab_size": VOCABULARY, "hidden_size": shape.width, "intermediate_size": shape.inner, "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads, "max_position_embeddings": POSITIONS}  # fmt: skip


def decoder(shape):
    return {"num_key_value_heads": shape.key_value_heads, "head_dim": shape.head_dim, "use_cache": False}


MAKERS = {"ModernBERT-base": modernbert, "XLM-R-base": xlm_roberta, "EmbeddingGemma-300M": embedding_gemma, "Qwen3-Embedding-0.6B": qwen3}


class Traced(torch.nn.Module):
    """ids [B, L] → hidden states [B, L, width], of any length. Arguments: those of masks()."""

    def __init__(self, model, **options):
        super().__init__()
        self.network, self.masks = model.network, functools.partial(model.masks, **options)

    def forward(self, ids):
        return self.network(ids, **self.masks(ids.shape[1])).last_hidden_state


class Model:
    def __init__(self, shape, network):
        self.shape, self.network, self.folder = shape, network, folder_of(shape)

    def masks(self, length, windowed, written_out=False):
        """The arguments that say what a layer of each kind sees. Made here, for tracers cannot follow how Transformers makes them.
        `written_out`: as a mask even where everything is seen, or everything before a row."""
        if not self.shape.causal and self.shape.reach < 0:
            return {}
        positions = torch.arange(length)
        distances = positions[:, None] - positions
        full = window = None
        if written_out:
            full = (distances >= 0 if self.shape.causal else distances == distances)[None, None]
        if windowed:
            window = (distances.abs() <= self.shape.reach)[None, None]
        return {"attention_mask": {"full_attention": full, "sliding_attention": full if window is None else window}}

    def options(self, length):
        return self.masks(length, self.shape.windowed(length))

    def in_float64(self, ids):
        return in_float64(self, ids.shape, ids.tobytes())

    def file(self, kind, ending):
        return self.folder.with_name(f"{self.folder.name}-{kind}{ending}")

    def traced(self, trace, **options):
        """What trace(module, ids) makes of the module, without what it tells meanwhile."""
        with torch.inference_mode(False), torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            ids = torch.arange(FIRST_WORD, FIRST_WORD + TRACED_TOKENS)[None]
            return trace(Traced(self, **options), ids)

    def onnx(self, windowed):
        """The path of the exported module. Masks are written out: the exporter knows no heads that share keys without one."""
        file = self.file("windowed" if windowed else "full", ".onnx")
        if not file.exists():
            any_shape = {"ids": {0: "batch", 1: "length"}}
            options = {"input_names": ["ids"], "output_names": ["out"], "dynamic_axes": any_shape, "opset_version": OPSET, "dynamo": False}
            export = lambda module, ids: torch.onnx.export(module, (ids,), file, **options)
            shares = self.shape.key_value_heads != self.shape.heads
            self.traced(export, windowed=windowed, written_out=shares)
        return file


def folder_of(shape):
    return ROOT / (shape.name if shape.whole else f"{shape.name}-layers{shape.layers}")


@functools.lru_cache(1)
def load(shape):
    """The last one is kept."""
    folder = folder_of(shape)
    with torch.inference_mode(False), torch.no_grad():
        torch.manual_seed(1)
        network = MAKERS[shape.name](shape).eval()
    if not (folder / "tokenizer_config.json").exists():
        network.save_pretrained(folder)
        write_tokenizer(folder)
    return Model(shape, network)


def write_tokenizer(folder):
    """Bytes as words: a folder has to have one, and nobody asks it anything."""
    tokenizer = Tokenizer(models.BPE({letter: id for id, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))


@functools.lru_cache(1)
def in_float64(model, shape, ids):
    """One case's after another's: those of its other types come next. Where Transformers itself asks for float32, as within norms, it stays."""
    ids = torch.from_numpy(np.frombuffer(ids, np.int64).reshape(shape).copy())
    with torch.no_grad():
        return copy.deepcopy(model.network).double()(ids, **model.options(shape[1])).last_hidden_state.numpy()
