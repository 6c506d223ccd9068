"""The ctypes structs of bench/peers lie in memory as the C headers say: peer_types.py C_COMPILER INCLUDE_FOLDER BENCH_PEERS_FOLDER"""

import pathlib
import subprocess
import sys
import tempfile

compiler, include, peers = sys.argv[1:]
sys.path.insert(0, peers)
import headlight_types

offsets = [(struct, name, getattr(ctype, name).offset) for struct, ctype in headlight_types.STRUCTS.items() for name, _ in ctype._fields_]
lines = [f'  printf("%zu\\n", offsetof({struct}, {name}));' for struct, name, _ in offsets]
source = "\n".join(["#include <headlight/models/headlight_models.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {", *lines, "}", ""])
with tempfile.TemporaryDirectory() as folder:
    file, program = pathlib.Path(folder) / "offsets.c", pathlib.Path(folder) / "offsets"
    file.write_text(source)
    subprocess.run([compiler, "-I", include, file, "-o", program], check=True)
    told = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()

wrong = [
    f"{struct}.{name} lies at {offset} in ctypes, at {expected} in C"
    for (struct, name, offset), expected in zip(offsets, told, strict=True)
    if offset != int(expected)
]
sys.exit("\n".join(wrong) or 0)
