"""PyTorch on the CPU: scaled_dot_product_attention, mm and MKL's packed linear, and the fused nn.TransformerEncoderLayer."""

import copy

import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from torch.nn.attention import flex_attention

NAME = "PyTorch"

# For good: entering it in every call would cost the tiny cases a microsecond.
inference = torch.inference_mode()
inference.__enter__()


def version():
    return torch.__version__


def start(threads):
    torch.set_num_threads(threads)
    # A function that torch.compile saw with eight shapes is compiled no more: each case is its first.
    torch.compiler.reset()


def call(step, canonical=lambda out: out):
    """Makes run and result of a step that returns a tensor. The last one is freed first, as a loop of a user's would."""

    def make():
        last = []

        def run():
            last.clear()
            last.append(step())

        return run, lambda: canonical(last[0]).float().numpy()

    return make


def gemm(problem):
    if problem.case.type == "int8":
        yield "dynamic", lambda: dynamic_linear(problem)
        return
    dtype = getattr(torch, problem.case.type)
    a = torch.from_numpy(problem.a).to(dtype)
    weights = torch.from_numpy(problem.weights).to(dtype)
    rows = weights.t().contiguous()
    out = torch.empty(a.shape[0], weights.shape[1], dtype=dtype)
    yield "mm", call(lambda: torch.mm(a, weights, out=out))
    yield "linear", call(lambda: F.linear(a, rows))
    if dtype is torch.float32:
        yield "MKL packed", lambda: packed_by_mkl(a, rows)
    yield "oneDNN packed", lambda: packed_by_onednn(a, rows)


def dynamic_linear(problem):
    """Weights of int8, and of a row's numbers as many as it takes: a scale and a zero point for all of `a` together."""
    linear = torch.nn.Linear(problem.case.k, problem.case.n, bias=False).eval()
    linear.weight.copy_(torch.from_numpy(problem.weights).t())
    quantized = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(linear), {torch.nn.Linear}, dtype=torch.qint8)
    a = torch.from_numpy(problem.a)
    return call(lambda: quantized(a))()


def packed_by_mkl(a, rows):
    """What torch.compile makes of frozen weights."""
    packed = torch.ops.mkl._mkl_reorder_linear_weight(rows, a.shape[0])
    return call(lambda: torch.ops.mkl._mkl_linear(a, packed, rows, None, a.shape[0]))()


def packed_by_onednn(a, rows):
    packed = torch.ops.mkldnn._reorder_linear_weight(rows, a.shape[0])
    return call(lambda: torch.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], ""))()


def swap(tensor):
    """[B, L, H, D] ↔ [B, H, L, D], without a copy."""
    return tensor.transpose(1, 2)


def attention(problem):
    case = problem.case
    dtype = getattr(torch, case.type)
    views = [swap(torch.from_numpy(tensor).to(dtype)) for tensor in (problem.query, problem.key, problem.value)]
    if case.sequences:
        yield from packed(problem, views)
        return
    options = {"is_causal": case.causal, "enable_gqa": case.kv_heads != case.heads}
    if case.slopes:
        options["attn_mask"] = torch.from_numpy(problem.bias())
    elif problem.masked:
        options["attn_mask"] = torch.from_numpy(problem.mask()).expand(-1, -1, case.query_length, -1)
    yield "strided", call(lambda: F.scaled_dot_product_attention(*views, **options), swap)
    if case.suite != "decode":
        copies = [view.contiguous() for view in views]
        yield "contiguous", call(lambda: F.scaled_dot_product_attention(*copies, **options), swap)
    if case.kv_heads != case.heads:
        grouped = [torch.from_numpy(tensor) for tensor in problem.grouped()]
        yield "grouped", call(lambda: F.scaled_dot_product_attention(*grouped), lambda out: out.reshape(problem.query.shape))
    if case.key_lengths:
        yield "one by one", cut_to_length(case, views)
    if case.window >= 0:
        yield "flex_attention", lambda: flex_window(case, views)
    if case.slopes:
        yield "flex_attention", lambda: flex_slopes(problem, views)


def cut_to_length(case, views):
    samples = [[view[n : n + 1] for view in views] for n in range(case.batch)]
    cut = [(query, key[:, :, :length], value[:, :, :length]) for (query, key, value), length in zip(samples, case.key_lengths)]
    return call(lambda: [F.scaled_dot_product_attention(*sample) for sample in cut], lambda outs: swap(torch.cat(outs)))


def flex_window(case, views):
    """Skips blocks that nobody sees; compiled by the machine's own g++."""
    seen = lambda batch, head, row, key: (row - key).abs() <= case.window
    blocks = flex_attention.create_block_mask(seen, None, None, case.query_length, case.key_length, device="cpu")
    compiled = torch.compile(flex_attention.flex_attention)
    return call(lambda: compiled(*views, block_mask=blocks), swap)()


def flex_slopes(problem, views):
    slopes = torch.from_numpy(problem.slopes())
    falls = lambda score, batch, head, row, key: score - slopes[head] * (row - key).abs()
    compiled = torch.compile(flex_attention.flex_attention)
    return call(lambda: compiled(*views, score_mod=falls), swap)()


def packed(problem, views):
    lengths = problem.case.sequences
    parts = list(zip(*(view.split(lengths, dim=2) for view in views)))
    joined = lambda outs: swap(torch.cat(outs, dim=2))
    yield "one by one", call(lambda: [F.scaled_dot_product_attention(*part) for part in parts], joined)

    padded = [swap(torch.from_numpy(problem.padded(t))) for t in (problem.query, problem.key, problem.value)]
    longest = max(lengths)
    seen = (torch.arange(longest) < torch.tensor(lengths)[:, None])[:, None, None, :].expand(-1, -1, longest, -1)
    unpad = lambda out: torch.from_numpy(problem.packed(swap(out).numpy()))
    yield "padded", call(lambda: F.scaled_dot_product_attention(*padded, attn_mask=seen), unpad)


