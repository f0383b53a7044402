"""How Windows starts a program: by one line, not by words. Untried there."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CMD = ("/d", "/s", "/c")


def windows_line(argv: Sequence[str]) -> str:
    r"""The one line that Windows starts a program by. Untried there.

    `cmd` takes the text between the outermost quotes as it is; for every other program the words
    are quoted so that it finds them again.

    >>> windows_line(("cmd.exe", "/d", "/s", "/c", 'echo "a b" & dir'))
    'cmd.exe /d /s /c "echo "a b" & dir"'
    >>> windows_line(("pwsh", "-Command", 'echo "a b"'))
    'pwsh -Command "echo \\"a b\\""'
    """
    from subprocess import list2cmdline

    *before, text = argv
    if tuple(before[1:]) == _CMD:
        return f'{list2cmdline(before)} "{text}"'
    return list2cmdline(argv)
