"""What every head of a sentence looks at, as a picture."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from headlight import _program
from headlight._core import Engine
from headlight._pictures import Picture, framed, write_whole


class Beams:
    """What every head looks at: a page to explore, and a picture that stands still. beams() makes it."""

    def __init__(self, title: str, page: str, svg: str, summary: str) -> None:
        self._title = title
        self.html = page
        self.svg = svg
        self.summary = summary

    def _repr_html_(self) -> str:
        found = re.search(r'<svg [^>]*height="(\d+)', self.svg)
        return framed(self.html, self._title, min(900, 240 + int(found[1] if found else 500)))

    def __repr__(self) -> str:
        return f"<headlight.Beams of {self._title!r}: in a notebook it shows itself, .save('beams.html') writes it>"

    def plot(self) -> Picture:
        """The picture that stands still."""
        return Picture(self.svg)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, or the picture that stands still, whole or not at all: the name ends in .html or .svg."""
        write_whole(path, {".html": self.html, ".svg": self.svg})


def beams(
    model: _program.Model = None,
    text: str | None = None,
    *,
    words: Iterable[str] | None = None,
    attention: Any = None,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    from_word: str | None = None,
    to_word: str | None = None,
    top: int | None = None,
    pieces: bool = False,
    engine: Engine | None = None,
) -> Beams:
    """A picture of what every head of a sentence looks at, which shows itself in a notebook.

    Either of a text as a model sees it: `model` is what load() gave, or a folder; None is the demonstration model. The
    folder is read again, for the command line computes, with the model's precision.
    Or of weights: `words`, L of them, and `attention`, an array [layers, heads, L, L] of which rows sum to 1.

    layer: which one is shown (on the page at first); None: the one where words look at words most.
    heads: which ones are shown; None: all.
    from_word, to_word: only what this word looks at, only what looks at this word; "it#2" is the second of several.
    top: beams of each word and head, the brightest; None: 24, for long texts fewer.
    pieces: tokens as they are, instead of put together to words.

    Raises ValueError and headlight.FileError (which is one). Warns of words that the model does not know.
    """
    options: dict[str, _program.Value] = {
        "layer": layer,
        "heads": None if heads is None else ",".join(str(int(head)) for head in heads),
        "from": from_word,
        "to": to_word,
        "top": top,
        "pieces": pieces,
    }
    reads = {}
    if words is None and attention is None:
        if text is None:
            raise ValueError("beams: either a text, or words with attention, is needed")
        title = text
        options |= _program.model_options(model) | {"text": text}
    else:
        if words is None or attention is None or text is not None or model is not None:
            raise ValueError("beams: words and attention go together, without a model or a text")
        title = _joined(words)
        options["words"] = title
        with io.BytesIO() as file:
            np.save(file, np.ascontiguousarray(attention, dtype=np.float32), allow_pickle=False)
            reads["attention"] = ("attention.npy", file.getvalue())

    page = _program.run(["beams"], options, engine=engine, writes={"output": "beams.html"}, reads=reads)
    still = _program.run(["beams"], options, engine=engine, writes={"output": "beams.svg"}, reads=reads)
    _program.warn(page.warned + still.warned, stacklevel=2)
    return Beams(title, page.files["output"], still.files["output"], page.text)


def _joined(words: Iterable[str]) -> str:
    listed = list(words)
    for number, word in enumerate(listed):
        if word.split() != [word]:
            raise ValueError(f"beams: words[{number}] is {word!r}, expected a word without spaces")
    return " ".join(listed)
