"""How far a call is: functions that are told, bars that are drawn."""

import sys
import types

import pytest

from demonstration import TEXTS


def test_progress_is_told_to_a_function(model):
    calls = []
    model.embed(TEXTS, batch_tokens=1, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3, 3) and calls == sorted(calls)
    with pytest.raises(ZeroDivisionError):
        model.embed(TEXTS, progress=lambda done, total: 1 / 0)
    with pytest.raises(TypeError, match="progress"):
        model.embed(TEXTS, progress=3)


def test_bar_is_drawn_at_once_where_it_is_asked_for(model, capsys):
    model.embed(TEXTS, progress=True)
    assert "100 %  3 of 3" in capsys.readouterr().err
    model.embed(TEXTS)
    model.encode(TEXTS, progress=False)
    assert capsys.readouterr().err == ""


class Terminal:
    """A standard error that says that it is a terminal."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_bar_waits_a_second(monkeypatch):
    from headlight import _progress

    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    terminal = Terminal()
    monkeypatch.setattr(_progress.sys, "stderr", terminal)
    bar = _progress.Bar()
    now[0] += 0.9
    bar(90, 100)
    bar.close()
    assert terminal.text == ""
    now[0] += 0.2
    bar(95, 100)
    now[0] += 0.05
    bar(96, 100)
    bar.close()
    assert " 95 %" in terminal.text and " 96 %" not in terminal.text and terminal.text.endswith("\n")
    assert " 95 %" in repr(bar) and 'value="0.9500"' in bar._repr_html_()


def test_bar_of_a_notebook(monkeypatch):
    """Behind a notebook the bar is an object that is shown once and then changed."""
    from headlight import _progress

    shown = []

    class Handle:
        def update(self, bar):
            shown.append(bar._repr_html_())

    def display(bar, display_id):
        assert display_id
        shown.append(bar._repr_html_())
        return Handle()

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    terminal = Terminal()
    monkeypatch.setattr(_progress.sys, "stderr", terminal)
    bar = _progress.Bar(at_once=True)
    bar(1, 2)
    bar(2, 2)
    bar.close()
    assert len(shown) == 2 and "1 of 2" in shown[0] and 'value="1.0000"' in shown[1] and terminal.text == ""
