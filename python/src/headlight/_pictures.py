"""Pictures that show themselves in a notebook, and are saved."""

from __future__ import annotations

import errno
import html
import os
import pathlib
import secrets
from collections.abc import Mapping


def write_whole(path: str | os.PathLike[str], contents: Mapping[str, str]) -> None:
    """Writes what belongs to the name's ending, whole or not at all. Raises ValueError for another ending."""
    target = pathlib.Path(path)
    if target.suffix not in contents:
        raise ValueError(f"the name is {os.fspath(path)!r}, expected one that ends in {' or '.join(contents)}")
    if target.exists() and not target.is_file():
        raise ValueError(f"{os.fspath(path)!r} is no file")
    if not target.parent.is_dir():  # else the error would name the file beside it
        raise FileNotFoundError(errno.ENOENT, "there is no folder", os.fspath(target.parent))
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    try:
        beside.write_text(contents[target.suffix], encoding="utf-8")
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def framed(page: str, title: str, height: int) -> str:
    """A page inside another one: neither sees the other's styles and scripts."""
    return (
        f'<iframe sandbox="allow-scripts" title="{html.escape(title)}" srcdoc="{html.escape(page)}" '
        f'style="width: 100%; height: {height}px; border: 0"></iframe>'
    )


class Picture:
    """A chart, or another picture that stands still: SVG, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<headlight picture of {len(self.svg)} bytes: in a notebook it shows itself, .save('x.svg') writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture, whole or not at all. The name ends in .svg."""
        write_whole(path, {".svg": self.svg})
