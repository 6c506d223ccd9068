"""`python -m headlight …`: the command line, the same program as the project builds; the package brings it along."""

import os
import sys

from headlight._program import program


def main() -> None:
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(f"headlight: {error}")
    sys.stdout.flush()
    os.execv(path, ["headlight", *sys.argv[1:]])


if __name__ == "__main__":
    main()
