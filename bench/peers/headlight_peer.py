"""headlight through its C interface, with ctypes."""

import ctypes
import os
import pathlib

import ml_dtypes
import numpy as np

from headlight_types import AttentionGradients, AttentionOptions, Dropout, EngineOptions, Error, Indices, LoadModelOptions, Tensor

NAME = "headlight"

folder = pathlib.Path(os.environ["HEADLIGHT_LIBRARY"])
engine_library = ctypes.CDLL(str(folder / "libheadlight.so"))
models_library = ctypes.CDLL(str(folder / "libheadlight_models.so"))
training_library = ctypes.CDLL(str(folder / "libheadlight_training_step.so"))

CAUSAL_TOP_LEFT = 1
TYPES = {"float32": 0, "int64": 1, "bool": 2, "bfloat16": 3, "int8": 4}
MASK_MEANS_ATTEND = 1
error = Error()
engine = ctypes.c_void_p()


def checked(status):
    if status:
        raise RuntimeError(error.message.decode())


def version():
    engine_library.headlight_version.restype = ctypes.c_char_p
    return engine_library.headlight_version().decode()


def start(threads):
    engine_library.headlight_engine_destroy(engine)
    options = EngineOptions(ctypes.sizeof(EngineOptions), threads)
    checked(engine_library.headlight_engine_create(ctypes.byref(options), ctypes.byref(engine), ctypes.byref(error)))


