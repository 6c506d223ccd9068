"""`python -m headlight` is the command line."""

import os
import pathlib
import subprocess
import sys

import pytest

import headlight as hl

PACKAGE = pathlib.Path(hl.__file__).parent


@pytest.mark.skipif(not (PACKAGE / "headlight").exists(), reason="built without the command line")
def test_module_runs_the_program():
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "headlight", *arguments], capture_output=True, text=True, env=environment)

    assert run("--version").stdout.split()[-1] == hl.__version__
    info = run("info")
    assert info.returncode == 0 and all(isa in info.stdout for isa in hl.available_isas())
    wrong = run("nothing")
    assert wrong.returncode == 2 and wrong.stderr


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    from headlight import __main__ as module
    from headlight import _program

    monkeypatch.setattr(_program, "__file__", str(tmp_path / "_program.py"))
    with pytest.raises(SystemExit, match="without the command line"):
        module.main()
