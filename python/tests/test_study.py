"""hl.study: the documents of the command line as data, and Ctrl-C in the middle."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest

import headlight as hl
from headlight import _program

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "demonstration"

pytestmark = pytest.mark.skipif(
    not pathlib.Path(hl.__file__).with_name("headlight").exists(), reason="built without the command line"
)

# What each takes beside quick, and what its table holds.
TRAINED = dict(steps=2, seeds=2, layers=1, width=8)
STUDIES = {
    "memory": (dict(budget=1 << 25, head_dim=16), ["method", "longest", "length", "bytes_all"], 10),
    "chunk": (dict(length=256), ["chunk", "pairs", "forward_seconds", "error"], 5),
    "depth": (dict(steps=1), ["layers", "norm", "residual", "gradient_norms_initial", "losses"], 12),
    "heads": (dict(width=32, length=32), ["heads", "head_dim", "forward_seconds_median"], 4),
    "relations": (TRAINED, ["name", "accuracy_mean", "seeds"], 4),
    "merge": (TRAINED, ["name", "accuracy_mean", "flops_per_token"], 6),
    "diversity": (TRAINED, ["name", "cka_mean", "subspace_overlap_mean"], 8),
    "activations": (TRAINED, ["name", "saved_bytes", "curve"], 2),
    "precision": (dict(model=FOLDER, texts=["The animal was tired.", "The street was wide."]), ["type", "seconds"], 5),
}


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Where temporary files are: empty afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", STUDIES)
def test_studies(name):
    options, columns, rows = STUDIES[name]
    found = getattr(hl.study, name)(**options, quick=True)
    assert found.name == name and len(found.table) == rows
    for row in found.table:
        assert set(columns) <= set(row), row.keys()
    assert len({tuple(row) for row in found.table}) == 1
    assert found.plot()._repr_svg_().startswith("<svg")
    assert str(found) == found.summary and "<pre>" in found._repr_html_()
    assert tempfile.tempdir not in found.summary and not found.summary.startswith("\n") and len(found.summary) > 200
    assert name in repr(found)


def test_all_studies_are_here():
    said = subprocess.run([_program.program(), "study", "--help"], capture_output=True, text=True).stdout
    known = [line.split()[0] for line in said.partition("Subcommands:\n")[2].partition("\n\n")[0].splitlines()]
    assert sorted(known) == sorted(STUDIES) == sorted(set(hl.study.__all__) - {"Study"})


def test_numbers_are_those_of_the_document():
    found = hl.study.memory("32MiB", heads=2, quick=True, engine=hl.Engine(threads=1, isa="scalar"))
    arguments = ["study", "memory", "--budget", "32MiB", "--heads", "2", "--quick", "--threads", "1", "--isa", "scalar"]
    said = subprocess.run([_program.program(), *arguments, "--json", "-"], capture_output=True, check=True).stdout
    document = json.loads(said)
    assert found.data["heads"] == 2 and found.data["threads"] == 1 and found.data["isa"] == "scalar"
    assert found.data == document
    of = {(row["method"], row["length"]): row for row in found.table}
    for method in document["methods"]:
        for length in [*method["lengths"], method["longest"]]:
            row = of[method["method"], length["length"]]
            assert row["bytes_all"] == length["bytes"]["all"] and row["flops"] == length["flops"]
        assert of[method["method"], method["longest_foretold"]]["longest"]


def test_lists_of_numbers_are_arrays():
    depth = hl.study.depth(steps=1, quick=True)
    assert depth.table[0]["losses"].dtype == np.float64 and depth.table[0]["gradient_norms_initial"].shape == (6,)
    one_head = hl.study.relations(**TRAINED, quick=True).table[0]
    assert one_head["name"] == "1 head" and np.isnan(one_head["cka_mean"])


def test_errors_name_the_argument():
    for says, call in [
        ("budget is '1KiB', expected 1MiB", lambda: hl.study.memory("1KiB")),
        ("head_dim is 0, expected 1 to 1024", lambda: hl.study.memory(head_dim=0)),
        ("seed is -1", lambda: hl.study.depth(seed=-1)),
        ("texts has 1 line, expected at least 2", lambda: hl.study.precision(FOLDER, ["The animal."])),
    ]:
        with pytest.raises(ValueError, match=says):
            call()
    with pytest.raises(hl.FileError, match="nowhere"):
        hl.study.precision("nowhere")
    with pytest.raises(TypeError, match="steps is of type float"):
        hl.study.merge(steps=1.5)


def children(of="self"):
    """Process ids of its children, and of theirs."""
    found = []
    with contextlib.suppress(OSError):  # one that has just ended
        for thread in pathlib.Path(f"/proc/{of}/task").iterdir():
            found += (thread / "children").read_text().split()
    return found + [one for child in found for one in children(child)]


def computes(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interrupted(call, processes):
    """Interrupts a call once it has so many processes at work. Seconds until KeyboardInterrupt, and the processes."""
    sent, at_work = [], []

    def send():
        deadline = time.monotonic() + 30
        while len(at_work) < processes and time.monotonic() < deadline:
            time.sleep(0.02)
            at_work[:] = children()
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
        seconds = time.monotonic() - sent[0]
    finally:
        thread.join()
    assert len(at_work) == processes
    return seconds, at_work


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    "study, processes",
    [(lambda: hl.study.merge(steps=1000000), 1), (lambda: hl.study.memory("64GiB", measure=True), 2)],
    ids=["one", "with processes of its own"],
)
def test_ctrl_c_ends_everything(study, processes):
    seconds, at_work = interrupted(study, processes)
    assert seconds < 2  # mostly some milliseconds
    deadline = time.monotonic() + 10
    while any(map(computes, at_work)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(computes, at_work))


MEASURED = [
    ([sys.executable, "-c", "import headlight; headlight.study.memory('64GiB', measure=True)"], 2),
    ([pathlib.Path(hl.__file__).with_name("headlight"), "study", "memory", "--budget", "64GiB", "--measure"], 1),
]


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command, processes", MEASURED, ids=["Python", "the command line"])
def test_what_ends_a_process_ends_those_that_it_began(command, processes, number):
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(hl.__file__).parents[1]), "TMPDIR": tempfile.tempdir}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as begun:
        at_work, deadline = [], time.monotonic() + 30
        while len(at_work) < processes and time.monotonic() < deadline:
            time.sleep(0.02)
            at_work = children(begun.pid)
        begun.send_signal(number)
    assert len(at_work) == processes
    deadline = time.monotonic() + 10
    while any(map(computes, at_work)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(computes, at_work))
    for folder in pathlib.Path(tempfile.tempdir).iterdir():  # which nobody was left to take away
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", sorted(set(STUDIES) - {"memory"}))
def test_progress_is_told_to_a_function(name):
    told = []
    getattr(hl.study, name)(**STUDIES[name][0], quick=True, progress=lambda done, total: told.append((done, total)))
    assert told and all(0 < done <= total for done, total in told) and told[-1][0] == told[-1][1]


def test_progress_of_heads():
    told = []
    hl.heads(None, ["The animal was tired.", "The street was wide."], progress=lambda *one: told.append(one))
    assert told[-1][0] == told[-1][1] >= 2


def test_bar_and_exceptions_of_progress(capsys):
    options = dict(steps=2, seeds=2, layers=1, width=8, quick=True)
    hl.study.merge(**options, progress=True)
    assert "100 %" in capsys.readouterr().err
    hl.study.merge(**options, progress=False)
    hl.study.merge(**options)
    assert capsys.readouterr().err == ""
    with pytest.raises(ZeroDivisionError):
        hl.study.merge(**options, progress=lambda done, total: 1 / 0)
    assert not children()
    with pytest.raises(TypeError, match="progress is of type int"):
        hl.study.merge(**options, progress=3)


@pytest.mark.parametrize(
    "variables, says",
    [
        ({"HEADLIGHT_PARENT": "me"}, "HEADLIGHT_PARENT is me, expected a number"),
        ({"HEADLIGHT_PROGRESS": "77"}, "HEADLIGHT_PROGRESS is 77, which is no open descriptor"),
    ],
)
def test_a_caller_who_asks_for_what_cannot_be(variables, says):
    said = subprocess.run([_program.program(), "info"], capture_output=True, text=True, env={**os.environ, **variables})
    assert said.returncode == 2 and says in said.stderr
    gone = subprocess.run([_program.program(), "info"], capture_output=True, env={**os.environ, "HEADLIGHT_PARENT": "1"})
    assert gone.returncode == 1 and gone.stdout == b"" or os.getpid() == 1
