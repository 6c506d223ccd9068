"""The notebooks of docs/notebooks run, and print what they show.

    python python/tests/test_notebooks.py    runs them and writes their outputs anew

Cells with the tag "measured" show times and sizes of the machine: they have to run, and to show something of the same kind.
"""

import pathlib
import re
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(notebook):
    """Fills in the outputs of a notebook, as this interpreter computes them."""
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec
    from nbclient import NotebookClient

    class Here(AsyncKernelManager):
        """A kernel of this interpreter, whatever is registered under the name that the notebook has."""

        kernel_spec = KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"],
            language="python",
        )

    NotebookClient(
        notebook,
        timeout=120,
        kernel_manager_class=Here,
        record_timing=False,
        resources={"metadata": {"path": str(FOLDER)}},
    ).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell["outputs"] = joined(cell["outputs"])


def is_bar(output):
    """What work over a second shows, as it is on a busy machine."""
    return "<progress" in "".join(output.get("data", {}).get("text/html", ""))


def joined(outputs):
    """The same with what one stream gets piece by piece as one output, and without bars of progress."""
    whole = []
    for output in outputs:
        if is_bar(output):
            continue
        if whole and output["output_type"] == whole[-1]["output_type"] == "stream" and output["name"] == whole[-1]["name"]:
            whole[-1]["text"] += output["text"]
        else:
            whole.append(output)
    return whole


def read(path):
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def shown(cell):
    """What a cell prints and shows as text."""
    texts = (output.get("text") or output["data"].get("text/plain", "") for output in cell["outputs"])
    return " ".join("".join(texts).split())


def kinds(cell):
    """Of each output what it is: a stream, or the types that it comes in. Warnings, as of a busy machine, are none."""
    outputs = (output for output in cell["outputs"] if output.get("name") != "stderr")
    return [output.get("name") or sorted(output["data"]) for output in outputs]


NUMBER = re.compile(r"\d+(?:\.\d*)?")


def agree(one, other):
    """Whether texts are the same, but for a unit of the last digit: instruction sets round differently."""

    def near(a, b):
        digits = max(len(number.partition(".")[2]) for number in (a, b))
        return abs(float(a) - float(b)) < 1.5 * 10.0**-digits

    pairs = list(zip(NUMBER.findall(one), NUMBER.findall(other), strict=False))
    return NUMBER.sub("0", one) == NUMBER.sub("0", other) and all(near(*pair) for pair in pairs)


def test_texts_agree_up_to_their_last_digit():
    assert agree("CKA 0.66, 3,656 words", "CKA 0.67, 3,656 words")
    assert not agree("CKA 0.66", "CKA 0.68") and not agree("a 1", "b 1") and not agree("1 2", "1")


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_tell_of_no_machine(path):
    assert path.stat().st_size < 500_000
    text = path.read_text()
    for word in (str(pathlib.Path.home()) + "/", "/tmp/", "/work/", "/usr/", "Traceback", "stderr"):
        assert word not in text, word


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_they_print(path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    committed, again = read(path), read(path)
    run(again)
    for number, (one, other) in enumerate(zip(committed.cells, again.cells, strict=True)):
        if one.cell_type != "code":
            continue
        assert kinds(one) == kinds(other), f"cell {number}"
        if "measured" not in one.metadata.get("tags", []):
            assert agree(shown(one), shown(other)), f"cell {number} shows\n{shown(other)}\nand not\n{shown(one)}"


if __name__ == "__main__":
    import nbformat

    for notebook in NOTEBOOKS:
        whole = read(notebook)
        run(whole)
        nbformat.write(whole, notebook)
