"""Whatever is wrong with an argument is said of it by the name that Python has for it, behind that of the function."""

import ast
import inspect
import pathlib

import numpy as np
import pytest

import headlight as hl

FOLDER = pathlib.Path(__file__).parents[2] / "models" / "demonstration"
X = np.linspace(-1, 1, 2 * 9 * 4 * 16, dtype=np.float32).reshape(2, 9, 4, 16)
INTEGERS, SCALES = hl.quantize_rows(X)
OUT, LSE = hl.attention(X, X, X, log_sum_exp=True)
A, B = np.ones((3, 5), np.float32), np.ones((5, 7), np.float32)
OPTIONS = ("keywords", "of", "both")
STRIDED = np.zeros((2, 9, 4, 32), np.float32)[..., ::2]


def attend(query=X, key=X, value=X, **options):
    return hl.attention(query, key, value, **options)


def backward(query=X, key=X, value=X, out=OUT, lse=LSE, out_gradient=X, **options):
    return hl.attention_backward(query, key, value, out, lse, out_gradient, **options)


# Of attention() and attention_backward(): what of each option is refused, by the binding or by the engine.
OF_ATTENTION = {
    "causal": ["left", 3],
    "align": ["left", 3],
    "window": [3, (-2, 1), ("1", 2)],
    "chunk": [-1, 1.5, 2**70],
    "query_lengths": [[1], [10, 1], [1.5, 2], [], 3],
    "key_lengths": [[1], [10, 1], [-1, 2], np.zeros((2, 2), int), np.zeros(2)],
    "query_offsets": [[0, 9], [], [1.5]],
    "query_start": [[1, 2, 3], [-1, 2], -1, 1.5, "1", 2**61],
    "key_start": [[1, 2, 3], [-1, 2], -1, 1.5, [2**62, 0]],
    "mask_means": ["attend"],
    "bias": [np.ones((9, 8), np.float32), np.ones((9, 9)), 3, np.ones((9, 18), np.float32)[:, ::2], np.float32(1)],
    "scale": [np.inf, "1"],
    "softcap": [-1, np.inf, 1e-40, "1"],
    "alibi": [np.ones(3, np.float32), np.ones(4), np.full(4, np.inf, np.float32), np.ones((2, 2), np.float32)],
    "sinks": [np.ones(3, np.float32), np.ones(4), np.full(4, np.nan, np.float32), np.ones(8, np.float32)[::2]],
    "dropout": [1.0, -0.5, "1"],
    "seed": [-1, 2**64, 1.5],
    "engine": ["avx2", 3],
}
# Other names of options, of which messages speak by the first one.
ALIASES = {"soft_cap": "softcap", "slopes": "alibi"}
CASES = {
    hl.attention: [
        *[(name, lambda name=name, bad=bad: attend(**{name: bad})) for name, every in OF_ATTENTION.items() for bad in every],
        ("key_offsets", lambda: attend(key_offsets=[0, 9])),
        ("key_offsets", lambda: attend(X[:1], X[:1], X[:1], query_offsets=[0, 9], key_offsets=[0, 8])),
        ("key_offsets", lambda: attend(X[:1], X[:1], X[:1], query_offsets=[0, 9], key_offsets=[0, 5, 9])),
        ("query_offsets", lambda: attend(X[:1], X[:1], X[:1], query_offsets=[0, 5, 4, 9])),
        ("mask", lambda: attend(mask=np.ones((9, 8), bool), mask_means="attend")),
        ("mask", lambda: attend(mask=np.ones((9, 9), bool))),
        ("mask", lambda: attend(mask=np.ones((9, 18), bool)[:, ::2], mask_means="attend")),
        ("mask_means", lambda: attend(mask=np.ones((9, 9), bool), mask_means="see")),
        ("query", lambda: attend(query=X[0])),
        ("query", lambda: attend(query=STRIDED)),
        ("query", lambda: attend(query=X[:, :, :3], key=X[:, :, :2], value=X[:, :, :2])),
        ("query", lambda: attend(query=np.float64(X))),
        ("key", lambda: attend(key=X[..., :8])),
        ("key", lambda: attend(key=X[:, ::-1])),
        ("key", lambda: attend(key=INTEGERS)),
        ("value", lambda: attend(value=X[:, :8])),
        ("value", lambda: attend(value=[1.0])),
        ("key_scales", lambda: attend(key_scales=SCALES)),
        ("key_scales", lambda: attend(key=INTEGERS, key_scales=SCALES[:1])),
        ("value_scales", lambda: attend(value=INTEGERS, value_scales=np.float64(SCALES))),
        ("log_sum_exp", lambda: attend(log_sum_exp=1)),
        ("probabilities", lambda: attend(probabilities=[9])),
        ("probabilities", lambda: attend(probabilities=[0.5])),
        ("probabilities", lambda: attend(probabilities=[])),
        ("out", lambda: attend(out=X[..., :8].copy())),
        ("out", lambda: attend(out=np.zeros(X.shape))),
        ("out", lambda: attend(out=X)),
        ("out", lambda: attend(out=STRIDED)),
    ],
    hl.attention_backward: [
        *[(name, lambda name=name, bad=bad: backward(**{name: bad})) for name, every in OF_ATTENTION.items() for bad in every],
        ("key_offsets", lambda: backward(key_offsets=[0, 9])),
        ("mask", lambda: backward(mask=np.ones((9, 8), bool), mask_means="attend")),
        ("query", lambda: backward(query=X[0])),
        ("key", lambda: backward(key=X[..., :8])),
        ("value", lambda: backward(value=STRIDED)),
        ("out", lambda: backward(out=OUT[..., :8])),
        ("out", lambda: backward(out=np.float64(OUT))),
        ("lse", lambda: backward(lse=LSE[:, :3])),
        ("lse", lambda: backward(lse=LSE.astype(np.float16))),
        ("lse", lambda: backward(lse=np.zeros((2, 4, 18), np.float32)[..., ::2])),
        ("out_gradient", lambda: backward(out_gradient=X[:, :8])),
        ("out_gradient", lambda: backward(out_gradient=STRIDED)),
        ("lse_gradient", lambda: backward(lse_gradient=LSE[:, :3])),
        ("lse_gradient", lambda: backward(lse_gradient=np.zeros((2, 4, 18), np.float32)[..., ::2])),
        ("lse_gradient", lambda: backward(lse_gradient=np.float64(LSE))),
        ("bias_gradient", lambda: backward(bias_gradient=3)),
        ("sinks_gradient", lambda: backward(sinks_gradient="yes")),
        ("sinks_gradient", lambda: backward(sinks_gradient=True)),
    ],
    hl.merge_attention: [
        ("parts", lambda: hl.merge_attention([])),
        ("parts", lambda: hl.merge_attention(3)),
        ("parts[1]", lambda: hl.merge_attention([(OUT, LSE), OUT])),
        ("parts[1].out", lambda: hl.merge_attention([(OUT, LSE), (OUT[..., :8], LSE)])),
        ("parts[1].out", lambda: hl.merge_attention([(OUT, LSE), (np.float64(OUT), LSE)])),
        ("parts[0].log_sum_exp", lambda: hl.merge_attention([(OUT, LSE[:, :3])])),
        ("parts[0].log_sum_exp", lambda: hl.merge_attention([(OUT, np.float64(LSE))])),
        ("engine", lambda: hl.merge_attention([(OUT, LSE)], engine=3)),
    ],
    hl.quantize_rows: [
        ("x", lambda: hl.quantize_rows(X[0])),
        ("x", lambda: hl.quantize_rows(STRIDED)),
        ("numbers", lambda: hl.quantize_rows(X, numbers=INTEGERS[:, :3])),
        ("numbers", lambda: hl.quantize_rows(X, numbers=X)),
        ("scales", lambda: hl.quantize_rows(X, scales=SCALES[:, :3])),
        ("engine", lambda: hl.quantize_rows(X, engine=3)),
    ],
    hl.matmul: [
        ("a", lambda: hl.matmul(A[:, :3], B)),
        ("a", lambda: hl.matmul(np.zeros((6, 10), np.float32)[::2, ::2], B)),
        ("a", lambda: hl.matmul(A.astype(np.float16), hl.pack(B))),
        ("a", lambda: hl.matmul(A[0], B)),
        ("b", lambda: hl.matmul(A, np.float64(B))),
        ("b", lambda: hl.matmul(A, np.zeros((10, 14), np.float32)[::2, ::2])),
        ("b", lambda: hl.matmul(np.ones((2, 3, 5), np.float32), np.ones((3, 5, 7), np.float32))),
        ("b", lambda: hl.matmul(A, 3)),
        ("bias", lambda: hl.matmul(A, B, bias=np.ones(6, np.float32))),
        ("bias", lambda: hl.matmul(A, B, bias=np.ones(14, np.float32)[::2])),
        ("activation", lambda: hl.matmul(A, B, activation="tanh")),
        *[
            ("out", lambda b=b, out=out: hl.matmul(A, b, out=out))
            for b in (B, hl.pack(B))
            for out in (np.zeros((3, 6), np.float32), np.zeros((1, 3, 7))[0], np.zeros((3, 14), np.float32)[:, ::2], np.zeros((2, 3, 7), np.float32), A, 3)
        ],
        ("out", lambda: hl.matmul(np.ones((2, 3, 5), np.float32), hl.pack(B), out=np.zeros((2, 3, 6), np.float32))),
        ("out", lambda: hl.matmul(A, A.T, out=np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (3, 3), (4, 4)))),
        ("out", lambda: (lambda x: hl.matmul(x, np.eye(5, dtype=np.float32), out=x))(A.copy())),
        ("engine", lambda: hl.matmul(A, B, engine=3)),
    ],
    hl.pack: [
        ("b", lambda: hl.pack(X)),
        ("b", lambda: hl.pack(np.zeros((10, 14), np.float32)[::2, ::2])),
        ("b", lambda: hl.pack(B[:, ::-1])),
        ("precision", lambda: hl.pack(B, "float64")),
        ("precision", lambda: hl.pack(B, 3)),
        ("engine", lambda: hl.pack(B, engine=3)),
    ],
    hl.load: [
        ("folder", lambda: hl.load(3)),
        ("precision", lambda: hl.load(FOLDER, "float64")),
    ],
}


