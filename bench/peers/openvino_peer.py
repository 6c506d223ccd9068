"""OpenVINO on the CPU, with the latency hint and the case's type asked for: by itself it computes in bfloat16 where there are such units."""

import numpy as np
import openvino
from openvino import opset13 as ops

import onnx_graphs

NAME = "OpenVINO"
core = openvino.Core()
config = {}
PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}  # int8 takes a model that was quantised with data


def version():
    return openvino.__version__.split("-")[0]


def start(threads):
    config.update(
        PERFORMANCE_HINT="LATENCY", INFERENCE_NUM_THREADS=threads, NUM_STREAMS=1, KV_CACHE_PRECISION="f32", ENABLE_CPU_PINNING=False,
    )  # fmt: skip


class Request:
    """A compiled model with inputs bound where they lie, and kept alive."""

    def __init__(self, compiled, inputs):
        self.inputs = inputs
        self.request = compiled.create_infer_request()
        for index, array in enumerate(inputs):
            self.request.set_input_tensor(index, openvino.Tensor(array, shared_memory=True))

    def run(self):
        self.request.infer(share_outputs=True)

    def result(self):
        return self.request.get_output_tensor(0).data


def compile_model(model, type="float32"):
    return core.compile_model(model, "CPU", config | {"INFERENCE_PRECISION_HINT": PRECISIONS[type]})


def single(model, inputs, type="float32"):
    """run, result of a model with one set of inputs, which are float32 whatever it computes in."""
    asked = Request(compile_model(model, type), inputs)
    return asked.run, asked.result


def gemm(problem):
    if problem.case.type not in PRECISIONS:
        return
    a = ops.parameter(problem.a.shape, np.float32)
    model = openvino.Model([ops.matmul(a, ops.constant(problem.weights), False, False)], [a])
    yield "matmul", lambda: single(model, [problem.a], problem.case.type)


def swap(node):
    """[B, L, H, D] ↔ [B, H, L, D]."""
    return ops.transpose(node, ops.constant(np.array([0, 2, 1, 3])))


def fused(query, key, value, mask, causal):
    return ops.scaled_dot_product_attention(query, key, value, mask, causal=causal)


def plain(query, key, value, mask, causal):
    """Products and softmax, which OpenVINO fuses in its own ways."""
    root = ops.constant(np.float32(1 / np.sqrt(query.get_output_partial_shape(0)[3].get_length())))
    scores = ops.multiply(ops.matmul(query, key, False, True), root)
    if mask is not None:
        scores = ops.add(scores, mask)
    return ops.matmul(ops.softmax(scores, 3), value, False, False)


def attention_model(shapes, heads_first, way, mask=None, causal=False):
    """query, key, value as parameters of `shapes`."""
    parameters = [ops.parameter(shape, np.float32) for shape in shapes]
    out = way(*(parameters if heads_first else map(swap, parameters)), mask, causal)
    return openvino.Model([out if heads_first else swap(out)], parameters)


def additive(mask):
    return ops.constant(np.where(mask, np.float32(0), np.float32(np.finfo(np.float32).min)))


WAYS = {"SDPA": fused, "plain": plain}


def attention(problem):
    case = problem.case
    for name, way in WAYS.items():
        if case.sequences:
            yield f"{name}, one by one", lambda way=way: one_by_one(problem, way)
            yield f"{name}, padded", lambda way=way: padded(problem, way)
        elif case.kv_heads != case.heads:
            yield f"{name}, grouped", lambda way=way: grouped(problem, way)
        elif case.suite == "decode":
            yield name, lambda way=way: whole(problem, case.contiguous, way)
        else:
            yield f"{name}, heads first", lambda way=way: whole(problem, True, way)
            yield f"{name}, heads inside", lambda way=way: whole(problem, False, way)


def whole(problem, heads_first, way):
    case = problem.case
    tensors = (problem.query, problem.key, problem.value)
    if heads_first:
        tensors = [np.ascontiguousarray(tensor.transpose(0, 2, 1, 3)) for tensor in tensors]
    causal = case.causal and way is fused
    mask = additive(problem.mask()) if problem.masked or case.causal != causal else None
    if case.slopes:
        mask = ops.constant(problem.bias())
    run, result = single(attention_model([tensor.shape for tensor in tensors], heads_first, way, mask, causal), tensors, case.type)
    return run, lambda: result().transpose(0, 2, 1, 3) if heads_first else result()


def grouped(problem, way):
    tensors = problem.grouped()
    run, result = single(attention_model([tensor.shape for tensor in tensors], True, way), tensors)
    return run, lambda: result().reshape(problem.query.shape)


def one_by_one(problem, way):
    case = problem.case
    any_length = openvino.PartialShape([1, -1, case.heads, case.head_dim])
    compiled = compile_model(attention_model([any_length] * 3, False, way))
    requests = [Request(compiled, piece) for piece in zip(*map(problem.pieces, (problem.query, problem.key, problem.value)))]

    def run():
        for asked in requests:
            asked.run()

    return run, lambda: np.concatenate([asked.result() for asked in requests], axis=1)


def padded(problem, way):
    tensors = [problem.padded(tensor) for tensor in (problem.query, problem.key, problem.value)]
    seen = np.arange(tensors[0].shape[1]) < np.array(problem.case.sequences)[:, None]
    mask = additive(seen[:, None, None, :])
    run, result = single(attention_model([tensor.shape for tensor in tensors], False, way, mask), tensors)
    return run, lambda: problem.packed(result())


def encoder(problem):
    if problem.case.type in PRECISIONS:
        yield "from ONNX", lambda: single(core.read_model(onnx_graphs.encoder(problem)), [problem.ids], problem.case.type)


def family(problem):
    """Converted from PyTorch, with the case's shape given in advance."""
    case = problem.case
    if case.type in PRECISIONS:
        yield "from PyTorch", lambda: single(converted(problem), [problem.ids], case.type)


def converted(problem):
    """Read from where it was written once."""
    windowed = problem.case.family.windowed(problem.case.tokens)
    file = problem.model.file("windowed" if windowed else "full", ".xml")
    if not file.exists():
        openvino.save_model(problem.model.traced(convert, windowed=windowed), file, compress_to_fp16=False)
    model = core.read_model(file)
    model.reshape(problem.ids.shape)
    return model


def convert(module, ids):
    return openvino.convert_model(module, example_input=ids, input=[openvino.PartialShape([-1, -1])])
