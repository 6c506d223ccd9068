"""ONNX models, made by hand: what an exporter writes, and what ONNX Runtime's own operators allow instead."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, INTERNAL_VERSION = 23, 10
MICROSOFT = "com.microsoft"


class Graph:
    """Nodes in order; every value has one name."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def constant(self, array):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, kind, inputs, outputs=None, domain="", **attributes):
        outputs = outputs or [f"value{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def bytes(self):
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=INTERNAL_VERSION)
        return model.SerializeToString()


def gemm(problem):
    graph = Graph()
    a = graph.input("a", problem.a.shape)
    graph.node("MatMul", [a, graph.constant(problem.weights)], ["out"])
    graph.output("out", [problem.case.m, problem.case.n])
    return graph.bytes()


def attention_call(kind, inputs, domain="", outputs=("out",), **attributes):
    """One attention node. inputs: (name, shape, element type) in the operator's order, None where it is left out."""
    graph = Graph()
    names = [graph.input(*entry) if entry else "" for entry in inputs]
    graph.node(kind, names, list(outputs), domain, **attributes)
    for name in outputs:
        graph.output(name, None)
    return graph.bytes()


class BertGraph(Graph):
    """`fused` is None for plain operators, else the operator of ONNX Runtime that does the attention."""

    def __init__(self, model, batch, length, fused):
        super().__init__()
        self.model, self.batch, self.length, self.fused = model, batch, length, fused
        self.width = model.config["hidden_size"]
        ids = self.input("ids", [batch, length], TensorProto.INT64)
        words = self.node("Gather", [self.constant(model.tensors["embeddings.word_embeddings.weight"]), ids])
        x = self.node("Add", [words, self.constant(model.embedded(length))])
        x = self.norm(x, model.tensors, "embeddings")
        for number in model.layers:
            x = self.layer(x, model.layer(number))
        self.nodes[-1].output[0] = "out"
        self.output("out", [batch, length, self.width])

    def product(self, x, weight):
        """x · weightᵀ, without bias."""
        return self.node("MatMul", [x, self.constant(weight.T)])

    def linear(self, x, tensors, name):
        return self.node("Add", [self.product(x, tensors[name + ".weight"]), self.constant(tensors[name + ".bias"])])

    def norm(self, x, tensors, name):
        scale, shift = (self.constant(tensors[f"{name}.LayerNorm.{kind}"]) for kind in ("weight", "bias"))
        return self.node("LayerNormalization", [x, scale, shift], axis=-1, epsilon=self.model.epsilon)

    def residual_norm(self, x, linear_of, tensors, dense, name):
        """norm(x + linear(linear_of))."""
        if not self.fused:
            return self.norm(self.node("Add", [self.linear(linear_of, tensors, dense), x]), tensors, name)
        scale, shift = (self.constant(tensors[f"{name}.LayerNorm.{kind}"]) for kind in ("weight", "bias"))
        added = [self.product(linear_of, tensors[dense + ".weight"]), x, scale, shift, self.constant(tensors[dense + ".bias"])]
        return self.node("SkipLayerNormalization", added, domain=MICROSOFT, epsilon=self.model.epsilon)

    def layer(self, x, tensors):
        attended = {None: self.plain, "MultiHeadAttention": self.multi_head, "Attention": self.joined}[self.fused](x, tensors)
        x = self.residual_norm(x, attended, tensors, "attention.output.dense", "attention.output")
        inner = self.gelu(x, tensors)
        return self.residual_norm(x, inner, tensors, "output.dense", "output")

    def gelu(self, x, tensors):
        if not self.fused:
            return self.node("Gelu", [self.linear(x, tensors, "intermediate.dense")])
        product = self.product(x, tensors["intermediate.dense.weight"])
        return self.node("BiasGelu", [product, self.constant(tensors["intermediate.dense.bias"])], domain=MICROSOFT)

    def plain(self, x, tensors):
        split = self.constant(np.array([self.batch, self.length, self.model.heads, -1]))
        joined = self.constant(np.array([self.batch, self.length, self.width]))

        def heads(part, order):
            apart = self.node("Reshape", [self.linear(x, tensors, f"attention.self.{part}"), split])
            return self.node("Transpose", [apart], perm=order)

        query, key, value = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
        scale = self.constant(np.float32(np.sqrt(self.width // self.model.heads)))
        scores = self.node("Div", [self.node("MatMul", [query, key]), scale])
        seen = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), value])
        return self.node("Reshape", [self.node("Transpose", [seen], perm=[0, 2, 1, 3]), joined])

    def self_weights(self, tensors, kind):
        return [tensors[f"attention.self.{part}.{kind}"] for part in ("query", "key", "value")]

    def multi_head(self, x, tensors):
        products = [self.product(x, weight) for weight in self.self_weights(tensors, "weight")]
        bias = self.constant(np.concatenate(self.self_weights(tensors, "bias")))
        return self.node("MultiHeadAttention", [*products, bias], domain=MICROSOFT, num_heads=self.model.heads)

    def joined(self, x, tensors):
        weight = self.constant(np.concatenate(self.self_weights(tensors, "weight")).T)
        bias = self.constant(np.concatenate(self.self_weights(tensors, "bias")))
        return self.node("Attention", [x, weight, bias], domain=MICROSOFT, num_heads=self.model.heads)


def encoder(problem, fused=None):
    return BertGraph(problem.model, *problem.ids.shape, fused).bytes()
