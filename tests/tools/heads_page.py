#!/usr/bin/env python3
"""The page of `headlight heads` in a headless Chromium: pointed at, reached by keys, sorted, without one message on the console or
one request for another file.

    tests/tools/heads_page.py build/release/headlight
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from browser import Page


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "animal", "street", "机", "器", "人"]


def write_model(folder, width=8, heads=2, layers=2, inner=16, positions=32):
    """A random network of BERT's kind."""
    shapes = {f"embeddings.{name}_embeddings.weight": [rows, width]
              for name, rows in (("word", len(WORDS)), ("position", positions), ("token_type", 2))}
    shapes |= {f"embeddings.LayerNorm.{kind}": [width] for kind in ("weight", "bias")}
    for layer in range(layers):
        for name, rows, columns in (("attention.self.query", width, width), ("attention.self.key", width, width),
                                    ("attention.self.value", width, width), ("attention.output.dense", width, width),
                                    ("intermediate.dense", inner, width), ("output.dense", width, inner)):
            shapes |= {f"encoder.layer.{layer}.{name}.weight": [rows, columns], f"encoder.layer.{layer}.{name}.bias": [rows]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"encoder.layer.{layer}.{name}.{kind}": [width] for kind in ("weight", "bias")}
    draw, header, data = random.Random(1), {}, b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *(draw.gauss(0, 1) for _ in range(count)))
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "vocab.txt"), "w") as file:
        file.write("\n".join(WORDS) + "\n")
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(dict(model_type="bert", vocab_size=len(WORDS), hidden_size=width, num_hidden_layers=layers,
                       num_attention_heads=heads, intermediate_size=inner, max_position_embeddings=positions, type_vocab_size=2,
                       hidden_act="gelu", layer_norm_eps=1e-12), file)


def expect(condition, what):
    if not condition:
        raise SystemExit(f"heads_page: {what}")


def look_around(page):
    said = "document.querySelector('#matrix output').innerText"
    page.run("document.querySelector('#matrix svg').focus()")
    expect("head 0 of layer 0" in page.run(said), "the first cell says nothing")
    page.key("ArrowRight")
    expect("head 1 of layer 0" in page.run(said) and "CKA" in page.run(said), "an arrow key does not move")
    page.key("ArrowDown")
    expect("CKA 1.00" in page.run(said), "a head is not like itself")

    column = "[...document.querySelectorAll('tbody tr')].map(line => line.cells[2].dataset.value).filter(v => v !== '').map(Number)"
    page.click("th:nth-child(3) button")
    falling = page.run(column)
    expect(falling == sorted(falling, reverse=True), "the table does not sort")
    page.click("th:nth-child(3) button")
    expect(page.run(column) == sorted(falling), "the table does not sort the other way")
    expect(page.run("document.querySelectorAll('[aria-sort]').length") == 1, "more than one column says that it sorts")
    expect(page.run("document.querySelector('th:last-child').innerText") == "importance", "importance has no column")
    column = column.replace("cells[2]", "cells[line.cells.length - 1]")
    page.click("th:last-child button")
    falling = page.run(column)
    expect(len(falling) == 4 and falling == sorted(falling, reverse=True), "the table does not sort by importance")
    expect("importance" in page.run("document.querySelector('.card').title"), "a picture does not tell its head's importance")
    cards = page.run("document.querySelectorAll('.card').length")
    expect(cards == len(page.run("[...document.querySelectorAll('tbody tr')].map(line => line.id)")), "a head has no picture")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "heads.html")
        write_model(folder)
        texts = [word for text in ("The animal, the street.", "机器人", "street the animal") for word in ("--text", text)]
        subprocess.run([program, "heads", "--model", folder, *texts, "--html", out, "--mask", "0.0", "--importance"], check=True,
                       stdout=subprocess.DEVNULL)
        with Page() as page:
            page.call("Emulation.setFocusEmulationEnabled", enabled=True)
            page.open(out)
            look_around(page)
            page.open(out, width=390, dark=True)
            expect(page.run("document.documentElement.scrollWidth") <= 390, "a telephone must scroll sideways")
            expect(not page.problems, f"the console says {page.problems}")
            expect(all(one.startswith("file://") for one in page.requests), f"the page asks for {page.requests}")
    print("the page of headlight heads holds")


if __name__ == "__main__":
    main()