def tensor(array):
    """A description of an array, which it keeps alive."""
    extents = ctypes.c_int64 * array.ndim
    strides = extents(*(stride // array.itemsize for stride in array.strides))
    described = Tensor(array.ctypes.data, TYPES[str(array.dtype)], array.ndim, extents(*array.shape), strides)
    described.array = array
    return described


def indices(values):
    return Indices((ctypes.c_int64 * len(values))(*values), len(values))


class Handle(ctypes.c_void_p):
    """An object of the library's, destroyed with its last user."""

    def __init__(self, destroy):
        super().__init__()
        self.destroy = destroy

    def __del__(self):
        self.destroy(self)


def call(function, *arguments, out):
    """run and result of a C function: arguments converted once, as a C program's are."""
    last = ctypes.byref(error)
    references = [ctypes.byref(argument) if isinstance(argument, ctypes.Structure) else argument for argument in arguments]

    def run():
        checked(function(*references, last))

    return run, lambda: out


def gemm(problem):
    yield "packed", lambda: packed_gemm(problem)


def packed_gemm(problem):
    out = np.empty((problem.case.m, problem.case.n), np.float32)
    packed = Handle(engine_library.headlight_packed_matrix_destroy)
    create = engine_library.headlight_packed_matrix_create
    weights = tensor(problem.weights)
    checked(create(engine, ctypes.byref(weights), TYPES[problem.case.type], ctypes.byref(packed), ctypes.byref(error)))
    return call(engine_library.headlight_gemm_packed, engine, tensor(problem.a), packed, tensor(out), None, out=out)


def attention(problem):
    yield "attention", lambda: attention_call(problem)


def attention_call(problem):
    case = problem.case
    options = AttentionOptions(ctypes.sizeof(AttentionOptions))
    if case.causal:
        options.causal = CAUSAL_TOP_LEFT
    if case.window >= 0:
        options.window = ctypes.pointer((ctypes.c_int64 * 2)(case.window, case.window))
    if case.key_lengths:
        options.key_lengths = indices(case.key_lengths)
    if case.sequences:
        options.query_offsets = indices(np.cumsum((0, *case.sequences)).tolist())
    if case.boolean:
        options.mask, options.mask_means = ctypes.pointer(tensor(problem.mask())), MASK_MEANS_ATTEND
    if case.slopes:
        options.slopes = ctypes.pointer(tensor(problem.slopes()))
    dtype = np.dtype(ml_dtypes.bfloat16 if case.type == "bfloat16" else np.float32)
    held = [array.astype(dtype, order="K", copy=False) for array in (problem.query, problem.key, problem.value)]
    out = np.empty(problem.query.shape, dtype)
    run, _ = call(engine_library.headlight_attention, engine, *map(tensor, (*held, out)), options, out=None)
    return run, lambda: out.astype(np.float32)


def attention_training(problem):
    yield "attention", lambda: attention_training_call(problem)


def attention_training_call(problem):
    case = problem.case
    options = AttentionOptions(ctypes.sizeof(AttentionOptions))
    if case.causal:
        options.causal = CAUSAL_TOP_LEFT
    dropout = Dropout(case.dropout, 7, 42)
    if case.dropout:
        options.dropout = ctypes.cast(ctypes.pointer(dropout), ctypes.c_void_p)
    results = [np.empty(problem.query.shape, np.float32) for _ in range(4)]
    log_sum_exp = tensor(np.empty((1, case.heads, case.length), np.float32))
    query, key, value, out_gradient = map(tensor, (problem.query, problem.key, problem.value, problem.out_gradient))
    out, *described = map(tensor, results)
    gradients = AttentionGradients(ctypes.sizeof(AttentionGradients), *map(ctypes.pointer, described))
    forward_options = AttentionOptions.from_buffer_copy(options)
    forward_options.log_sum_exp = ctypes.pointer(log_sum_exp)
    kept_alive = (dropout, options, forward_options, gradients)
    forward, _ = call(engine_library.headlight_attention, engine, query, key, value, out, forward_options, out=None)
    backward, _ = call(
        engine_library.headlight_attention_backward, engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options, out=None
    )

    def run(kept_alive=kept_alive):
        forward()
        backward()

    return run, lambda: tuple(results)


def layer_training(problem):
    yield "TransformerEncoderLayer", lambda: layer_training_call(problem)


class ParameterMemory(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p), ("values", ctypes.POINTER(ctypes.c_float)), ("gradient", ctypes.POINTER(ctypes.c_float)),
        ("rows", ctypes.c_int64), ("count", ctypes.c_int64),
    ]  # fmt: skip

    def shaped(self, numbers):
        columns = self.count // self.rows
        return np.ctypeslib.as_array(numbers, (self.rows, columns) if columns > 1 else (self.rows,))


def layer_training_call(problem):
    """Training of whole layers is C++ alone: training_step.cc puts a step behind C functions."""
    case, library = problem.case, training_library
    library.training_step_create.restype = ctypes.c_void_p
    library.training_step_tensor.restype = ctypes.POINTER(ctypes.c_float)
    extents = map(ctypes.c_int64, (case.batch, case.length, case.width, case.heads))
    step = Handle(library.training_step_destroy)
    step.value = library.training_step_create(engine_library.headlight_engine_threads(engine), *extents)

    x, y_gradient, y, x_gradient = (np.ctypeslib.as_array(library.training_step_tensor(step, n), problem.x.shape) for n in range(4))
    x[:], y_gradient[:] = problem.x, problem.y_gradient
    memory, gradients = ParameterMemory(), {}
    while library.training_step_parameter(step, len(gradients), ctypes.byref(memory)):
        name = memory.name.decode()
        problem.parameters[name] = memory.shaped(memory.values).copy()
        gradients[name] = memory.shaped(memory.gradient)
    return lambda: library.training_step_run(step), lambda: (y, x_gradient, gradients["linear1.weight"])


def encoder(problem):
    yield "encoder", lambda: encoder_call(problem)


def encoder_call(problem):
    loaded = Handle(models_library.headlight_encoder_destroy)
    folder_name = str(problem.model.folder).encode()
    options = LoadModelOptions(ctypes.sizeof(LoadModelOptions), TYPES[problem.case.type])
    checked(models_library.headlight_encoder_load_with(folder_name, ctypes.byref(options), ctypes.byref(loaded), ctypes.byref(error)))
    out = np.empty((*problem.ids.shape, problem.model.config["hidden_size"]), np.float32)
    encode = models_library.headlight_encoder_encode_ids
    return call(encode, loaded, engine, tensor(problem.ids), None, tensor(out), out=out)
