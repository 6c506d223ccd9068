"""Runs the command line, which lies beside the package, and brings back what it says and writes.

Each run is a process of its own, which ends with the call, whatever ends that. Files that it reads and writes are in a
folder that is gone afterwards.
"""

from __future__ import annotations

import contextlib
import operator
import os
import pathlib
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import NamedTuple, SupportsIndex

from headlight._core import Encoder, Engine, FileError
from headlight._progress import bar_of
from headlight.typing import Progress

_ERROR = "headlight: error: "
_WARNING = "headlight: warning: "
_MEMORY = "out of memory"

# What an option's value may be: None leaves it out, True stands for a flag.
Value = str | SupportsIndex | os.PathLike[str] | None
Model = Encoder | str | os.PathLike[str] | None


class Finished(NamedTuple):
    text: str  # what it printed
    files: dict[str, str]  # option → what it wrote there
    warned: list[str]


def program() -> pathlib.Path:
    """Where the command line lies. Raises FileNotFoundError for a package that was built without it."""
    path = pathlib.Path(__file__).with_name("headlight")
    if not path.exists():
        raise FileNotFoundError(f"the package was built without the command line ({path} is not there)")
    return path


def model_options(model: Model) -> dict[str, Value]:
    """The options that name a model: none for the one inside the program."""
    if isinstance(model, Encoder):
        return {"model": model.folder, "precision": model.precision}
    return {"model": model if model is None else os.fspath(model)}


def _arguments(options: Mapping[str, Value]) -> list[bytes]:
    found = []
    for name, value in options.items():
        option = f"--{name}".encode()
        if value is None or value is False:
            continue
        if value is True:
            found.append(option)
        elif isinstance(value, SupportsIndex):
            found.append(option + f"={operator.index(value)}".encode())
        elif not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"{keyword(name)} is of type {type(value).__name__}, which it cannot be")
        else:
            text = os.fsencode(value) if name == "model" else os.fspath(value).encode()
            # Behind a "=" a text may begin with "-", but has to have something.
            found += [option + b"=" + text] if text else [option, text]
    return found


def keyword(option: str) -> str:
    """What an option is called in Python."""
    return {"from": "from_word", "to": "to_word"}.get(option, option.replace("-", "_"))


def _in_words_of_python(message: str, names: Mapping[str, str]) -> str:
    """`names`: what options, and files that are given, are called in Python."""
    for path, name in names.items():
        if path.startswith("/"):
            message = message.replace(path, name)
    return re.sub(r"--([a-z][a-z-]*)", lambda found: names.get(found[1], found[0]), message)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C comes behind what is within: a process that is started just then would be nobody's."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


def _wait(arguments: list[bytes], errors: int, tell: Callable[[int, int], object] | None) -> tuple[str, int]:
    """What a process prints, and its exit code; `tell` is told how far it is. Whatever is raised meanwhile,
    KeyboardInterrupt too, ends it first, and so does the end of this process."""
    # What the program makes of these is told in tools/headlight/support/caller.h.
    environment = {**os.environ, "HEADLIGHT_PARENT": str(os.getpid())}
    progress, told = os.pipe() if tell else (-1, -1)
    process = None
    try:
        if tell:
            environment["HEADLIGHT_PROGRESS"] = str(told)
        with _uninterrupted():
            process = subprocess.Popen(
                [b"headlight", *arguments],
                executable=program(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                pass_fds=[told] if tell else [],
            )
        assert process.stdout is not None
        if tell:
            os.close(told)
            told = -1
        printed = _read(process.stdout.fileno(), progress, tell)
        return printed.decode(), process.wait()
    except BaseException:
        if process is not None:
            process.kill()
        raise
    finally:
        for descriptor in (progress, told):
            if descriptor >= 0:
                os.close(descriptor)
        if process is not None:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _read(output: int, progress: int, tell: Callable[[int, int], object] | None) -> bytes:
    """All of the output; meanwhile `tell` gets the last line of each piece of progress that comes."""
    printed, lines, ended = b"", b"", False
    with selectors.DefaultSelector() as waiting:
        waiting.register(output, selectors.EVENT_READ)
        if tell:
            waiting.register(progress, selectors.EVENT_READ)
        while not ended:
            for key, _ in waiting.select():
                piece = os.read(key.fd, 1 << 16)
                if key.fd == output:
                    printed += piece
                    ended = not piece
                elif piece:
                    lines += piece
                else:
                    waiting.unregister(progress)
            *whole, lines = lines.split(b"\n")
            if whole and tell:
                done, total = whole[-1].split()
                tell(int(done), int(total))
    return printed


def lines_of(texts: Iterable[str]) -> bytes:
    """A file with a text a line: a break of lines is a space to a model."""
    return "".join(text.replace("\n", " ").replace("\r", " ") + "\n" for text in texts).encode()


def run(
    command: list[str],
    options: Mapping[str, Value],
    *,
    engine: Engine | None,
    writes: Mapping[str, str],
    reads: Mapping[str, tuple[str, bytes]] | None = None,
    progress: Progress = False,
) -> Finished:
    """Runs a subcommand. `writes`: option → name of the file that it writes; `reads`: option → name and content of one
    that it reads, which errors call by its name without the ending. `progress`: as Encoder.embed() has it.

    Raises ValueError for options that cannot be, FileError for what cannot be read or computed, MemoryError, OSError.
    """
    reads = reads or {}
    every: dict[str, Value] = dict(options)
    if engine is not None:
        every |= {"threads": engine.threads, "isa": engine.isa, "numerics": engine.numerics}
    with tempfile.TemporaryDirectory(prefix="headlight-") as name:
        folder = pathlib.Path(name)
        names = {option: keyword(option) for option in every}
        for option, (file, content) in reads.items():
            (folder / file).write_bytes(content)
            every[option] = folder / file
            names[option] = names[str(folder / file)] = pathlib.Path(file).stem
        every |= {option: folder / file for option, file in writes.items()}
        with open(folder / "errors", "w+b") as errors, bar_of(progress) as tell:
            text, code = _wait([*(word.encode() for word in command), *_arguments(every)], errors.fileno(), tell)
            errors.seek(0)
            said = errors.read().decode(errors="replace")
        if code != 0:
            raise _failure(code, said, names)
        lines = (line.removeprefix(_WARNING) for line in said.splitlines() if line.startswith(_WARNING))
        warned = [_in_words_of_python(line, names) for line in lines]
        files = {option: (folder / file).read_text(encoding="utf-8") for option, file in writes.items()}
    # The program says first where its files are: they are gone.
    rest = [line for line in text.splitlines(keepends=True) if not line.startswith(name)]
    return Finished("".join(rest).lstrip("\n"), files, warned)


def warn(warned: Iterable[str], stacklevel: int) -> None:
    """Each of them once, for the frame that `stacklevel` names as warnings.warn() counts from the caller on."""
    for line in dict.fromkeys(warned):
        warnings.warn(line, stacklevel=stacklevel + 1)


def _failure(code: int, said: str, names: Mapping[str, str]) -> Exception:
    lines = [line.removeprefix(_ERROR) for line in said.splitlines() if line.startswith(_ERROR)]
    message = _in_words_of_python(lines[-1], names) if lines else said.strip()
    if code == 2:
        return ValueError(message)
    if code == 1 and message.startswith(_MEMORY):
        return MemoryError(message.removeprefix(_MEMORY + ": "))
    if code == 1:
        return FileError(message)
    return OSError(f"the command line ended with {code}" + (f": {message}" if message else ""))
