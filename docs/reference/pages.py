"""Doxygen's filter: a page of docs/ on standard output. Links to other pages of docs/ lead to their beginnings, as Doxygen does not know
where sections begin; what is not part of the reference is no link.

    python3 docs/reference/pages.py docs/python.md
"""

import pathlib
import re
import sys

LINK = re.compile(r"(?<!!)\[((?:[^][`]|`[^`]*`)+)\]\(([\w./-]*)(?:#[^)\s]*)?\)")
PAGES = pathlib.Path(__file__).resolve().parent.parent


def linked(lines, folder):
    """The lines of a page, those between fences as they are."""

    def led(link):
        text, target = link.groups()
        return f"[{text}]({target})" if (folder / target).resolve() in PAGES.glob("*.md") else text

    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        yield line if fenced else LINK.sub(led, line)


def main():
    page = pathlib.Path(sys.argv[1])
    for line in linked(page.read_text(encoding="utf-8").splitlines(), page.resolve().parent):
        print(line)


if __name__ == "__main__":
    main()
