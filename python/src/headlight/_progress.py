"""A bar for work that takes more than a second: on a terminal (standard error) or in a notebook, else nowhere."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headlight.typing import Progress

_WAIT = 1.0
_EVERY = 0.1
_CELLS = 30


def _notebook() -> bool:
    """Whether this is a kernel behind a notebook, which IPython knows once it is imported."""
    ipython = sys.modules.get("IPython")
    get_shell = getattr(ipython, "get_ipython", None)
    shell = get_shell() if get_shell is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Bar:
    """Called with (done, of all); closed at the end."""

    def __init__(self, at_once: bool = False) -> None:
        self._begin = time.monotonic()
        self._last = float("-inf")
        self._at_once = at_once
        self._terminal = False
        self._shown: Any = None
        self._fraction = 0.0
        self._line = ""

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        seconds = now - self._begin
        if not self._at_once and seconds < _WAIT:
            return
        if done < total and now - self._last < _EVERY:
            return
        self._last = now
        self._fraction = done / total if total else 1.0
        rest = seconds * (1 - self._fraction) / self._fraction if done else 0.0
        self._line = f"{100 * self._fraction:3.0f} %  {done} of {total}, {seconds:.0f} s, {rest:.0f} s to go"
        self._show()

    def _show(self) -> None:
        if _notebook():
            # Whatever types it has where it is installed.
            display: Any = importlib.import_module("IPython.display").display
            if self._shown is None:
                self._shown = display(self, display_id=True)
            else:
                self._shown.update(self)
        elif self._at_once or (sys.stderr is not None and sys.stderr.isatty()):
            full = round(_CELLS * self._fraction)
            sys.stderr.write(f"\r[{'=' * full}{' ' * (_CELLS - full)}] {self._line}\x1b[K")
            sys.stderr.flush()
            self._terminal = True

    def _repr_html_(self) -> str:
        return f'<progress value="{self._fraction:.4f}" max="1"></progress> {self._line}'

    def __repr__(self) -> str:
        return self._line

    def close(self) -> None:
        if self._terminal:
            sys.stderr.write("\n")
            sys.stderr.flush()


@contextlib.contextmanager
def bar_of(progress: Progress) -> Iterator[Callable[[int, int], object] | None]:
    """What to tell (done, of all), for `progress` as Encoder.embed() takes it; None where nobody wants to know."""
    if isinstance(progress, (bool, np.bool_)) and not progress:
        yield None
    elif progress is None or isinstance(progress, (bool, np.bool_)):
        bar = Bar(at_once=progress is not None)
        try:
            yield bar
        finally:
            bar.close()
    elif callable(progress):
        yield progress
    else:
        raise TypeError(f"progress is of type {type(progress).__name__}, expected None, True, False or a function")
