"""The calls of sentence-transformers that people use, encode() and similarity(), without it and without PyTorch.

    from headlight.sentence_transformers import SentenceTransformer   # instead of sentence_transformers
    model = SentenceTransformer("all-MiniLM-L6-v2/")                  # a folder
    vectors = model.encode(["a text", "another"])
    model.similarity(vectors, vectors)

Prompts, lengths, poolings, the layers behind them and the kind of similarity are what the folder's files say
(config_sentence_transformers.json, sentence_bert_config.json, modules.json). Models are those of headlight.load().
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from headlight._core import Engine, FileError, load, matmul
from headlight._progress import bar_of
from headlight.typing import Floats, PrecisionLike, Progress

__all__ = ["SentenceTransformer"]

Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
_SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


class SentenceTransformer:
    """A model whose vectors stand for texts.

    model_name_or_path: a folder; nothing is fetched. prompts: beside those that the folder names, or in their place;
    "query" and "document" are empty unless somebody says otherwise. default_prompt_name, similarity_fn_name,
    truncate_dim: in place of what the folder says. model_precision: what products multiply in, as load() takes it.

    Raises headlight.FileError for what cannot be read, ValueError for a model whose folder asks of vectors what is not built,
    and for a default_prompt_name that is no prompt's.
    """

    prompts: dict[str, str]
    default_prompt_name: str | None
    similarity_fn_name: Similarity
    truncate_dim: int | None
    max_seq_length: int  # tokens after which a text is cut, [CLS] and [SEP] included: may be set to fewer

    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        device: str | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        similarity_fn_name: Similarity | None = None,
        truncate_dim: int | None = None,
        model_precision: PrecisionLike = "float32",
        engine: Engine | None = None,
    ) -> None:
        _check_device(device)
        folder = pathlib.Path(model_name_or_path)
        self._model = load(folder, model_precision)
        self._engine = engine
        said = _document(folder / "config_sentence_transformers.json", {})
        self.prompts = {**self._model.prompts, **(prompts or {})}
        self.default_prompt_name = default_prompt_name or self._model.default_prompt_name
        if self.default_prompt_name not in (None, *self.prompts):
            raise ValueError(f"default_prompt_name is {self.default_prompt_name!r}, expected one of {list(self.prompts)}")
        self.similarity_fn_name = similarity_fn_name or said.get("similarity_fn_name") or "cosine"
        if self.similarity_fn_name not in _SIMILARITIES:
            raise ValueError(f"similarity_fn_name is {self.similarity_fn_name!r}, expected one of {_SIMILARITIES}")
        self.truncate_dim: int | None = said.get("truncate_dim") if truncate_dim is None else truncate_dim
        self.max_seq_length = self._model.embed_max_length
        # Refuses what is not built.
        self._width: int = self._model.embed_ids(np.zeros((0, 0), np.int64), truncate_dim=0).shape[1]

    def get_sentence_embedding_dimension(self) -> int:
        width = self._width
        return width if self.truncate_dim is None else min(self.truncate_dim, width)

    def encode(
        self,
        sentences: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: Progress = None,
        output_value: Literal["sentence_embedding", "token_embeddings"] = "sentence_embedding",
        precision: Literal["float32"] = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Any:
        """Vectors of texts, [n, E] float32; of a single str [E]. convert_to_tensor gives a tensor of PyTorch.

        prompt, or the one that prompt_name names, or the model's own, stands in front of each text. batch_size: texts that
        are computed at a time. output_value="token_embeddings" gives a list of the hidden states [tokens, E] of each.
        truncate_dim: the first so many numbers alone; normalize_embeddings: divided by their length after that.

        Raises ValueError for a prompt_name that there is none of, and for what is not made here (other types of numbers).
        """
        _check_device(device)
        if precision != "float32" or output_value not in ("sentence_embedding", "token_embeddings"):
            raise ValueError(f"encode: precision={precision!r} with output_value={output_value!r} is not made here")
        if batch_size < 1:
            raise ValueError(f"encode: batch_size is {batch_size}, expected at least 1")
        single = isinstance(sentences, str)
        before = self._prompt(prompt_name, prompt)
        texts = [before + text for text in ([sentences] if isinstance(sentences, str) else sentences)]
        # Its tokens but for the [SEP] behind them.
        prompt_tokens = len(self._cut(self._model.tokenize(before))) - 1 if before else 0
        of_tokens = output_value == "token_embeddings"
        found = self._computed(texts, prompt_tokens, batch_size, show_progress_bar, of_tokens)
        vectors: Any = found
        if output_value == "sentence_embedding":
            vectors = np.stack(found) if found else np.zeros((0, self._width), np.float32)
            vectors = vectors[:, : self.truncate_dim if truncate_dim is None else truncate_dim]
            vectors = np.ascontiguousarray(_normalized(vectors) if normalize_embeddings else vectors)
        if convert_to_tensor or not convert_to_numpy:
            torch: Any = importlib.import_module("torch")
            as_one = convert_to_tensor and output_value == "sentence_embedding"
            vectors = torch.from_numpy(vectors) if as_one else [torch.from_numpy(one) for one in vectors]
        return vectors[0] if single else vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[n, m]: how alike each vector of the first [n, E] is to each of the second [m, E], by similarity_fn_name: their
        cosine or dot product, or their Euclidean or Manhattan distance, negative. [E] is one vector. Arrays of NumPy give
        one, tensors of PyTorch a tensor."""
        first, second = (np.atleast_2d(np.asarray(one, dtype=np.float32)) for one in (embeddings1, embeddings2))
        found: Any = _SCORES[self.similarity_fn_name](first, second)
        if hasattr(embeddings1, "new_tensor"):
            found = embeddings1.new_tensor(found)
        return found

    def _prompt(self, name: str | None, prompt: str | None) -> str:
        if prompt is None:
            name = name or self.default_prompt_name
            if name is None:
                return ""
            if name not in self.prompts:
                raise ValueError(f"encode: prompt_name is {name!r}, expected one of {list(self.prompts)}")
            prompt = self.prompts[name]
        return prompt

    def _computed(
        self, texts: list[str], prompt_tokens: int, batch_size: int, progress: Progress, of_tokens: bool
    ) -> list[Floats]:
        """The hidden states of each text, or its vector as the model's last layer gives it; texts of a like length together."""
        ids = [self._cut(self._model.tokenize(text)) for text in texts]
        order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
        found: list[Floats] = [np.zeros(0, np.float32)] * len(ids)
        with bar_of(progress) as tell:
            for begin in range(0, len(order), batch_size):
                some = order[begin : begin + batch_size]
                batch = np.zeros((len(some), len(ids[some[-1]])), np.int64)
                mask = np.zeros_like(batch)
                for row, number in enumerate(some):
                    batch[row, : len(ids[number])], mask[row, : len(ids[number])] = ids[number], 1
                if of_tokens:
                    hidden = self._model.encode_ids(batch, mask, engine=self._engine)
                    pairs = zip(hidden, some, strict=True)
                    found_here: Iterable[Floats] = [np.array(states[: len(ids[number])]) for states, number in pairs]
                else:
                    found_here = self._model.embed_ids(
                        batch,
                        mask,
                        prompt_tokens=prompt_tokens,
                        normalize=False,
                        truncate_dim=0,
                        engine=self._engine,
                    )
                for number, one in zip(some, found_here, strict=True):
                    found[number] = one
                if tell:
                    tell(begin + len(some), len(order))
        return found

    def _cut(self, ids: list[int]) -> list[int]:
        most = self.max_seq_length
        if most < 2:
            raise ValueError(f"encode: max_seq_length is {most}, expected at least 2")
        return ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]


