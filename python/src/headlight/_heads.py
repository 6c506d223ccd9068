"""What each head of a model does over a set of texts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from headlight import _program
from headlight._core import Engine
from headlight._documents import as_data, as_row
from headlight._pictures import framed, write_whole
from headlight.typing import Progress


class Heads:
    """What each head does. heads() makes it.

    summary: the findings as text.
    table: one dict a head: layer, head, kinds, entropy, confidence, distance, …; `pandas.DataFrame(heads.table)` takes it.
    cka: [layers · heads, layers · heads] float64: how alike the outputs of two heads are, 1 at most; heads are in the
        order of the table.
    data: everything that was measured, with lists of numbers as arrays. NaN is a measure that there is none of.
    html: the page that a notebook shows.
    """

    summary: str
    table: list[dict[str, Any]]
    cka: npt.NDArray[np.float64]
    data: dict[str, Any]
    html: str

    def __init__(self, summary: str, document: str, page: str) -> None:
        self.summary = summary
        self.html = page
        self._document = document
        self.data = as_data(json.loads(document))
        self.table = [as_row(head) for head in self.data["heads"]]
        self.cka = np.asarray(self.data["cka"], dtype=np.float64)

    def _repr_html_(self) -> str:
        return framed(self.html, "What each head does", 720)

    def __repr__(self) -> str:
        return f"<headlight.Heads of {self.data['layers']} layers of {self.data['heads_per_layer']}: .summary, .table, .cka>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, or the measures as a document, whole or not at all: the name ends in .html or .json."""
        write_whole(path, {".html": self.html, ".json": self._document})


def heads(
    model: _program.Model = None,
    texts: str | Iterable[str] | None = None,
    *,
    mask: Iterable[tuple[int, int]] | None = None,
    importance: bool = False,
    seed: int = 1,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Heads:
    """What each head of a model does over a set of texts: where it looks, which heads say the same, how they differ.

    model: what load() gave, or a folder; None is the demonstration model. The folder is read again, for the command line
        computes, with the model's precision.
    texts: a str is one text. A thousand sentences say more than ten. None: sentences that come with the program.
    mask: (layer, head) of heads to silence: what does the output lose without them? In .data["mask"].
    importance: how much sentence vectors would miss each head, by gradient, in float32; takes some four times as long.
    seed: of the directions in which `importance` looks.
    progress: as Encoder.embed() has it, of texts each time that one is read.

    Raises ValueError and headlight.FileError (which is one). Warns of words that the model does not know.
    """
    options: dict[str, _program.Value] = _program.model_options(model) | {
        "mask": None if mask is None else ",".join(f"{int(layer)}.{int(head)}" for layer, head in mask),
        "importance": importance,
        "seed": seed,
    }
    reads = {}
    if texts is not None:
        reads["input"] = ("texts.txt", _program.lines_of([texts] if isinstance(texts, str) else texts))
    finished = _program.run(
        ["heads"], options, engine=engine, writes={"json": "heads.json", "html": "heads.html"}, reads=reads,
        progress=progress,
    )  # fmt: skip
    _program.warn(finished.warned, stacklevel=2)
    return Heads(finished.text, finished.files["json"], finished.files["html"])
