"""Token ids of texts by each tokenizer_class that makes its tokenizer itself, by Transformers.

tokenizer_classes.jsonl: the texts; then cases: [tokenizer_config.json, a tokenizer, ids of each text, ids of the first two as a
pair]. The tokenizer is the first one of a file of tokenizers/ with tokens that are appended to its vocabulary and are all of its
added_tokens (those with "<mask>" as content take the white space before them along), and with other parts in place of its own.

    python3 tokenizer_classes.py
"""

import json
import os
import pathlib
import tempfile

import transformers

here = pathlib.Path(os.path.dirname(os.path.abspath(__file__)))
TEXTS = ["the city of New York", "  What is  café society? ", "the streets\tare long,\nand 123 lights", "", "<mask> of <s> x <|endoftext|>y</s>",
         "ÀÉ Straße 東京 ﬁ", " \u200b a\u3000b \u200b", "a\u2581b \n", "<unk>NOTUSED q"]
ANGLES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
CAMEMBERT = [*ANGLES, "<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"]


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, **options}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def metaspace(scheme, **options):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, **options}


def replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


SPLIT = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
QWEN = {"normalizer": {"type": "NFC"}, "pre_tokenizer": sequence(
    "pretokenizers", {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}, byte_level(use_regex=False))}
GEMMA = {"normalizer": replace({"String": " "}, "\u2581"),
         "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}}
OLD_LLAMA = {"normalizer": sequence("normalizers", {"type": "Prepend", "prepend": "\u2581"}, replace({"String": " "}, "\u2581")),
             "pre_tokenizer": None}
WORDS = sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace("always"))
SPACES = replace({"Regex": " {2,}"}, " ")
BYTES = {"normalizer": None, "pre_tokenizer": byte_level()}


def of_sentence_piece(pre_tokenizer, *normalizers):
    return {"normalizer": sequence("normalizers", *normalizers), "pre_tokenizer": pre_tokenizer}


