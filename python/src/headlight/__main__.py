"""`python -m headlight …`: the command line, the same program as the project builds; the package brings it along."""

import os
import pathlib
import sys


def main() -> None:
    program = pathlib.Path(__file__).with_name("headlight")
    if not program.exists():
        sys.exit(f"headlight: the package was built without the command line ({program} is not there)")
    sys.stdout.flush()
    os.execv(program, ["headlight", *sys.argv[1:]])


if __name__ == "__main__":
    main()
