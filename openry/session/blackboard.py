"""A blackboard: small texts by name that the sessions of one ledger share.

Each text is a file of a folder, replaced whole. Two locks of the kernel's guard a blackboard: one
on its folder, which `blackboard-lock` holds while a command runs, and under it one on a file there,
held by each change, since the programs of one holder may change texts at the same time. They are
released when whoever holds them has ended, however that came. It is also the program `blackboard`
of steps, so it imports little.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from _thread import get_ident
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from openry.errors import NotFoundError, OpenRYError, StorageError, UsageError
from openry.files import make_private_folder, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.config import Config

#: In the environment of a step: the folder of its blackboard, and that a program above holds it.
FOLDER, HELD = "BLACKBOARD", "BLACKBOARD_HELD"
#: The blackboard of a step that names none.
COMMON = "common"
#: Holds the programs `blackboard` and `blackboard-lock`.
PROGRAMS = Path(__file__).parent / "programs"
MOST_BYTES = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CHANGING = ".changing"
#: What a text is called until it is whole.
_DRAFT = re.compile(rf"\.{_NAME.pattern}\.[0-9a-f]{{8}}")
_HELP = """\
blackboard list                   the names of what stands there
blackboard get NAME [ELSE]        the text; ELSE where there is none
blackboard put NAME TEXT|-        put a text there, - reads it from standard input
blackboard append NAME TEXT|-     add a line
blackboard add NAME [NUMBER]      add to a number (1), and say what it is now
blackboard remove NAME
blackboard-lock COMMAND...        nobody else changes a text or locks while the command runs
"""


def is_name(text: str) -> bool:
    """Whether a blackboard or a text on it can be called that."""
    return _NAME.fullmatch(text) is not None


def folder_of(config: Config, name: str) -> Path:
    """Where a blackboard lies."""
    return boards_of(config) / name


def boards_of(config: Config) -> Path:
    """Where all blackboards lie: beside the ledger, so all who share that find them."""
    from openry.ledger.place import sqlite_path

    ledger = sqlite_path(config.ledger)
    return (Path(ledger).absolute().parent if ledger else config.home) / "blackboards"


class Blackboard:
    """The blackboard in `folder`, which is made when it is not there.

    Every method raises UsageError for what is no name, and for what is no text of ours.
    """

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        self._folder = folder
        self._holder: int | None = None  #: the thread that has the lock

    def names(self) -> list[str]:
        """The names of what stands there."""
        with os.scandir(self._folder) as entries:
            names = (e.name for e in entries if e.is_file(follow_symlinks=False))
            return sorted(filter(is_name, names))

    def get(self, name: str) -> str:
        """The text of that name.

        Raises:
            NotFoundError: There is none.
        """
        path = self._path(name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            has = ", ".join(f"`{one}`" for one in self.names()) or "nothing"
            raise NotFoundError(f"nothing called `{name}` stands there (there is {has})") from None
        except OSError as error:
            raise UsageError(f"`{name}` is no text of a blackboard: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UsageError(f"`{name}` is no text of a blackboard")
            with open(fd, "rb", closefd=False) as file:
                return _text(file.read(MOST_BYTES + 1), name)
        finally:
            os.close(fd)

    def put(self, name: str, text: str) -> None:
        """Put a text there, in the place of the one that had its name."""
        self._path(name)
        _text(text.encode("utf-8", "surrogatepass"), name)
        with self._changing():
            self._put(name, text)

    def _put(self, name: str, text: str) -> None:
        """The same for who holds the locks, so drafts that are there belong to the dead."""
        with os.scandir(self._folder) as entries:
            drafts = [Path(entry.path) for entry in entries if _DRAFT.fullmatch(entry.name)]
        for draft in drafts:
            with suppress(OSError):
                draft.unlink()
        try:
            write_private(self._path(name), text)
        except IsADirectoryError:
            raise UsageError(f"`{name}` is a folder, not a text of a blackboard") from None

    def append(self, name: str, line: str) -> None:
        """Add a line to a text."""
        with self._changing():
            before = self.get(name) if name in self.names() else ""
            gap = "" if not before or before.endswith("\n") else "\n"
            text = f"{before}{gap}{line.removesuffix(chr(10))}\n"
            _text(text.encode("utf-8", "surrogatepass"), name)
            self._put(name, text)

    def add(self, name: str, number: int = 1) -> int:
        """Add to a whole number, which is 0 at first; what it is now."""
        with self._changing():
            before = self.get(name) if name in self.names() else "0"
            now = _whole(before, f"what stands at `{name}`") + number
            self._put(name, str(now))
        return now

    def remove(self, name: str) -> None:
        """Take a text away; none is no error."""
        path = self._path(name)
        with self._changing():
            try:
                path.unlink(missing_ok=True)
            except (IsADirectoryError, PermissionError):
                if not path.is_dir():
                    raise
                raise UsageError(f"`{name}` is a folder, not a text of a blackboard") from None

    @contextmanager
    def lock(self, *, hand_on: bool = False) -> Iterator[None]:
        """Hold the lock; wait for it as long as it takes. Whoever has it does not take it again,
        nor does a program below.

        Args:
            hand_on: Programs that are started meanwhile hold it as well.
        """
        if self._holder == get_ident() or os.environ.get(HELD) == str(self._folder):
            yield
            return
        with _locked(self._folder, os.O_RDONLY | os.O_DIRECTORY, hand_on=hand_on):
            self._holder = get_ident()
            try:
                yield
            finally:
                self._holder = None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Nobody else changes a text meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        with self.lock(), _locked(self._folder / _CHANGING, flags):
            yield

    def _path(self, name: str) -> Path:
        if not is_name(name):
            raise UsageError(
                f"`{name}` cannot be a name here: letters, digits, `.`, `_` and `-`, at most 100,"
                " a letter or digit first"
            )
        return self._folder / name


@contextmanager
def _locked(path: Path, flags: int, *, hand_on: bool = False) -> Iterator[None]:
    import fcntl

    fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.set_inheritable(fd, hand_on)
        yield
    finally:
        os.close(fd)


def _text(data: bytes, name: str) -> str:
    if len(data) > MOST_BYTES:
        raise UsageError(f"`{name}` is larger than {MOST_BYTES:,} bytes; put a file's name there")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"`{name}` is no text in UTF-8") from error


def _whole(text: str, what: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,1000}", text.strip(), re.ASCII):
        raise UsageError(f"{what} is no whole number: `{text.strip()[:40]}`")
    return int(text)


# --- the program ------------------------------------------------------------------------------


def program() -> int:
    """`blackboard` in a step; its exit status."""
    folder = os.environ.get(FOLDER)
    try:
        if not folder:
            raise UsageError("no blackboard here: the step asks for one by `blackboard: true`")
        return run(Blackboard(Path(folder)), sys.argv[1:])
    except OpenRYError as error:
        sys.stderr.write(f"blackboard: {error}\n")
        return error.exit_status
    except OSError as error:
        sys.stderr.write(f"blackboard: {error.strerror}\n")
        return 1


def run(board: Blackboard, words: Sequence[str], program: str = "blackboard") -> int:
    """Do what the words say, the answer on standard output; the exit status.

    Args:
        program: What a person calls, whose help says more.

    Raises:
        UsageError: They say nothing that can be done.
        NotFoundError: What is asked for is not there.
    """
    match words:
        case ["list"]:
            _say("".join(f"{name}\n" for name in board.names()))
        case ["get", name]:
            _say(board.get(name))
        case ["get", name, otherwise]:
            _say(board.get(name) if name in board.names() else otherwise)
        case ["put", name, text]:
            board.put(name, _given(text, name))
        case ["append", name, text]:
            board.append(name, _given(text, name))
        case ["add", name]:
            _say(str(board.add(name)))
        case ["add", name, number]:
            _say(str(board.add(name, _whole(number, "what is to be added"))))
        case ["remove", name]:
            board.remove(name)
        case ["lock", command, *arguments]:
            _become(board, command, arguments)
        case ["help" | "--help" | "-h"]:
            _say(_HELP)
        case _:
            raise UsageError(f"{_wrong(words)}; see {program} --help")
    return 0


def _wrong(words: Sequence[str]) -> str:
    if not words:
        return "it is not said what to do"
    known = ("list", "get", "put", "append", "add", "remove", "lock")
    return f"`{words[0]}` takes other words" if words[0] in known else f"there is no `{words[0]}`"


def _say(text: str) -> None:
    end = "" if not text or text.endswith("\n") else "\n"
    view = memoryview(f"{text}{end}".encode("utf-8", "surrogateescape"))
    try:
        while view:
            view = view[os.write(1, view) :]
    except BrokenPipeError:
        return
    except OSError as error:
        raise StorageError(f"standard output cannot be written: {error.strerror}") from error


def _given(text: str, name: str) -> str:
    if text != "-":
        return text
    if sys.stdin is None:
        raise UsageError("`-` reads standard input, which is closed")
    return _text(sys.stdin.buffer.read(MOST_BYTES + 1), name)


def _become(board: Blackboard, command: str, arguments: Sequence[str]) -> None:
    """Hold the lock and be that command: it is released when that and what it left have ended."""
    with board.lock(hand_on=True):
        os.environ[HELD] = os.environ[FOLDER]
        try:
            os.execvp(command, [command, *arguments])  # noqa: S606  # words that a policy judged
        except OSError as error:
            raise UsageError(f"`{command}` cannot be started: {error.strerror}") from error
