"""The bits of the command line, which is C++: HEADLIGHT_PROGRAM names it, or it lies where a release build leaves it."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

import headlight as hl

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = pathlib.Path(os.environ.get("HEADLIGHT_PROGRAM", ROOT / "build" / "release" / "headlight"))
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"there is no {PROGRAM}")


def run(*arguments, isa="scalar"):
    environment = {**os.environ, "HEADLIGHT_ISA": isa, "HEADLIGHT_NUM_THREADS": "1"}
    subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, env=environment)


OPTIONS = {
    "plain": ({}, []),
    "causal": (dict(causal="bottom_right", window=(40, None)), ["--causal", "bottom-right", "--window", "40,-1"]),
    "softcap": (dict(scale=0.25, softcap=2.0, chunk=50), ["--scale", "0.25", "--softcap", "2", "--chunk", "50"]),
    "lengths": (
        dict(query_lengths=np.array([60, 7]), key_lengths=np.array([200, 31]), align="bottom_right", window=(50, 9)),
        ["--align", "bottom-right", "--window", "50,9"],
    ),
    "starts": (
        dict(query_start=np.array([5, 400]), key_start=np.array([0, 300]), causal="top_left"), ["--causal", "top-left"],
    ),
    "dropout": (dict(dropout=0.25, seed=12345), ["--dropout", "0.25", "--seed", "12345"]),
    "arrays": (
        dict(
            key_lengths=np.array([200, 31]), bias=np.linspace(-1, 1, 300, dtype=np.float32)[None],
            mask=np.arange(300) % 3 > 0, mask_means="attend", sinks=np.arange(4, dtype=np.float32),
            alibi=np.float32([0.1, 0.2, 0.3, 0.4]),
        ),
        ["--mask-means", "attend"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("isa", hl.available_isas())
@pytest.mark.parametrize("options, arguments", OPTIONS.values(), ids=OPTIONS.keys())
def test_attention_and_its_gradients(draw, tmp_path, isa, options, arguments):
    query, key, value, gradient = draw(2, 70, 4, 32), draw(2, 300, 2, 32), draw(2, 300, 2, 32), draw(2, 70, 4, 32)
    files = []

    def give(name, array):
        # Masks and biases of fewer axes than four get those in front.
        if name in ("mask", "bias"):
            array = array.reshape((1,) * (4 - array.ndim) + array.shape)
        np.save(tmp_path / f"{name}.npy", array)
        files.extend([f"--{name.replace('_', '-')}", tmp_path / f"{name}.npy"])

    for name, array in (("query", query), ("key", key), ("value", value), ("grad_out", gradient)):
        give(name, array)
    for name, given in options.items():
        if isinstance(given, np.ndarray):
            give(name, given)
    results = ["grad-query", "grad-key", "grad-value", *(["grad-bias"] if "bias" in options else [])]
    for name in ["log-sum-exp", *results]:
        files += [f"--{name}", tmp_path / f"{name}.npy"]
    run("attend", *files, *arguments, "-o", tmp_path / "out.npy", isa=isa)

    engine = hl.Engine(threads=2, isa=isa)
    out, lse = hl.attention(query, key, value, **options, log_sum_exp=True, engine=engine)
    np.testing.assert_array_equal(out, np.load(tmp_path / "out.npy"))
    np.testing.assert_array_equal(lse, np.load(tmp_path / "log-sum-exp.npy"))
    gradients = hl.attention_backward(query, key, value, out, lse, gradient, **options, engine=engine)
    for name, own in zip(results, gradients, strict=True):
        np.testing.assert_array_equal(own.ravel(), np.load(tmp_path / f"{name}.npy").ravel())


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_packed_sequences_probabilities_and_types(draw, tmp_path, kind):
    operands = {name: draw(1, 150, heads, 32) for name, heads in (("query", 4), ("key", 2), ("value", 2))}
    offsets = np.array([0, 20, 20, 150])
    files = []
    for name, array in {**operands, "cu-seqlens": offsets}.items():
        np.save(tmp_path / f"{name}.npy", array)
        files += [f"--{name}", tmp_path / f"{name}.npy"]
    isa = hl.available_isas()[-1]
    run(
        "attend", *files, "--type", kind, "--causal", "bottom-right", "--probabilities", tmp_path / "p.npy",
        "-o", tmp_path / "out.npy", isa=isa,
    )  # fmt: skip
    dtype = pytest.importorskip("ml_dtypes").bfloat16 if kind == "bfloat16" else np.dtype(kind)
    stored = (x.astype(dtype) for x in operands.values())
    out, probabilities = hl.attention(
        *stored, query_offsets=offsets, causal="bottom_right", probabilities=True, engine=hl.Engine(threads=2, isa=isa)
    )
    np.testing.assert_array_equal(out.astype(np.float32), np.load(tmp_path / "out.npy"))
    np.testing.assert_array_equal(probabilities, np.load(tmp_path / "p.npy"))


@pytest.mark.parametrize("isa", hl.available_isas())
def test_attention_over_a_cache_of_int8(draw, tmp_path, isa):
    query, key, value = draw(2, 5, 4, 32), draw(2, 300, 2, 32), draw(2, 300, 2, 32)
    files = []
    for name, array in (("query", query), ("key", key), ("value", value)):
        np.save(tmp_path / f"{name}.npy", array)
        files += [f"--{name}", tmp_path / f"{name}.npy"]
    run("attend", *files, "--cache-type", "int8", "--causal", "bottom-right", "-o", tmp_path / "out.npy", isa=isa)

    engine = hl.Engine(threads=2, isa=isa)
    (keys, of_keys), (values, of_values) = (hl.quantize_rows(x, engine=engine) for x in (key, value))
    out = hl.attention(
        query, keys, values, key_scales=of_keys, value_scales=of_values, causal="bottom_right", engine=engine
    )
    np.testing.assert_array_equal(out, np.load(tmp_path / "out.npy"))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8", "int4"])
def test_models(tmp_path, precision):
    folder, texts = ROOT / "models" / "demonstration", ["the animal was tired", "the robot picked up the brick"]
    isa = hl.available_isas()[-1]
    chosen = [argument for text in texts for argument in ("--text", text)]
    run("embed", "--model", folder, "--precision", precision, *chosen, "-o", tmp_path / "out.npy", isa=isa)
    vectors = hl.load(folder, precision=precision).embed(texts, engine=hl.Engine(threads=2, isa=isa))
    np.testing.assert_array_equal(vectors, np.load(tmp_path / "out.npy"))
