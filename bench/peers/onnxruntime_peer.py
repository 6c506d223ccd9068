"""ONNX Runtime on the CPU: MatMul with packed weights, its own attention operators, BERT as exported and fused by hand."""

import logging
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic

import onnx_graphs

NAME = "ONNX Runtime"
NAMES = ("query", "key", "value")
MICROSOFT = {"domain": onnx_graphs.MICROSOFT}
session_options = onnxruntime.SessionOptions()


def version():
    return onnxruntime.__version__


def start(threads):
    session_options.intra_op_num_threads = threads
    session_options.inter_op_num_threads = 1
    session_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session_options.log_severity_level = 4


def open_session(model):
    return onnxruntime.InferenceSession(model, session_options, providers=["CPUExecutionProvider"])


class Bound:
    """A session with inputs bound where they lie, and outputs in memory that stays. `in_place`: outputs that share an input's memory."""

    def __init__(self, session, inputs, in_place=None):
        self.session, self.inputs = session, inputs
        self.binding = session.io_binding()
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in inputs.items()}
        for name, value in values.items():
            self.binding.bind_ortvalue_input(name, value)
        in_place = in_place or {}
        for output in session.get_outputs():
            if output.name in in_place:
                self.binding.bind_ortvalue_output(output.name, values[in_place[output.name]])
            else:
                self.binding.bind_output(output.name)
        self.run()
        self.out = self.binding.get_outputs()[0]
        self.binding.bind_ortvalue_output(session.get_outputs()[0].name, self.out)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def result(self):
        return self.out.numpy()


def single(model, inputs, **options):
    """run, result of a model with one set of inputs."""
    bound = Bound(open_session(model), inputs, **options)
    return bound.run, bound.result


def quantized(model, **options):
    """With weights of int8, a scale for each output channel, and what they are multiplied by quantised in each call."""
    logging.disable(logging.WARNING)  # it advises to optimise the graph first, which the session does
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "quantized.onnx"
        quantize_dynamic(onnx.load_model_from_string(model), file, per_channel=True, weight_type=QuantType.QInt8, **options)
        return file.read_bytes()


def of_type(model, type):
    return quantized(model) if type == "int8" else model


def gemm(problem):
    if problem.case.type != "bfloat16":
        yield "MatMul", lambda: single(of_type(onnx_graphs.gemm(problem), problem.case.type), {"a": problem.a})


def entries(inputs):
    """(name, shape, element type) of arrays by name, for a graph's inputs."""
    kinds = {"float32": TensorProto.FLOAT, "bool": TensorProto.BOOL, "int32": TensorProto.INT32}
    return {name: (name, list(array.shape), kinds[str(array.dtype)]) for name, array in inputs.items()}


def attention(problem):
    case = problem.case
    if case.type != "float32":
        return
    if case.sequences:
        yield "one by one", lambda: one_by_one(problem)
        yield "padded", lambda: padded(problem)
        return
    if case.kv_heads == case.heads:
        yield "MultiHeadAttention", lambda: multi_head(problem)
    else:
        yield "Attention, grouped", lambda: grouped(problem)
    yield "Attention", lambda: attention_operator(problem)
    if case.suite == "decode" and case.contiguous:
        yield "GroupQueryAttention", lambda: decode_from_cache(problem)
    if case.causal:
        yield "GroupQueryAttention", lambda: prompt(problem)


def split_heads(problem, run, result):
    """result() [B, L, H·D] as [B, L, H, D]."""
    return run, lambda: result().reshape(problem.query.shape)


def flat(tensor):
    return tensor.reshape(*tensor.shape[:2], -1)


def multi_head(problem):
    """Key and value as [B, H, L, D] where they lie so, else heads side by side."""
    case = problem.case
    heads_first = case.contiguous
    laid_out = (lambda tensor: tensor.transpose(0, 2, 1, 3)) if heads_first else flat
    inputs = {"query": flat(problem.query), "key": laid_out(problem.key), "value": laid_out(problem.value)}
    mask = bias = None
    if case.key_lengths:
        inputs["mask"] = np.array(case.key_lengths, np.int32)
        mask = "mask"
    if case.window >= 0 or case.boolean:
        inputs["bias"] = np.where(problem.mask(), np.float32(0), np.float32(-np.inf))
        bias = "bias"
    if case.slopes:
        inputs["bias"] = problem.bias()
        bias = "bias"
    known = entries(inputs)
    order = [known["query"], known["key"], known["value"], None, known.get(mask), known.get(bias)]
    while order[-1] is None:
        order.pop()
    attributes = {"num_heads": case.heads, "unidirectional": int(case.causal), "mask_filter_value": float(np.finfo(np.float32).min)}
    return split_heads(problem, *single(onnx_graphs.attention_call("MultiHeadAttention", order, **MICROSOFT, **attributes), inputs))