def message_of(call):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    return str(caught.value)


def check(function, cases, skip=("self", *ALIASES)):
    name = function.__name__
    named = set()
    for argument, call in cases:
        message = message_of(call)
        assert message.startswith((f"{name}: {argument} ", f"{name}: {argument}[")), message
        named.add(argument.partition("[")[0])
    signature = function.__nb_signature__[0][0]
    parameters = ast.parse(signature + ": ...").body[0].args
    assert named == {one.arg for one in parameters.args + parameters.kwonlyargs} - set(skip)


@pytest.mark.parametrize("function, cases", CASES.items(), ids=[function.__name__ for function in CASES])
def test_messages_name_the_argument_as_python_does(function, cases):
    check(function, cases)


@pytest.mark.parametrize("call", [attend, backward])
@pytest.mark.parametrize("alias, keyword", ALIASES.items())
def test_aliases_are_keywords(call, alias, keyword):
    good = {"softcap": 0.5, "alibi": np.array([0.5, 0.25, 0.125, 0.0625], np.float32)}[keyword]
    np.testing.assert_array_equal(call(**{alias: good}), call(**{keyword: good}))
    assert not np.array_equal(call(**{alias: good}), call())
    np.testing.assert_array_equal(call(**{alias: None, keyword: good}), call(**{keyword: good}))
    for bad in OF_ATTENTION[keyword]:
        assert message_of(lambda bad=bad: call(**{alias: bad})) == message_of(lambda bad=bad: call(**{keyword: bad}))
    name = "attention" if call is attend else "attention_backward"
    sentence = f"{name}: {alias} and {keyword} are both given, expected one of them"
    assert message_of(lambda: call(**{alias: good, keyword: good})).startswith(sentence)


