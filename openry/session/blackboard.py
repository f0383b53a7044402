"""A blackboard: small texts by name that the sessions of one ledger share.

Each text is a file of a folder, replaced whole. One lock guards a blackboard, the kernel's on its
folder: it is released when whoever holds it has ended, however that came. It is also the program
`blackboard` of steps, so it imports little.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from openry.errors import NotFoundError, OpenRYError, UsageError
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
_HELP = """\
blackboard list                   the names of what stands there
blackboard get NAME [ELSE]        the text; ELSE where there is none
blackboard put NAME TEXT|-        put a text there, - reads it from standard input
blackboard append NAME TEXT|-     add a line
blackboard add NAME [NUMBER]      add to a number (1), and say what it is now
blackboard remove NAME
blackboard-lock COMMAND...        nobody else adds, appends or locks while the command runs
"""


def is_name(text: str) -> bool:
    """Whether a blackboard or a text on it can be called that."""
    return _NAME.fullmatch(text) is not None


def folder_of(config: Config, name: str) -> Path:
    """Where a blackboard lies: beside the ledger, so all who share that find it."""
    from openry.ledger.place import sqlite_path

    ledger = sqlite_path(config.ledger)
    return (Path(ledger).absolute().parent if ledger else config.home) / "blackboards" / name


class Blackboard:
    """The blackboard in `folder`, which is made when it is not there.

    Every method raises UsageError for what is no name, and for what is no text of ours.
    """

    def __init__(self, folder: Path) -> None:
        make_private_folder(folder)
        self._folder = folder

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
        path = self._path(name)
        _text(text.encode("utf-8", "surrogateescape"), name)
        try:
            write_private(path, text)
        except IsADirectoryError:
            raise UsageError(f"`{name}` is a folder, not a text of a blackboard") from None

    def append(self, name: str, line: str) -> None:
        """Add a line to a text."""
        with self.lock():
            before = self.get(name) if name in self.names() else ""
            gap = "" if not before or before.endswith("\n") else "\n"
            self.put(name, f"{before}{gap}{line.removesuffix(chr(10))}\n")

    def add(self, name: str, number: int = 1) -> int:
        """Add to a whole number, which is 0 at first; what it is now."""
        with self.lock():
            before = self.get(name) if name in self.names() else "0"
            now = _whole(before, f"what stands at `{name}`") + number
            self.put(name, str(now))
        return now

    def remove(self, name: str) -> None:
        """Take a text away; none is no error."""
        self._path(name).unlink(missing_ok=True)

    @contextmanager
    def lock(self, *, hand_on: bool = False) -> Iterator[None]:
        """Hold the lock; wait for it as long as it takes. A program below does not take it again.

        Args:
            hand_on: Programs that are started meanwhile hold it as well.
        """
        import fcntl

        if os.environ.get(HELD) == str(self._folder):
            yield
            return
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.set_inheritable(fd, hand_on)
            yield
        finally:
            os.close(fd)

    def _path(self, name: str) -> Path:
        if not is_name(name):
            raise UsageError(
                f"`{name}` cannot be a name here: letters, digits, `.`, `_` and `-`, at most 100,"
                " a letter or digit first"
            )
        return self._folder / name


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


def run(board: Blackboard, words: Sequence[str]) -> int:
    """Do what the words say, the answer on standard output; the exit status.

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
            raise UsageError(f"this is how it is called:\n{_HELP}".rstrip())
    return 0


def _say(text: str) -> None:
    end = "" if not text or text.endswith("\n") else "\n"
    sys.stdout.buffer.write(f"{text}{end}".encode())
    sys.stdout.buffer.flush()


def _given(text: str, name: str) -> str:
    return _text(sys.stdin.buffer.read(MOST_BYTES + 1), name) if text == "-" else text


def _become(board: Blackboard, command: str, arguments: Sequence[str]) -> None:
    """Hold the lock and be that command: it is released when that and what it left have ended."""
    with board.lock(hand_on=True):
        os.environ[HELD] = os.environ[FOLDER]
        try:
            os.execvp(command, [command, *arguments])  # noqa: S606  # words that a policy judged
        except OSError as error:
            raise UsageError(f"`{command}` cannot be started: {error.strerror}") from error
