"""Writes gguf_tensors.gguf, by the package gguf of ggml's authors: a tensor of every type that headlight reads, one that
it does not, and metadata of every type; and gguf_tensors.npy, the numbers of those tensors by the same package."""

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type

from seeded import Random

ROWS, COLUMNS = 2, 256
TYPES = [Type.F32, Type.BF16, Type.F16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q4_K, Type.Q5_K, Type.Q6_K]
# Where float16 numbers lie in a block whose other bytes may be any.
HALVES = {Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,)}


def drawn_blocks(random, kind):
    """Any bytes, with scales that are numbers: the package cannot round to these types, only back."""
    numbers, size = GGML_QUANT_SIZES[kind]
    blocks = random.words(ROWS * COLUMNS // numbers * size).astype(np.uint8).reshape(-1, size)
    for at in HALVES[kind]:
        blocks[:, at : at + 2] = random.normal([len(blocks), 1], 0.01).astype(np.float16).view(np.uint8)
    return blocks.reshape(ROWS, -1)


def main():
    random = Random(1)
    writer = gguf.GGUFWriter("gguf_tensors.gguf", "headlight")
    writer.add_uint8("a.uint8", 255)
    writer.add_int8("a.int8", -128)
    writer.add_uint16("a.uint16", 65535)
    writer.add_int16("a.int16", -32768)
    writer.add_uint32("a.uint32", 4294967295)
    writer.add_int32("a.int32", -2147483648)
    writer.add_uint64("a.uint64", 18446744073709551615)
    writer.add_int64("a.int64", -9223372036854775808)
    writer.add_float32("a.float32", 0.1)
    writer.add_float64("a.float64", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "größer")
    writer.add_array("a.integers", [-1, 2, 3])
    writer.add_array("a.floats", [0.5, -2.5])
    writer.add_array("a.booleans", [True, False])
    writer.add_array("a.strings", ["<s>", "", "é"])

    expected = []
    for kind in TYPES:
        numbers = random.normal([ROWS, COLUMNS])
        stored = drawn_blocks(random, kind) if kind in HALVES else gguf.quants.quantize(numbers, kind)
        writer.add_tensor(f"{kind.name}.weight", stored, raw_dtype=kind)
        expected.append(gguf.quants.dequantize(stored, kind).astype(np.float64).ravel())
    # Three axes, and none but one.
    three = random.normal([2, 3, 4])
    writer.add_tensor("three", three)
    writer.add_tensor("bias", three[0, 0].copy())
    expected += [three.astype(np.float64).ravel(), three[0, 0].astype(np.float64)]
    writer.add_tensor("unknown", np.zeros([2, 22], np.uint8), raw_dtype=Type.Q5_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    np.save("gguf_tensors.npy", np.concatenate(expected))


if __name__ == "__main__":
    main()
