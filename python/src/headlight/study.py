"""The studies of the command line as data: what a choice costs and what it buys, measured on this machine.

    found = headlight.study.memory(budget="1GiB")
    print(found)                      # what `headlight study memory` prints
    found.table                       # the same as a list of dicts, for pandas.DataFrame(found.table)
    found.plot().save("memory.svg")   # the chart, which shows itself in a notebook

Every study takes quick=True: seconds instead of minutes, smaller sizes; and progress, as Encoder.embed() has it: None
shows a bar on a terminal or in a notebook when the work takes more than a second, False never, True at once, and a
function is called with (done, of all). They run in a process of their own, which Ctrl-C ends. Wrong values are a
ValueError, files that cannot be read a headlight.FileError.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from headlight import _program
from headlight._core import Engine
from headlight._documents import as_data, as_row
from headlight._pictures import Picture
from headlight.typing import Progress

__all__ = ["Study", "activations", "chunk", "depth", "diversity", "heads", "memory", "merge", "precision", "relations"]


class Study:
    """What a study found.

    name: "memory", …
    summary: what the command line prints: the table and what it means.
    table: the rows as dicts.
    data: everything that was measured, with lists of numbers as arrays. NaN is a measure that there is none of.
    """

    name: str
    summary: str
    table: list[dict[str, Any]]
    data: dict[str, Any]

    def __init__(self, summary: str, document: str, svg: str, rows: str) -> None:
        self.data = as_data(json.loads(document))
        self.name = self.data["study"]
        self.summary = summary
        self._svg = svg
        self.table = _lengths(self.data) if self.name == "memory" else [as_row(row) for row in self.data[rows]]

    def plot(self) -> Picture:
        """The chart: a notebook shows it, and .save("chart.svg") writes it."""
        return Picture(self._svg)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary)}</pre>"

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return f"<headlight.study.Study of {self.name}, {len(self.table)} rows: .summary, .table, .data, .plot()>"


def _lengths(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each method the lengths, and last the longest one that the budget holds."""
    rows = []
    for method in data["methods"]:
        for length in [*method["lengths"], method["longest"]]:
            rows.append({"method": method["method"], "longest": length is method["longest"]} | as_row(length))
    return rows


def _run(
    name: str,
    rows: str,
    options: dict[str, _program.Value],
    engine: Engine | None,
    progress: Progress,
    reads: dict[str, tuple[str, bytes]] | None = None,
) -> Study:
    writes = {"json": "study.json", "svg": "study.svg"}
    finished = _program.run(["study", name], options, engine=engine, writes=writes, reads=reads, progress=progress)
    _program.warn(finished.warned, stacklevel=3)
    return Study(finished.text, finished.files["json"], finished.files["svg"], rows)