def test_every_function_is_asked():
    others = {hl.default_engine, hl.available_isas, hl.beams, hl.heads}  # without arguments, or of the command line
    shown = {one for name in hl.__all__ if inspect.isroutine(one := getattr(hl, name)) or hasattr(one, "__nb_signature__")}
    assert shown - others == set(CASES)


def test_messages_of_models_name_the_argument():
    model = hl.load(FOLDER)
    ids = np.array([[2, 3, 4]])
    long = np.full((1, 5000), 3)
    of_vectors = (
        [],
        [
            ("prompt_tokens", lambda: model.embed_ids(ids, prompt_tokens=-1)),
            ("prompt_tokens", lambda: model.embed_ids(ids, prompt_tokens=0.5)),
            ("normalize", lambda: model.embed_ids(ids, normalize=3)),
            ("truncate_dim", lambda: model.embed_ids(ids, truncate_dim=-1)),
            ("truncate_dim", lambda: model.embed_ids(ids, truncate_dim=0.5)),
        ],
    )
    for name in ("encode_ids", "embed_ids"):
        call = getattr(model, name)
        check(
            getattr(hl.Encoder, name),
            [
                ("ids", lambda: call(ids.astype(np.int32))),
                ("ids", lambda: call(ids[0])),
                ("ids", lambda: call(ids + 100_000)),
                ("ids", lambda: call(long)),
                ("mask", lambda: call(ids, ids[:, :2])),
                ("mask", lambda: call(ids, ids > 0)),
                ("out", lambda: call(ids, out=np.zeros((1, 2), np.float32) if name == "embed_ids" else np.zeros((1, 3, 2), np.float32))),
                ("engine", lambda: call(ids, engine=3)),
                *of_vectors[name == "embed_ids"],
            ],
        )
    of_prompts = (
        [],
        [
            ("prompt_name", lambda: model.embed("a", prompt_name="none")),
            ("prompt_name", lambda: model.embed("a", prompt_name=3)),
            ("prompt", lambda: model.embed("a", prompt=3)),
            ("truncate_dim", lambda: model.embed("a", truncate_dim=10_000)),
            ("truncate_dim", lambda: model.embed("a", truncate_dim="3")),
        ],
    )
    for name in ("encode", "embed"):
        call = getattr(model, name)
        check(
            getattr(hl.Encoder, name),
            [
                ("texts", lambda: call(3)),
                ("texts[1]", lambda: call(["a", 3])),
                ("batch_tokens", lambda: call("a", batch_tokens=0)),
                ("progress", lambda: call("a", progress=3)),
                ("engine", lambda: call("a", engine=3)),
                *of_prompts[name == "embed"],
            ],
        )
    check(hl.Encoder.tokenize, [("text", lambda: model.tokenize(3))])
    check(hl.Encoder.decode, [("ids", lambda: model.decode([100_000])), ("ids", lambda: model.decode([0.5])), ("ids", lambda: model.decode(3))])


def test_messages_of_engines_name_the_argument():
    for argument, bad in (
        ("threads", 0), ("threads", -1), ("threads", 4097), ("threads", 2**40), ("threads", 1.5), ("threads", "2"),
        ("isa", "avx"), ("isa", 3), ("numerics", "exact"), ("numerics", None),
    ):  # fmt: skip
        assert message_of(lambda: hl.Engine(**{argument: bad})).startswith(f"Engine: {argument} is ")
