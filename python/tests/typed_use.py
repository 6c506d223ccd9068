"""What mypy --strict must accept, and find the types of."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

import headlight as hl
from headlight.sentence_transformers import SentenceTransformer

Floats = npt.NDArray[np.float32]


def use(query: Floats, key: Floats, weight: Floats, engine: hl.Engine, options: hl.typing.AttentionOptions) -> None:
    assert_type(hl.attention(query, key, key, causal="bottom_right", window=(8, None)), Floats)
    assert_type(hl.attention(query, key, key, soft_cap=30.0, slopes=weight), Floats)
    assert_type(hl.attention(query, key, key, log_sum_exp=True, engine=engine), tuple[Floats, Floats])
    assert_type(hl.attention(query, key, key, probabilities=[0, 1]), tuple[Floats, Floats])
    assert_type(hl.attention(query, key, key, log_sum_exp=True, probabilities=True), tuple[Floats, Floats, Floats])
    out, lse = hl.attention(query, key, key, log_sum_exp=True, **options)
    assert_type(hl.attention_backward(query, key, key, out, lse, out, **options), tuple[Floats, ...])
    assert_type(hl.merge_attention([(out, lse), (out, lse)]), tuple[Floats, Floats])
    numbers, scales = hl.quantize_rows(key)
    assert_type(numbers, npt.NDArray[np.int8])
    assert_type(hl.attention(query, numbers, key, key_scales=scales), Floats)
    assert_type(hl.matmul(query, hl.pack(weight.T, precision="int8"), activation="gelu"), Floats)
    hl.attention(memoryview(b""), memoryview(b""), key, key_lengths=np.array([3]), key_start=4)
    hl.attention(query, key, key, query_start=memoryview(b""), key_offsets=(0, 3))
    assert_type(hl.load("folder", precision="bf16").precision, hl.typing.Precision)
    model = hl.load("folder", precision="bfloat16")
    assert_type(model.embed(["a", "b"], progress=lambda done, total: None), Floats)
    assert_type(next(model.embed_stream(line for line in ("a", "b"))), Floats)
    assert_type(model.encode("a"), list[Floats])
    assert_type(model.embed_ids(np.zeros((1, 2), np.int64)), Floats)
    sentences = SentenceTransformer("folder", truncate_dim=64)
    assert_type(sentences.max_seq_length, int)
    sentences.similarity(sentences.encode("a", prompt_name="query"), sentences.encode(["a", "b"]))
    assert_type(model.decode(model.tokenize("a")), str)
    assert_type(hl.beams(model, "a b", heads=[0, 1]).plot(), hl.Picture)
    hl.beams(words=["a", "b"], attention=query, engine=engine).save("beams.svg")
    assert_type(hl.heads(model, ["a", "b"], mask=[(0, 1)]).cka, npt.NDArray[np.float64])
    assert_type(hl.study.memory("1GiB", measure=True), hl.study.Study)
    assert_type(hl.study.precision(model, ["a", "b"], quick=True).summary, str)
