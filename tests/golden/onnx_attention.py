#!/usr/bin/env python3
"""The cases that the ONNX project keeps for its operator Attention, in the words of attention_cases.txt.

Writes onnx_attention_cases.txt, a line a case: its name, what its fourth output holds ("-" without one), and the call; and onnx_attention.npy,
float64 in one row: for each line query [B, Lq, Hq, D], key, value, mask, bias where there are some, out [B, Lq, Hq, Dv], and the
fourth output [B, Hq, Lq, Lk]. Cases of 16-bit numbers are left out. Keys of the past lie before the others, as they do in the operator's "present" outputs.
"""

import pathlib
import sys
import warnings

import numpy as np
from onnx import helper

with warnings.catch_warnings():  # about the cases of other operators
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

HERE = pathlib.Path(__file__).parent
FOURTH_OUTPUT = ["raw", "capped", "masked", "probabilities"]


def heads_apart(tensor, heads):
    """[B, L, H, D] of [B, H, L, D], or of [B, L, H · D]."""
    if tensor.ndim == 4:
        return tensor.transpose(0, 2, 1, 3)
    return tensor.reshape(*tensor.shape[:2], heads, -1)


def four_axes(mask, keys):
    """Broadcast as NumPy does; keys that a float mask does not reach are hidden."""
    mask = mask.reshape((1,) * (4 - mask.ndim) + mask.shape)
    if mask.shape[3] not in (1, keys):
        assert mask.dtype == np.float32
        mask = np.pad(mask, [(0, 0)] * 3 + [(0, keys - mask.shape[3])], constant_values=-np.inf)
    return mask


def convert(case):
    """The words of the line, and the arrays behind it; None for a case of 16-bit numbers."""
    node = case.model.graph.node[0]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    given, expected = case.data_sets[0]
    inputs = dict(zip([name for name in node.input if name], given))
    outputs = dict(zip([name for name in node.output if name], expected))
    if inputs["Q"].dtype != np.float32:
        return None

    query = heads_apart(inputs["Q"], attributes.get("q_num_heads"))
    key, value = (heads_apart(inputs[name], attributes.get("kv_num_heads")) for name in "KV")
    past = 0
    if "past_key" in inputs:
        past = inputs["past_key"].shape[2]
        key, value = (np.concatenate([heads_apart(inputs[name], None), new], 1)
                      for name, new in (("past_key", key), ("past_value", value)))
    (batch, rows, query_heads, head_dim), (_, keys, key_heads, value_dim) = query.shape, value.shape
    lengths = inputs.get("nonpad_kv_seqlen")
    mask = four_axes(inputs["attn_mask"], keys) if "attn_mask" in inputs else None

    words = [f"seed=0 B={batch} Lq={rows} Lk={keys} Hq={query_heads} Hkv={key_heads} D={head_dim} Dv={value_dim}"]
    # Rows follow the keys of the past, or end where a cache of a given length does.
    corner = "top-left" if lengths is None else "bottom-right"
    window = [attributes.get("left_window_size", -1), attributes.get("right_window_size", -1)]
    if attributes.get("is_causal"):
        words.append(f"causal={corner}")
    if window != [-1, -1]:
        if lengths is not None and not attributes.get("is_causal"):
            words.append(f"align={corner}")
        words.append(f"window={window[0]},{window[1]}")
    if lengths is not None:
        words.append("key_lengths=" + ",".join(map(str, lengths)))
    if past:
        words.append(f"query_start={past}")
    arrays = [query, key, value]
    if mask is not None:
        words.append(("mask=" if mask.dtype == bool else "bias=") + ",".join(map(str, mask.shape)))
        if mask.dtype == bool:
            words.append("mask_means=attend")
        arrays.append(mask)
    for ours, theirs in (("scale", "scale"), ("softcap", "softcap")):
        if attributes.get(theirs):
            words.append(f"{ours}={attributes[theirs]:.9g}")
    arrays.append(heads_apart(outputs["Y"], query_heads))
    fourth = "-"
    if "qk_matmul_output" in outputs:
        fourth = FOURTH_OUTPUT[attributes.get("qk_matmul_output_mode", 0)]
        arrays.append(outputs["qk_matmul_output"])
    return " ".join([case.name.removeprefix("test_attention_"), fourth, *words]), arrays


def main():
    lines, numbers = [], []
    for case in collect_testcases("Attention"):
        if "_expanded" in case.name:  # the same by other operators
            continue
        converted = convert(case)
        if converted:
            lines.append(converted[0])
            numbers += [array.astype(np.float64).ravel() for array in converted[1]]
    (HERE / "onnx_attention_cases.txt").write_text("# Made by onnx_attention.py.\n" + "\n".join(lines) + "\n")
    numbers = np.concatenate(numbers)
    np.save(HERE / "onnx_attention.npy", numbers)
    print(f"onnx_attention.npy: {len(lines)} cases, {numbers.nbytes} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
