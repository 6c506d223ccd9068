"""The examples of docs/python.md run."""

import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def test_examples_run(tmp_path, monkeypatch):
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)  # for what they write
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    left_out = set()
    for block in blocks:
        packages = set(re.findall(r"\b(torch|transformers)\b", block))
        missing = {package for package in packages if importlib.util.find_spec(package) is None}
        left_out |= missing
        if not missing:
            exec(compile(block, "docs/python.md", "exec"), names)
    if left_out:
        pytest.skip(f"the other examples ran; those with {' and '.join(sorted(left_out))} need what is not installed")
