"""Doxygen's filter: a public header on standard output, with its comments as Doxygen reads them.

A comment of ours describes the declaration under it, and those that follow it without an empty line between; behind a
declaration, that one. A comment of a struct describes the fields that it names. The first comment of a file, and those
between empty lines, describe the file. Lines that are indented further than their comment are formulas.

    python3 docs/reference/comments.py include/headlight/gemm.h
"""

import re
import sys

COMMENT = re.compile(r"( *)//(?!/) ?(.*)")
TRAILING = re.compile(r"(\s*[^\s/}][^/]*?(?:/[^/][^/]*?)*)  // (?!NOLINT)(.*)")
# In C every struct that may grow begins with its size, which headlight/c/engine.h explains once.
SIZE = "  size_t struct_size;"


def escaped(text):
    """Characters that Doxygen or Markdown would take for its own, but for those between backticks."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r"([\\@<>#%*~])", r"\\\1", parts[number])
    return "`".join(parts)


def paragraphs(lines):
    """Lines of a comment as Markdown."""
    formula = False
    for line in lines:
        indented = line.startswith("  ")
        if indented != formula:
            yield ""
        formula = indented
        if indented:
            yield "    " + line.strip()
        else:
            yield re.sub(r"^([-+]|\d+(?=[.)]))", r"\\\1" if not line[:1].isdigit() else r"\1\\", escaped(line))


def names(code):
    """What a line of fields declares: `float left, right = 1;` gives left and right."""
    if re.search("[()]", code) or not code.endswith(";"):
        return []
    code = re.sub(r"<[^;]*>|\{[^;]*?\}|=[^,;]*|\[[^;]*?\]", "", code.rstrip(";"))
    return [found[0] for found in (re.findall(r"\w+\s*$", part) for part in code.split(",")) if found]


def documented(lines):
    """The lines of a header as Doxygen is to see them."""
    block, indent = [], ""  # the comment above what comes next
    shared = {}  # depth → the comment of the declarations there, up to an empty line
    owner = {}  # depth → the comment of what the lines there are members of
    parentheses = 0  # that are open
    begun = 0  # the depth of the last line that began something
    begins = True  # whether a line may begin a declaration
    first = True
    for line in lines:
        comment = COMMENT.fullmatch(line)
        if comment:
            indent = comment[1]
            block.append(comment[2])
            continue
        if first:
            yield from ("/// \\file", *(f"/// {text}".rstrip() for text in paragraphs(block)))
            block, first = [], False
        code = line.strip()
        if not code or (code.startswith("#") and not code.startswith("#define")):
            if not code:
                if block and not indent:
                    yield from ("/// \\file", *(f"/// {text}".rstrip() for text in paragraphs(block)))
                block = []
                shared = {at: lines for at, lines in shared.items() if at < begun}
            begins = True
            yield line
            continue
        depth = len(line) - len(line.lstrip())
        if begins:
            begun = depth
        shared = {at: lines for at, lines in shared.items() if at <= depth}
        trailing = TRAILING.fullmatch(line)
        bare = (trailing[1] if trailing else line.partition("  // NOLINT")[0]).strip()
        text = block
        if block:
            shared[depth] = block
        elif begins and not trailing and code[0] != "}":
            text = shared.get(depth, [])
            about = " ".join(owner.get(depth, []))
            if not text and names(bare) and all(re.search(rf"\b{name}\b", about) for name in names(bare)):
                text = owner[depth]
        if begins and len(names(bare)) > 1:  # Doxygen gives only the first of several fields its comment
            before = bare[: bare.index(names(bare)[0])]
            for name in names(bare):
                yield from (f"/// {one}".rstrip() for one in paragraphs(text + ([trailing[2]] if trailing else [])))
                yield f"{before}{name};"
            block, begins = [], True
            continue
        yield from (f"{' ' * depth}/// {one}".rstrip() for one in paragraphs(text))
        block = []
        if bare in ("public:", "protected:", "private:"):
            shared.pop(depth, None)
        if re.match(r"(typedef )?(struct|class|enum|union) .*\{$", bare):
            owner = {at: lines for at, lines in owner.items() if at <= depth} | {depth + 2: shared.get(depth, [])}
        if line == SIZE:
            line += "  ///< The size of this struct, which says which fields the caller knows."
        elif trailing:
            line = f"{trailing[1]}  ///< " + " ".join(paragraphs([trailing[2]]))
        parentheses += bare.count("(") - bare.count(")")
        begins = parentheses == 0 and (bare.endswith((";", "}", "{", ":", ",")) or bare.startswith("#define"))
        yield line


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in documented(file.read().splitlines()):
            print(line)


if __name__ == "__main__":
    main()