def training_call(step):
    """As call(), with gradients; a step returns a tuple of tensors."""

    def make():
        last = []

        def run():
            last.clear()
            with torch.inference_mode(False), torch.enable_grad():
                last.append(step())

        return run, lambda: tuple(tensor.detach().float().numpy() for tensor in last[0])

    return make


def attention_training(problem):
    case = problem.case
    with torch.inference_mode(False):
        arrays = problem.query, problem.key, problem.value, problem.out_gradient
        inputs = [swap(torch.from_numpy(array).to(getattr(torch, case.type))) for array in arrays]
        copies = [tensor.contiguous() for tensor in inputs]
    for variant, tensors in (("strided", inputs), ("contiguous", copies)):
        with torch.inference_mode(False):
            leaves, out_gradient = [tensor.detach().requires_grad_() for tensor in tensors[:3]], tensors[3]

        def step(leaves=leaves, out_gradient=out_gradient):
            out = F.scaled_dot_product_attention(*leaves, is_causal=case.causal, dropout_p=case.dropout)
            return tuple(map(swap, (out, *torch.autograd.grad(out, leaves, out_gradient))))

        yield variant, training_call(step)


def training_layer(problem, dtype=torch.float32):
    case = problem.case
    layer = torch.nn.TransformerEncoderLayer(case.width, case.heads, case.inner, 0.0, "gelu", batch_first=True, dtype=dtype).train()
    layer.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in problem.parameters.items()})
    x = torch.from_numpy(problem.x).to(dtype).requires_grad_()
    return layer, x, torch.from_numpy(problem.y_gradient).to(dtype)


def layer_step(layer, x, y_gradient, apply):
    layer.zero_grad(set_to_none=True)
    x.grad = None
    y = apply(x)
    y.backward(y_gradient)
    return y, x.grad, layer.linear1.weight.grad


def layer_training(problem):
    with torch.inference_mode(False):
        layer, x, y_gradient = training_layer(problem)
    yield "nn.TransformerEncoderLayer", training_call(lambda: layer_step(layer, x, y_gradient, layer))
    optimised = torch.compile(layer)
    yield "compiled", training_call(lambda: layer_step(layer, x, y_gradient, optimised))


def layer_in_float64(problem):
    with torch.inference_mode(False), torch.enable_grad():
        layer, x, y_gradient = training_layer(problem, torch.float64)
        return tuple(tensor.detach().numpy() for tensor in layer_step(layer, x, y_gradient, layer))


def transformer_layer(model, number):
    tensors = {name: torch.from_numpy(tensor.copy()) for name, tensor in model.layer(number).items()}
    inner, width = tensors["intermediate.dense.weight"].shape
    layer = torch.nn.TransformerEncoderLayer(width, model.heads, inner, 0.0, "gelu", model.epsilon, batch_first=True).eval()
    joined = lambda kind: torch.cat([tensors[f"attention.self.{part}.{kind}"] for part in ("query", "key", "value")])
    state = {"self_attn.in_proj_weight": joined("weight"), "self_attn.in_proj_bias": joined("bias")}
    names = {"self_attn.out_proj": "attention.output.dense", "norm1": "attention.output.LayerNorm", "linear1": "intermediate.dense",
             "linear2": "output.dense", "norm2": "output.LayerNorm"}  # fmt: skip
    for ours, theirs in names.items():
        state |= {f"{ours}.{kind}": tensors[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
    layer.load_state_dict(state)
    return layer


class Bert(torch.nn.Module):
    def __init__(self, model, length):
        super().__init__()
        tensor = lambda name: torch.from_numpy(model.tensors[f"embeddings.{name}"].copy())
        self.register_buffer("words", tensor("word_embeddings.weight"))
        self.register_buffer("embedded", torch.from_numpy(model.embedded(length)))
        self.norm = torch.nn.LayerNorm(self.words.shape[1], model.epsilon)
        self.norm.load_state_dict({"weight": tensor("LayerNorm.weight"), "bias": tensor("LayerNorm.bias")})
        self.layers = torch.nn.ModuleList(transformer_layer(model, number) for number in model.layers)

    def forward(self, ids):
        x = F.embedding(ids, self.words) + self.embedded
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return x


def encoder(problem):
    network = Bert(problem.model, problem.case.tokens).eval()
    ids = torch.from_numpy(problem.ids)
    if problem.case.type == "int8":
        quantized = torch.ao.quantization.quantize_dynamic(network, {torch.nn.Linear}, dtype=torch.qint8)
        yield "nn.TransformerEncoderLayer, dynamic", call(lambda: quantized(ids))
        return
    network = network.to(getattr(torch, problem.case.type))
    yield "nn.TransformerEncoderLayer", call(lambda: network(ids))
    yield "compiled", lambda: compiled(network, ids)


def family(problem):
    """The module of Transformers, with sdpa and its masks made in advance."""
    type = problem.case.type
    ids, options = torch.from_numpy(problem.ids), problem.model.options(problem.case.tokens)
    if type == "int8":
        network = torch.ao.quantization.quantize_dynamic(problem.model.network, {torch.nn.Linear}, dtype=torch.qint8)
    else:
        network = copy.deepcopy(problem.model.network).to(getattr(torch, type))
    yield "Transformers", call(lambda: network(ids, **options).last_hidden_state)


def compiled(network, ids):
    """torch.compile with constant weights, by the machine's own g++."""
    inductor.freezing = True
    optimised = torch.compile(network)
    return call(lambda: optimised(ids))()
