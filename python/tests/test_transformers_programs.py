"""Models of Transformers in compiled programs."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from transformers_models import DECODERS, LENGTHS, PADDING, ROWS, SEVERAL, assert_close, both, ids, positions_of  # noqa: E402
import headlight.transformers  # noqa: E402


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_compile(name):
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(), use_cache=False)
    compiled = torch.compile(own, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert_close(compiled(**given).logits, eager(**given).logits, spare=512)
        given["attention_mask"] = PADDING["right"]
        rows = PADDING["right"].bool()
        assert_close(compiled(**given).logits[rows], eager(**given).logits[rows], spare=512)
    torch.compiler.reset()


@pytest.fixture
def programs(monkeypatch):
    """(a backend, the programs that it was given, the options that attention was given as they ran)."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    from headlight.torch import _operator

    graphs, calls = [], []

    def keep(graph, inputs):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    monkeypatch.setattr(_operator, "attention", lambda *given, **options: calls.append(options) or headlight.attention(*given, **options))
    yield aot_autograd(fw_compiler=keep), graphs, calls
    torch.compiler.reset()


def has_matrix(graph, rows, keys):
    values = (node.meta.get("val") for node in graph.graph.nodes)
    return any(isinstance(x, torch.Tensor) and tuple(x.shape[-2:]) == (rows, keys) for x in values)


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "llama4"])
def test_compiled_programs_make_no_masks(name, padding, programs):
    backend, graphs, calls = programs
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    compiled = torch.compile(own, backend=backend, fullgraph=True)
    given = dict(input_ids=ids(), attention_mask=PADDING[padding], use_cache=False)
    rows = slice(None) if PADDING[padding] is None else PADDING[padding].bool()
    with torch.no_grad():
        assert_close(compiled(**given).logits[rows], eager(**given).logits[rows], spare=512)
    assert graphs and not any(has_matrix(graph, ROWS, ROWS) for graph in graphs)
    windows = [options.get("window") for options in calls]
    assert windows == {"mistral": [(5, -1)] * 3, "gemma2": [(5, -1), None, (5, -1)]}.get(name, [None] * 3)
    assert [options.get("chunk") for options in calls] == [4 if name == "llama4" else None] * 3
    for options in calls:
        assert options["causal"] == "top_left" and ("mask" in options) == (padding == "left")
        assert options.get("key_lengths") == (LENGTHS.tolist() if padding == "right" else None)


@pytest.mark.parametrize(
    "name, rows", [("mistral", [[7, 1, 10]]), ("mistral", SEVERAL["two"]), ("llama4", [[7, 1, 10]]), ("llama4", SEVERAL["three"])]
)
def test_compiled_programs_tell_packed_sequences(name, rows, programs):
    backend, graphs, calls = programs
    eager, own = both(DECODERS[name](), transformers.AutoModelForCausalLM)
    given = dict(input_ids=ids(len(rows), 18), position_ids=positions_of(rows), use_cache=False)
    with torch.no_grad():
        out = torch.compile(own, backend=backend, fullgraph=True)(**given).logits
    assert_close(out, eager(**given).logits, spare=512)
    assert not any(has_matrix(graph, 18, 18) for graph in graphs)
    offsets = [0] + torch.tensor(sum(rows, [])).cumsum(0).tolist()
    assert len(calls) == 3 and all(options["query_offsets"] == offsets and "mask" not in options for options in calls)


def test_a_mask_of_the_callers_own_is_kept_in_a_compiled_program(programs):
    backend, graphs, _ = programs
    eager, own = both(DECODERS["llama"](), transformers.AutoModelForCausalLM)
    allowed = torch.rand(3, 1, ROWS, ROWS, generator=torch.Generator().manual_seed(1)) > 0.4
    added = torch.where(allowed | torch.eye(ROWS, dtype=torch.bool), 0.0, torch.finfo(torch.float32).min)
    given = dict(input_ids=ids(), attention_mask=added, use_cache=False)
    with torch.no_grad():
        out = torch.compile(own, backend=backend, fullgraph=True)(**given).logits
    assert_close(out, eager(**given).logits, spare=512)


def test_a_program_of_several_graphs():
    """Between them a mask is a tensor that was computed, with or without what was noted beside it."""
    eager, own = both(DECODERS["mistral"](), transformers.AutoModelForCausalLM)
    for layer in own.model.layers:
        layer.forward = torch.compiler.disable(layer.forward)
    compiled = torch.compile(own, backend="aot_eager")
    for rows in (ROWS, ROWS + 3):
        given = dict(input_ids=ids(3, rows), use_cache=False)
        with torch.no_grad():
            assert_close(compiled(**given).logits, eager(**given).logits, spare=512)
    torch.compiler.reset()


@pytest.mark.parametrize("padding", ["none", "left"])
def test_compiled_generation_over_a_static_cache(padding):
    eager, own = both(DECODERS["mistral"](), transformers.AutoModelForCausalLM)
    own.forward = torch.compile(own.forward, backend="aot_eager", fullgraph=True)
    mask = torch.ones(3, ROWS, dtype=torch.int64) if padding == "none" else PADDING["left"]
    given = dict(attention_mask=mask, max_new_tokens=6, do_sample=False, cache_implementation="static")
    assert torch.equal(own.generate(ids(), **given), eager.generate(ids(), **given))
    torch.compiler.reset()
