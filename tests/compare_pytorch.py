#!/usr/bin/env python3
"""Holds `headlight attend` against PyTorch in float64 on random calls with every option.

  tests/compare_pytorch.py build/release/headlight --cases 500 --first 1 --method fused

Needs NumPy and PyTorch, so it is no part of the tests; their golden numbers come from the same attend() below. A case is told by its
number: a failing one prints its line and how to run it alone. Every row must err by at most 2e + 8u, e being the worst error over a
row's norm of PyTorch's own float32 computation on the whole case, u = 2⁻²⁴.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))
from attention import Case, attend, slopes  # noqa: E402

UNIT_ROUNDOFF = 2.0**-24


def random_case(number):
    """Any of the options in any combination; lengths from 0 to 300."""
    chance = np.random.default_rng(number)
    integer = lambda first, last: int(chance.integers(first, last, endpoint=True))
    once_in = lambda odds: integer(1, odds) == 1
    length = lambda: integer(0, 3) if once_in(6) else integer(1, 40) if once_in(2) else integer(1, 300)
    offsets = lambda count, total: [0] + sorted(integer(0, total) for _ in range(count - 1)) + [total]

    case = Case(seed=number, B=integer(1, 3), Lq=length(), Hkv=integer(1, 3), D=integer(1, 130 if once_in(4) else 40))
    case.Lk = case.Lq if once_in(2) else length()
    case.Hq = case.Hkv * integer(1, 3)
    case.Dv = case.D if once_in(2) else integer(1, 70)
    reach = max(1, case.Lq, case.Lk)
    corners = ["top-left", "bottom-right"]
    if once_in(3):
        case.causal = corners[integer(0, 1)]
    if once_in(3):
        case.align = corners[integer(0, 1)]
    if once_in(3):
        case.window = [integer(-1, reach), integer(-1, reach // 2)]
    if once_in(4):
        case.chunk = integer(1, reach)
    if once_in(5):
        case.B = 1
        case.Lk = case.Lq  # the command line takes one file of offsets, for queries and keys
        case.query_offsets = offsets(integer(1, 6), case.Lq)
    else:
        if once_in(4):
            case.query_lengths = [integer(0, case.Lq) for _ in range(case.B)]
        if once_in(3):
            case.key_lengths = [integer(0, case.Lk) for _ in range(case.B)]
    broadcast = lambda: [1 if once_in(2) else extent for extent in (case.B, case.Hq, case.Lq, case.Lk)]
    if once_in(4):
        case.mask, case.mask_means = broadcast(), ["attend", "ignore"][integer(0, 1)]
    if once_in(4):
        case.bias, case.bias_has_infinities = broadcast(), integer(0, 1)
    if once_in(4):
        case.scale = float(np.float32(chance.uniform(-0.5, 0.5)))
    if once_in(4):
        case.softcap = float(np.float32(chance.uniform(0.75, 1.25))) if once_in(2) else 20.0
    case.alibi = int(once_in(4))
    case.sinks = int(once_in(4))
    sequences = len(case.query_offsets) - 1 if case.query_offsets else case.B
    if once_in(4):
        case.key_start = [integer(0, 2 * case.Lk) for _ in range(1 if once_in(2) else sequences)]
    if once_in(4):
        first = case.key_start[0] if case.key_start else 0
        case.query_start = [integer(max(0, first - case.Lq // 2), first + case.Lk) for _ in range(1 if once_in(2) else sequences)]
    return case


def arguments(case, folder, query, key, value, mask, bias, sinks):
    """The command line of the case; its arrays lie in the folder."""
    given = ["--isa", case.isa] if case.isa else []
    arrays = {"query": query, "key": key, "value": value, "mask": mask, "bias": bias, "sinks": sinks}
    if case.alibi:
        arrays["alibi"] = slopes(case)
    for name, option in [("query-lengths", "query_lengths"), ("key-lengths", "key_lengths"), ("cu-seqlens", "query_offsets")]:
        if getattr(case, option):
            arrays[name] = np.array(getattr(case, option), np.int64)
    for name, starts in [("query-start", case.query_start), ("key-start", case.key_start)]:
        if len(starts) == 1:
            given += [f"--{name}", str(starts[0])]
        elif starts:
            arrays[name] = np.array(starts, np.int64)
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array)
            given += [f"--{name}", str(folder / f"{name}.npy")]
    if mask is not None:
        given += ["--mask-means", case.mask_means]
    if case.causal:
        given += ["--causal", case.causal]
    if case.align:
        given += ["--align", case.align]
    if case.window != [-1, -1]:
        given += [f"--window={case.window[0]},{case.window[1]}"]
    if case.chunk:
        given += ["--chunk", str(case.chunk)]
    if case.scale is not None:
        given += [f"--scale={case.scale!r}"]
    if case.softcap:
        given += ["--softcap", repr(case.softcap)]
    return given


def worst_error(actual, truth, yardstick):
    """The largest element error of a row over the norm of its yardstick, the worst of all rows."""
    if not np.array_equal(np.isinf(actual), np.isinf(truth)) or np.isnan(actual).any():
        return np.inf
    finite = np.isfinite(truth)
    error = np.abs(np.where(finite, actual, 0) - np.where(finite, truth, 0)).max(-1, initial=0)
    norm = np.linalg.norm(np.where(np.isfinite(yardstick), yardstick, 0), axis=-1)
    return np.divide(error, norm, out=np.where(error > 0, np.inf, 0.0), where=norm > 0).max(initial=0)


def compare(program, case, method, folder):
    """The ratio of the worst error to the allowed one, for each output."""
    inputs = case.inputs()
    query, key, value, mask, bias, sinks = inputs
    truth = attend(case, *inputs)
    plain = attend(case, *inputs, single=True)
    outputs = [folder / name for name in ("out.npy", "log_sum_exp.npy", "probabilities.npy")]
    command = [program, "attend", *arguments(case, folder, *inputs), "--method", method, "-o", str(outputs[0]),
               "--log-sum-exp", str(outputs[1]), "--probabilities", str(outputs[2])]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()}")

    # Rows of a few elements may be nothing but what a cancellation left: those are measured by what was added up. An error of ε in a
    # log-sum-exp is one of ε in every probability: 1 is added to its size.
    sizes = truth[0] if case.Dv >= 8 else attend(case, query, key, np.abs(value), mask, bias, sinks)[0]
    yardsticks = [sizes, 1 + np.abs(truth[1]), truth[2]]
    ratios = []
    for path, right, single, yardstick in zip(outputs, truth, plain, yardsticks):
        actual = np.load(path)
        if actual.shape != right.shape or actual.dtype != np.float32:
            raise RuntimeError(f"{path.stem} is {actual.dtype} {actual.shape}, expected float32 {right.shape}")
        allowed = 2 * worst_error(single, right, yardstick) + 8 * UNIT_ROUNDOFF
        ratios.append(worst_error(actual, right, yardstick) / allowed)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--method", choices=["fused", "unfused", "reference"], default="fused")
    parser.add_argument("--isa", default="")
    options = parser.parse_args()

    failures = 0
    worst = np.zeros(3)
    for number in range(options.first, options.first + options.cases):
        case = random_case(number)
        case.isa = options.isa
        with tempfile.TemporaryDirectory() as folder:
            try:
                ratios = compare(options.program, case, options.method, pathlib.Path(folder))
                problem = f"{max(ratios):.2f} of the allowed error" if max(ratios) > 1 else ""
                worst = np.maximum(worst, ratios)
            except RuntimeError as error:
                problem = str(error)
        if problem:
            failures += 1
            print(f"case {number}: {problem}\n  {case}\n  again: --first {number} --cases 1")
    print(f"{options.cases} cases, {failures} failed; worst error over the allowed one: out {worst[0]:.2f}, "
          f"log-sum-exp {worst[1]:.2f}, probabilities {worst[2]:.2f}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