def memory(
    budget: str | int | None = None,
    *,
    head_dim: int | None = None,
    heads: int | None = None,
    measure: bool = False,
    over_out: bool = False,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """The longest sequence that trains in a given memory, with the weights written out and worked out again.

    budget: bytes for one pass forward and backward, "1GiB" or a number; None: 1 GiB, with quick 32 MiB.
    head_dim, heads: None: 32 and 1.
    measure: run it, each pass in a process of its own, and read what was resident at most: takes minutes.
    over_out: measure also recomputing with the query's gradient written over the output.

    The table has a row for each method and length: bytes by part, foretold, and measured where that was asked for.
    """
    options: dict[str, _program.Value] = {
        "budget": budget,
        "head-dim": head_dim,
        "heads": heads,
        "measure": measure,
        "over-out": over_out,
        "quick": quick,
    }
    return _run("memory", "methods", options, engine, progress)


def chunk(
    model: _program.Model = None,
    text: str | None = None,
    *,
    length: int | None = None,
    heads: int | None = None,
    head_dim: int | None = None,
    seed: int = 1,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """What attention inside chunks saves, and what it loses.

    model, text: whose activations to take (what load() gave, or a folder) on what text. Without them, where the working
        directory has no downloads/all-MiniLM-L6-v2 either: seeded numbers, of `length` positions (8,192, with quick
        1,024), `heads` heads (8) and width `head_dim` (64), drawn from `seed`.

    The table has a row for each length of a chunk.
    """
    options = _folder(model) | {
        "length": length,
        "heads": heads,
        "head-dim": head_dim,
        "seed": seed,
        "quick": quick,
    }
    reads = None if text is None else {"input": ("text.txt", text.encode())}
    return _run("chunk", "chunks", options, engine, progress, reads)


def depth(
    *,
    steps: int | None = None,
    seed: int = 1,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """How much gradient reaches each layer of 6, 24 and 96, with Pre-LN, Post-LN and without residual connections.

    steps: of training; None: 300, with quick 20.
    seed: of first weights and examples.

    The table has a row for each network: norms of gradients by layer, losses by step.
    """
    return _run("depth", "runs", {"steps": steps, "seed": seed, "quick": quick}, engine, progress)


def heads(
    *,
    width: int | None = None,
    length: int | None = None,
    seed: int = 1,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """Parameters, variance, time and memory against the number of heads at one width.

    width, length: of the layer and in tokens; None: 512 and 1,024, with quick 128 and 128.
    seed: of weights and inputs.

    The table has a row for each number of heads; times and variances as median, least and most.
    """
    options: dict[str, _program.Value] = {"width": width, "length": length, "seed": seed, "quick": quick}
    return _run("heads", "rows", options, engine, progress)


def relations(
    *,
    steps: int | None = None,
    seeds: int | None = None,
    seed: int = 1,
    layers: int | None = None,
    width: int | None = None,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """What one head cannot hold and many can: models with 1, 2, 4 and 8 heads, trained alike.

    steps: of training each model; None: 1,000.
    seeds, seed: how many models of each kind (3, with quick 2), and the first of their seeds.
    layers, width: of each model; None: 1 and 32.

    The table has a row for each number of heads; "seeds" holds every model of it.
    """
    return _run("relations", "heads", _training(steps, seeds, seed, layers, width, quick), engine, progress)


def merge(
    *,
    steps: int | None = None,
    seeds: int | None = None,
    seed: int = 1,
    layers: int | None = None,
    width: int | None = None,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """Six ways to put heads together, trained alike.

    steps: of training each model; None: 1,000, with quick 200.
    seeds, seed: how many models of each kind (3, with quick 2), and the first of their seeds.
    layers, width: of each model; None: 2 and 32.

    The table has a row for each way; "seeds" holds every model of it.
    """
    return _run("merge", "merges", _training(steps, seeds, seed, layers, width, quick), engine, progress)


def diversity(
    *,
    steps: int | None = None,
    seeds: int | None = None,
    seed: int = 1,
    layers: int | None = None,
    width: int | None = None,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """Heads that are asked to differ, and heads that are not.

    steps: of training each model; None: 1,000, with quick 200.
    seeds, seed: how many models of each kind (3, with quick 2), and the first of their seeds.
    layers, width: of each model; None: 2 and 32.

    The table has a row for each thing asked for; "seeds" holds every model of it.
    """
    return _run("diversity", "asked_for", _training(steps, seeds, seed, layers, width, quick), engine, progress)


def activations(
    *,
    steps: int | None = None,
    seeds: int | None = None,
    seed: int = 1,
    layers: int | None = None,
    width: int | None = None,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """Training with activations of bfloat16 beside float32: the loss of the same steps, and what they cost.

    steps: of training each model; None: 1,000, with quick 200.
    seeds, seed: how many models of each kind (3, with quick 2), and the first of their seeds.
    layers, width: of each model; None: 2 and 32.

    The table has a row for each type; "curve" holds its loss, part by part, and "seeds" every model of it.
    """
    return _run("activations", "types", _training(steps, seeds, seed, layers, width, quick), engine, progress)


def precision(
    model: _program.Model = None,
    texts: Iterable[str] | None = None,
    *,
    quick: bool = False,
    progress: Progress = None,
    engine: Engine | None = None,
) -> Study:
    """What narrower numbers in products cost and buy, layer by layer.

    model: what load() gave (its own precision does not count), or a folder; None is the demonstration model.
    texts: of which the first 1,000 count, with quick 64; None: sentences that come with the program.

    The table has a row for each type of numbers.
    """
    reads = None if texts is None else {"input": ("texts.txt", _program.lines_of(texts))}
    return _run("precision", "types", _folder(model) | {"quick": quick}, engine, progress, reads)


def _folder(model: _program.Model) -> dict[str, _program.Value]:
    return {name: value for name, value in _program.model_options(model).items() if name == "model"}


def _training(
    steps: int | None, seeds: int | None, seed: int, layers: int | None, width: int | None, quick: bool
) -> dict[str, _program.Value]:
    return {"steps": steps, "seeds": seeds, "seed": seed, "layers": layers, "width": width, "quick": quick}