def attention_operator(problem):
    """ONNX's own Attention, opset 23, [B, H, L, D]."""
    case = problem.case
    if case.suite == "decode" and not case.contiguous:
        inputs = {"query": flat(problem.query), "key": flat(problem.key), "value": flat(problem.value)}
        attributes = {"q_num_heads": case.heads, "kv_num_heads": case.kv_heads}
        canonical = lambda out: out.reshape(problem.query.shape)
    else:
        heads_first = lambda tensor: np.ascontiguousarray(tensor.transpose(0, 2, 1, 3))
        inputs = {"query": heads_first(problem.query), "key": heads_first(problem.key), "value": heads_first(problem.value)}
        attributes = {}
        canonical = lambda out: out.transpose(0, 2, 1, 3)
    if case.slopes:
        inputs["mask"] = problem.bias()
    elif problem.masked:
        inputs["mask"] = np.ascontiguousarray(np.broadcast_to(problem.mask(), (case.batch, 1, case.query_length, case.key_length)))
    model = onnx_graphs.attention_call("Attention", entries(inputs).values(), is_causal=int(case.causal), **attributes)
    run, result = single(model, inputs)
    return run, lambda: canonical(result())


def grouped(problem):
    inputs = dict(zip(NAMES, problem.grouped()))
    model = onnx_graphs.attention_call("Attention", entries(inputs).values())
    return split_heads(problem, *single(model, inputs))


def group_query(problem, inputs, **options):
    case = problem.case
    order = list(entries(inputs).values())
    if "past_key" not in inputs:
        order[3:3] = [None, None]
    outputs = ("out", "present_key", "present_value")
    heads = {"num_heads": case.heads, "kv_num_heads": case.kv_heads}
    model = onnx_graphs.attention_call("GroupQueryAttention", order, outputs=outputs, **MICROSOFT, **heads)
    return split_heads(problem, *single(model, inputs, **options))


def decode_from_cache(problem):
    """The last key and value are new, and are written into the cache where they belong."""
    heads_first = lambda tensor: tensor.transpose(0, 2, 1, 3)
    length = problem.case.key_length
    inputs = {
        "query": flat(problem.query), "key": flat(problem.key[:, -1:]), "value": flat(problem.value[:, -1:]),
        "past_key": heads_first(problem.key), "past_value": heads_first(problem.value),
        "last": np.array([length - 1], np.int32), "total": np.array(length, np.int32),
    }  # fmt: skip
    return group_query(problem, inputs, in_place={"present_key": "past_key", "present_value": "past_value"})


def prompt(problem):
    length = problem.case.key_length
    inputs = {
        "query": flat(problem.query), "key": flat(problem.key), "value": flat(problem.value),
        "last": np.array([length - 1], np.int32), "total": np.array(length, np.int32),
    }  # fmt: skip
    return group_query(problem, inputs)


def one_by_one(problem):
    case = problem.case
    any_length = [(name, [1, "length", case.heads * case.head_dim], TensorProto.FLOAT) for name in NAMES]
    session = open_session(onnx_graphs.attention_call("MultiHeadAttention", any_length, **MICROSOFT, num_heads=case.heads))
    pieces = zip(*(problem.pieces(flat(tensor)) for tensor in (problem.query, problem.key, problem.value)))
    calls = [Bound(session, dict(zip(NAMES, piece))) for piece in pieces]

    def run():
        for call in calls:
            call.run()

    return split_heads(problem, run, lambda: np.concatenate([call.result() for call in calls], axis=1))


def padded(problem):
    inputs = {name: flat(problem.padded(tensor)) for name, tensor in zip(NAMES, (problem.query, problem.key, problem.value))}
    inputs["mask"] = np.array(problem.case.sequences, np.int32)
    known = entries(inputs)
    order = [*(known[name] for name in NAMES), None, known["mask"]]
    attributes = {"num_heads": problem.case.heads, "mask_filter_value": float(np.finfo(np.float32).min)}
    run, result = single(onnx_graphs.attention_call("MultiHeadAttention", order, **MICROSOFT, **attributes), inputs)
    return split_heads(problem, run, lambda: problem.packed(result()))


def encoder(problem):
    if problem.case.type == "bfloat16":
        return
    for fused in (None, "MultiHeadAttention", "Attention"):
        graph = lambda fused=fused: of_type(onnx_graphs.encoder(problem, fused), problem.case.type)
        yield f"fused {fused}" if fused else "plain", lambda graph=graph: single(graph(), {"ids": problem.ids})


def family(problem):
    """As exported from PyTorch; of int8, its products with constant weights."""
    if problem.case.type != "bfloat16":
        yield "exported", lambda: single(exported(problem), {"ids": problem.ids})


def exported(problem):
    """The path of a file that was made once."""
    case = problem.case
    file = problem.model.onnx(case.family.windowed(case.tokens))
    if case.type == "float32":
        return file
    quantized_file = file.with_suffix(".int8.onnx")
    if not quantized_file.exists():
        logging.disable(logging.WARNING)
        options = {"per_channel": True, "weight_type": QuantType.QInt8, "op_types_to_quantize": ["MatMul"]}
        quantize_dynamic(file, quantized_file, **options)
    return quantized_file
