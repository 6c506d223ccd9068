#!/usr/bin/env python3
"""Holds the folders that `headlight convert` writes against Transformers: it loads each of every family, with the tensors that went in, also out
of GGUF files.

  tests/compare_transformers.py build/release/headlight

Needs PyTorch and Transformers (tests/golden/requirements.txt), so it is no part of the tests; without them it says so and ends. The models
are those of tests/golden/families.py, of which the tests keep what Transformers computes.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))
import families  # noqa: E402
import gguf_models  # noqa: E402


def write(folder, name, entry, labels):
    """The published folder, as the tests write it; what of it config.json says to Transformers, where that is spelled otherwise."""
    kind, tokenizer, _, config, other = entry
    cls = getattr(transformers, kind)
    more = {"architectures": [kind], "id2label": {str(n): f"LABEL_{n}" for n in range(labels)}} if labels else {}
    published = {"model_type": families.model_type(name), "vocab_size": tokenizer[1], "pad_token_id": 3, **config, **more}
    read = {"pad_token_id": 3, **(config if other is None else other), "vocab_size": tokenizer[1]}
    if labels:
        read["id2label"] = {n: f"LABEL_{n}" for n in range(labels)}
    own = cls.config_class(**json.loads(json.dumps(read)))
    _, tensors = families.tensors_of(cls(own))
    save_file({key: torch.from_numpy(value.copy()) for key, value in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(published))
    (folder / "tokenizer.json").write_text(families.tokenizer_of(entry).to_str())
    if tokenizer != families.WORD_PIECE or kind.startswith("MPNet"):  # no class of its own would make it
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return cls, own


def loaded(cls, own, folder):
    """By Transformers, and what it missed. Keys of a model's own code are not its."""
    own.save_pretrained(folder)
    return cls.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)


def check(program, name, entry, labels):
    with tempfile.TemporaryDirectory() as root:
        before, theirs, after = (pathlib.Path(root) / part for part in ("before", "theirs", "after"))
        before.mkdir()
        cls, own = write(before, name, entry, labels)
        shutil.copytree(before, theirs)
        expected = loaded(cls, own, theirs)[0].state_dict()
        for kind, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
            command = [program, "convert", "--model", before, "--type", kind, "-o", after, "--overwrite"]
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            if entry[4] is None:  # config.json is one of Transformers'
                transformers.AutoModel.from_pretrained(after)
            found, info = loaded(cls, own, after)
            # A pooler that no score needs is left aside.
            missing = [key for key in info["missing_keys"] if "pooler" not in key or labels]
            assert not missing and not info["unexpected_keys"] and not info["mismatched_keys"], info
            for key, tensor in found.state_dict().items():
                if key in info["missing_keys"]:
                    continue
                truth = expected[key].to(dtype).float() if tensor.ndim > 1 else expected[key]
                assert torch.equal(tensor, truth), f"{name}: {key} of {kind} is another"


def check_gguf(program, case, architecture):
    """A GGUF file, whose converter changed tensors, becomes a folder of the tensors that went in."""
    with tempfile.TemporaryDirectory() as root:
        file, after = pathlib.Path(root) / "model.gguf", pathlib.Path(root) / "after"
        gguf_models.write(file, case, gguf_models.names_of(case, architecture), architecture)
        command = [str(program), "convert", "--model", str(file), "--type", "float32", "-o", str(after)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        model, info = transformers.AutoModel.from_pretrained(after, dtype=torch.float32, output_loading_info=True)
        assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
        found = model.state_dict()
        for name, values in gguf_models.tensors_of(case).items():
            rounded = 1.0 if architecture.startswith("gemma") and values.ndim == 1 else 0.0  # what the converter added to norms
            assert torch.equal(found[name] + rounded, torch.from_numpy(values) + rounded), f"{architecture}: {name} is another"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="headlight")
    program = parser.parse_args().program.resolve()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name, entry in families.MODELS.items():
        check(program, name, entry, 0)
        print(name)
    for case in gguf_models.cases():
        architecture = {"llama": "llama", "gemma3_text": "gemma-embedding"}.get(case["name"])
        if architecture:
            check_gguf(program, case, architecture)
            print(architecture, "out of a GGUF file")
    for name, entry in families.CLASSIFIERS.items():
        check(program, name, entry, families.LABELS.get(name, 1))
        print(name, "with scores")


if __name__ == "__main__":
    main()