def _document(path: pathlib.Path, otherwise: Any) -> Any:
    """JSON of the kind of `otherwise`, which stands for a file that is not there."""
    if not path.exists():
        return otherwise
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(f"{path}: {error}") from None
    if type(read) is not type(otherwise):
        raise FileError(f"{path}: the document is a {type(read).__name__}, expected a {type(otherwise).__name__}")
    return read


def _check_device(device: str | None) -> None:
    if device not in (None, "cpu"):
        raise ValueError(f"SentenceTransformer: device is {device!r}, expected 'cpu' or None")


def _normalized(vectors: Floats) -> Floats:
    lengths = np.asarray(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
    found: Floats = np.divide(vectors, np.maximum(lengths, np.float32(1e-12)))
    return found


def _dot(first: Floats, second: Floats) -> Floats:
    return matmul(np.ascontiguousarray(first), np.ascontiguousarray(second).T)


def _distance(order: int) -> Any:
    def negative(first: Floats, second: Floats) -> Floats:
        rows = [-np.linalg.norm(second - one, ord=order, axis=1) for one in first]
        return np.array(rows, np.float32).reshape(len(first), len(second))

    return negative


_SCORES = {
    "cosine": lambda first, second: _dot(_normalized(first), _normalized(second)),
    "dot": _dot,
    "euclidean": _distance(2),
    "manhattan": _distance(1),
}
