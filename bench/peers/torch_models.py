"""Attention within PyTorch: headlight's beside PyTorch's own, alone and in models of Transformers, in turn.

    PYTHONPATH=build/release/python python bench/peers/torch_models.py [--threads 1] [--filter bert] [--rounds 5]

wants the Python package, torch and transformers. Models have random weights. Every result is held against "eager" first.
Prints a table of milliseconds, best of all turns; with headlight and sdpa, the part of a model's time that passes within attention.
"""

import argparse
import copy
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import transformers
from torch.nn import functional

import headlight.torch
import headlight.transformers
from timing import Contestant, alternate

FURTHEST = 2e-4  # of the largest number of a result: what float32 of a whole model may differ by


class Case(NamedTuple):
    name: str
    # kind → (a step to time, what it gives)
    make: Callable[[str], tuple[Callable[[], object], Callable[[], torch.Tensor]]]
    kinds: tuple[str, ...]


def attention(length, *, training=False, **options):
    def make(kind):
        function = headlight.torch if kind == "headlight" else functional
        operands = torch.randn(3, 1, 12, length, 64, generator=torch.Generator().manual_seed(1)).requires_grad_(training)
        by_out = torch.ones(1, 12, length, 64)
        last = []

        def step():
            out = function.scaled_dot_product_attention(*operands, **options)
            last[:] = [torch.autograd.grad(out, operands, by_out)[0] if training else out]

        return step, lambda: last[0].detach()

    return make


def model(config, batch, length, *, training=False, decode=0):
    def make(kind):
        torch.manual_seed(1)
        made = transformers.AutoModelForCausalLM if "Llama" in type(config).__name__ else transformers.AutoModel
        network = made.from_config(copy.deepcopy(config), attn_implementation=kind).train(training)
        ids = torch.randint(2, config.vocab_size, (batch, length), generator=torch.Generator().manual_seed(2))
        last = []

        def step():
            if decode:
                tokens = network.generate(ids, max_new_tokens=decode, do_sample=False, pad_token_id=0)
                last[:] = [tokens.float()]
            elif training:
                network.zero_grad()
                network(ids, labels=ids, use_cache=False).loss.backward()
                last[:] = [network.model.layers[0].self_attn.q_proj.weight.grad]
            else:
                last[:] = [network(ids, **({"use_cache": False} if config.model_type == "llama" else {}))[0]]

        def run():
            with torch.set_grad_enabled(training):
                step()

        return run, lambda: last[0].detach()

    return make


BERT = transformers.BertConfig()
LLAMA = transformers.LlamaConfig(
    vocab_size=16384, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4,
    intermediate_size=2048, max_position_embeddings=4096, eos_token_id=None,
)  # 100 million parameters
TORCH, MODEL = ("headlight", "sdpa"), ("headlight", "sdpa", "eager")
CASES = [
    Case("attention, L = 128", attention(128), TORCH),
    Case("attention, L = 512", attention(512), TORCH),
    Case("causal, L = 1024", attention(1024, is_causal=True), TORCH),
    Case("forward and backward, L = 512", attention(512, training=True), TORCH),
    Case("forward and backward, causal, L = 1024", attention(1024, training=True, is_causal=True), TORCH),
    Case("BERT-base, 1 x 128", model(BERT, 1, 128), MODEL),
    Case("BERT-base, 4 x 512", model(BERT, 4, 512), MODEL),
    Case("Llama, 1 x 512", model(LLAMA, 1, 512), MODEL),
    Case("Llama, 1 x 2048", model(LLAMA, 1, 2048), MODEL),
    Case("Llama, 16 tokens after 1024", model(LLAMA, 1, 1024, decode=16), MODEL),
    Case("Llama, a step of training, 1 x 512", model(LLAMA, 1, 512, training=True), MODEL),
]


def share_of_attention(case, kind, seconds):
    """Which part of `seconds` passes within the attention function of an implementation, forward."""
    functions = transformers.AttentionInterface._global_mapping
    function, spent = functions[kind], []

    def timed(*given, **options):
        begin = time.perf_counter()
        result = function(*given, **options)
        spent.append(time.perf_counter() - begin)
        return result

    run, _ = case.make(kind)
    run()
    functions[kind] = timed
    try:
        run()
    finally:
        functions[kind] = function
    return f"{sum(spent) / seconds:.0%}" if spent else ""


def compare(case, rounds):
    contestants = [Contestant(kind, "", *case.make(kind)) for kind in case.kinds]
    for one in contestants:
        one.run()
    exact = contestants[-1].result()
    for one in contestants:
        one.error = float((one.result() - exact).abs().max() / exact.abs().max())
        if one.error > FURTHEST:
            raise SystemExit(f"{case.name}: {one.peer} is off by {one.error:.1e}")
    others = alternate(contestants, rounds)
    own = contestants[0].best
    cells = [f"{own * 1e3:.2f}"]
    cells += [f"{one.best * 1e3:.2f} ({one.best / own:.2f}×)" for one in contestants[1:]]
    cells += [""] * (4 - len(contestants))
    whole = len(case.kinds) == 3
    shares = [share_of_attention(case, kind, one.best) if whole else "" for kind, one in zip(TORCH, contestants)]
    print(f"| {case.name} | {' | '.join(cells[:3])} | {shares[0]} | {shares[1]} |" + (f" ({others:.2f} cores of others)" if others > 0.05 else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    headlight.transformers.register()
    transformers.logging.set_verbosity_error()
    print(f"{given.threads} threads, torch {torch.__version__}, transformers {transformers.__version__}; milliseconds")
    print("| | headlight | sdpa | eager | attention's part, headlight | sdpa |\n|---|---|---|---|---|---|")
    for case in CASES:
        if given.filter.lower() in case.name.lower():
            compare(case, given.rounds)


if __name__ == "__main__":
    main()
