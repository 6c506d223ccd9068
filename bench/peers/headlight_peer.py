"""headlight by its Python package."""

import functools

import ml_dtypes
import numpy as np

import headlight as hl
from headlight_training_step import TrainingStep

NAME = "headlight"
engine = None


def version():
    return hl.__version__


def start(threads):
    global engine
    engine = hl.Engine(threads=threads)


def into(out, function, *arguments, **options):
    """run and result of a function that writes into `out`."""
    return functools.partial(function, *arguments, out=out, engine=engine, **options), lambda: out


def gemm(problem):
    yield "packed", lambda: packed_gemm(problem)


def packed_gemm(problem):
    out = np.empty((problem.case.m, problem.case.n), np.float32)
    return into(out, hl.matmul, problem.a, hl.pack(problem.weights, problem.case.type, engine=engine))


def attention(problem):
    yield "attention", lambda: attention_call(problem)


def attention_call(problem):
    case = problem.case
    options = {"causal": "top_left" if case.causal else None}
    if case.window >= 0:
        options["window"] = (case.window, case.window)
    if case.key_lengths:
        options["key_lengths"] = case.key_lengths
    if case.sequences:
        options["query_offsets"] = np.cumsum((0, *case.sequences)).tolist()
    if case.boolean:
        options |= {"mask": problem.mask(), "mask_means": "attend"}
    if case.slopes:
        options["alibi"] = problem.slopes()
    held = of_type(case.type, problem.query, problem.key, problem.value)
    out = np.empty_like(held[0], order="C")
    run, _ = into(out, hl.attention, *held, **options)
    return run, lambda: out.astype(np.float32)


def of_type(type, *arrays):
    dtype = np.dtype(ml_dtypes.bfloat16 if type == "bfloat16" else np.float32)
    return [array.astype(dtype, order="K", copy=False) for array in arrays]


def attention_training(problem):
    yield "attention", lambda: attention_training_call(problem)


def attention_training_call(problem):
    case, results = problem.case, []
    options = {"causal": "top_left" if case.causal else None, "dropout": case.dropout, "seed": 42, "engine": engine}
    *operands, out_gradient = of_type(case.type, problem.query, problem.key, problem.value, problem.out_gradient)

    def run():
        results.clear()  # first, as a loop of a user's would
        out, log_sum_exp = hl.attention(*operands, log_sum_exp=True, **options)
        results.extend((out, *hl.attention_backward(*operands, out, log_sum_exp, out_gradient, **options)))

    return run, lambda: tuple(result.astype(np.float32, copy=False) for result in results)


def layer_training(problem):
    yield "TransformerEncoderLayer", lambda: layer_training_call(problem)


def layer_training_call(problem):
    """Training of whole layers is C++ alone: training_step.cc is a step as a module of Python."""
    case = problem.case
    step = TrainingStep(engine.threads, case.batch, case.length, case.width, case.heads)
    step.x[:], step.y_gradient[:] = problem.x, problem.y_gradient
    gradients = {}
    for name, values, gradient in step.parameters():
        problem.parameters[name] = values.copy()
        gradients[name] = gradient
    return step.run, lambda: (step.y, step.x_gradient, gradients["linear1.weight"])


def encoder(problem):
    yield "encoder", lambda: encoder_call(problem)


def encoder_call(problem):
    model = hl.load(problem.model.folder, problem.case.type)
    out = np.empty((*problem.ids.shape, model.width), np.float32)
    return into(out, model.encode_ids, problem.ids)


family = encoder