CHARACTERS = "Precompiled"  # that of unigram.jsonl
# (tokenizer_config.json, file, tokens, parts, what stands around a text: first and last, and whether the latter stands twice)
CASES = [
    ({"tokenizer_class": "RobertaTokenizer"}, "byte_level", ANGLES, BYTES, ("<s>", "</s>", True)),
    ({"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": True}, "byte_level", ANGLES,
     {**BYTES, "pre_tokenizer": byte_level(add_prefix_space=True)}, ("<s>", "</s>", True)),
    ({"tokenizer_class": "BartTokenizer", "cls_token": "<pad>"}, "byte_level", ANGLES, BYTES, ("<pad>", "</s>", True)),
    ({"tokenizer_class": "GPT2Tokenizer"}, "byte_level", ["<|endoftext|>"], BYTES, (None, "<|endoftext|>", False)),
    ({"tokenizer_class": "CodeGenTokenizer"}, "byte_level", ["<|endoftext|>"], BYTES, (None, None, False)),
    ({"tokenizer_class": "GPTNeoXTokenizer"}, "byte_level", ["<|endoftext|>", "<|padding|>"], {**BYTES, "normalizer": {"type": "NFC"}},
     (None, None, False)),
    ({"tokenizer_class": "Qwen2Tokenizer"}, "byte_level", ["<|endoftext|>"], QWEN, (None, "<|endoftext|>", False)),
    ({"tokenizer_class": "GemmaTokenizer"}, "byte_fallback", ["<bos>", "<eos>", "<unk>", "<pad>", "<mask>"], GEMMA, ("<bos>", "<eos>", False)),
    ({"tokenizer_class": "GemmaTokenizerFast"}, "byte_fallback", ["<bos>", "<eos>", "<unk>", "<pad>", "<mask>"],
     {**GEMMA, "pre_tokenizer": None}, ("<bos>", "<eos>", False)),
    ({"tokenizer_class": "LlamaTokenizer"}, "byte_fallback", ["<unk>", "<s>", "</s>"],
     {"normalizer": None, "pre_tokenizer": metaspace("first", split=False)}, ("<s>", None, False)),
    ({"tokenizer_class": "LlamaTokenizer", "legacy": True}, "byte_fallback", ["<unk>", "<s>", "</s>"], OLD_LLAMA, ("<s>", None, False)),
    ({"tokenizer_class": "LlamaTokenizerFast"}, "byte_fallback", ["<unk>", "<s>", "</s>"], OLD_LLAMA, ("<s>", None, False)),
    ({"tokenizer_class": "LlamaTokenizer"}, "byte_level", ["<s>"], BYTES, ("<s>", None, False)),
    ({"tokenizer_class": "XLMRobertaTokenizer"}, "unigram", ANGLES, of_sentence_piece(WORDS, CHARACTERS), ("<s>", "</s>", True)),
    ({"tokenizer_class": "XLMRobertaTokenizerFast"}, "unigram", ANGLES, of_sentence_piece(metaspace("always"), CHARACTERS, SPACES),
     ("<s>", "</s>", True)),
    ({"tokenizer_class": "XLMRobertaTokenizer"}, "unigram", ANGLES, of_sentence_piece(
        metaspace("always"), {"type": "Strip", "strip_left": False, "strip_right": True}, CHARACTERS, replace({"Regex": " {2,}"}, "\u2581")),
     ("<s>", "</s>", True)),
    ({"tokenizer_class": "XLMRobertaTokenizer"}, "unigram", ANGLES, of_sentence_piece(metaspace("always"), SPACES), ("<s>", "</s>", True)),
    ({"tokenizer_class": "XLMRobertaTokenizer", "add_prefix_space": False}, "unigram", ANGLES,
     of_sentence_piece(metaspace("never"), CHARACTERS, SPACES), ("<s>", "</s>", True)),
    ({"tokenizer_class": "CamembertTokenizer"}, "unigram", CAMEMBERT, {**of_sentence_piece(WORDS, CHARACTERS)}, ("<s>", "</s>", True)),
    ({"tokenizer_class": "MPNetTokenizer"}, "word_piece", ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"], {}, ("<s>", "</s>", True)),
    ({"tokenizer_class": "PreTrainedTokenizerFast"}, "unigram", ANGLES, of_sentence_piece(metaspace("always"), CHARACTERS, SPACES),
     ("<s>", "</s>", True)),
]


def template(first, last, twice, ids):
    if first is None and last is None:
        return byte_level()

    def special(name):
        return [{"SpecialToken": {"id": name, "type_id": 0}}] if name else []

    def text(name):
        return [{"Sequence": {"id": name, "type_id": 0}}]
    single = special(first) + text("A") + special(last)
    pair = single + (special(last) if twice else []) + text("B") + special(last)
    return {"type": "TemplateProcessing", "single": single, "pair": pair,
            "special_tokens": {name: {"id": name, "ids": [ids[name]], "tokens": [name]} for name in (first, last) if name}}


def tokenizer_of(file, tokens, parts):
    """What the tests make of a case, too."""
    tokenizer = json.loads((here / "tokenizers" / (file + ".jsonl")).read_text(encoding="utf-8").splitlines()[0])["tokenizer"]
    vocabulary = tokenizer["model"]["vocab"]
    names = list(vocabulary) if isinstance(vocabulary, dict) else [token for token, _ in vocabulary]
    for name in tokens:
        if name in names:
            continue
        names.append(name)
        if isinstance(vocabulary, dict):
            vocabulary[name] = len(vocabulary)
        else:
            vocabulary.append([name, 0.0])
    ids = vocabulary if isinstance(vocabulary, dict) else {token: number for number, (token, _) in enumerate(vocabulary)}
    tokenizer["added_tokens"] = [{"id": ids[name], "content": name, "single_word": False, "lstrip": name == "<mask>", "rstrip": False,
                                  "normalized": False, "special": True} for name in tokens]
    characters = next((part for part in (tokenizer["normalizer"] or {}).get("normalizers", []) if part["type"] == CHARACTERS), None)
    tokenizer.update(parts)
    if "normalizers" in (tokenizer["normalizer"] or {}):
        tokenizer["normalizer"] = sequence("normalizers", *(characters if part == CHARACTERS else part for part in tokenizer["normalizer"]["normalizers"]))
    if file == "byte_fallback":
        tokenizer["model"].update(fuse_unk=True, byte_fallback=True)
    return tokenizer, ids


def main():
    lines = [TEXTS]
    for config, file, tokens, parts, around in CASES:
        _, ids = tokenizer_of(file, tokens, parts)
        parts = {**parts, "post_processor": template(*around, ids)}
        tokenizer, _ = tokenizer_of(file, tokens, parts)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (("config.json", {"model_type": "bert"}), ("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
                pathlib.Path(folder, name).write_text(json.dumps(content), encoding="utf-8")
            made = transformers.AutoTokenizer.from_pretrained(folder)
        lines.append([config, {"file": file + ".jsonl", "tokens": tokens, "parts": parts}, [made(text)["input_ids"] for text in TEXTS],
                      made(*TEXTS[:2])["input_ids"]])
    with open(here / "tokenizer_classes.jsonl", "w", encoding="utf-8") as out:
        out.write("# Made by tokenizer_classes.py.\n")
        out.writelines(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)


main()
