"""Nothing outlives us: a small shell ends what we started when we are killed ourselves."""

from __future__ import annotations

import _thread
import os
from itertools import count

from openry.sandbox.launcher import Launch
from openry.sandbox.process import Process, start

#: Waits for the end of its input, which is ours, and then reads a table (its descriptor 1): the
#: group of each command that is not over, 0 for one that was about to be started, and its mark; or
#: `-` and a folder, which it removes if it is empty. It kills those groups and every process whose
#: environment holds one of the marks, until a look finds none. Where something was being started it
#: looks for two seconds: what has not got its environment yet is not seen.
_SCRIPT = """
read -r nothing
groups= marks= begun=0 line='
'
while read -r group mark; do
    case $group in
        '') continue ;;
        -) set -- "$@" "$mark"; continue ;;
        0) begun=1 ;;
        *) groups="$groups $group" ;;
    esac
    [ -z "$mark" ] || marks="$marks$mark$line"
done <&1
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
[ $# = 0 ] || rmdir -- "$@" 2>/dev/null
[ "$groups$begun" = 0 ] && exit
IFS=$line looks=1 tries=100
[ $begun = 0 ] || looks=10
while [ $looks -gt 0 ] && [ $tries -gt 0 ]; do
    looks=$((looks - 1)) tries=$((tries - 1)) found=
    for mark in $marks; do
        for pid in $(grep -lFs -- "TMPDIR=$mark" /proc/[0-9]*/environ | tr -cd '0-9\\n'); do
            [ "$pid" != $$ ] && kill -KILL "$pid" 2>/dev/null && found=1
        done
    done
    [ -z "$found" ] || looks=$((looks + 1))
    [ "$found$begun" = 0 ] || sleep 0.2
done
"""
#: One line of the table, which is written whole or not at all: it never crosses a page of memory.
_LINE = 4096


class Watch:
    """The shell that watches over this process, and over what it is told of.

    It sleeps until we end: what we tell it stands in memory that we share, and does not wake it.
    """

    def __init__(self, *, alone: bool) -> None:
        opened = [*os.pipe()]
        try:
            opened += [_memory(), os.open(os.devnull, os.O_WRONLY)]
            read, self._end, self._table, nothing = opened
            launch = Launch(("/bin/sh", "-c", _SCRIPT), "/")
            std = (read, self._table, nothing)
            self._process: Process = start(launch, {"PATH": os.defpath}, std=std, alone=alone)
        except BaseException:
            for fd in opened:
                os.close(fd)
            raise
        os.close(read)
        os.close(nothing)
        self._free: list[int] = []
        self._lines = count()
        self._groups: dict[int, int] = {}  #: by the line that names them
        self.pid = self._process.pid
        self._owner = os.getpid()

    def expect(self, mark: str) -> int:
        """Something is about to be started; whoever has `mark` for a TMPDIR dies with us.

        Returns the number by which we speak of it.
        """
        return self._add(f"0 {mark}")

    def begin(self, line: int, group: int, mark: str) -> None:
        """It was: from now on `group` dies with us as well."""
        self._groups[line] = group
        self._write(line, f"{group} {mark}")

    def leave(self, folder: str) -> int:
        """A folder that is to be removed when we end, if it is empty; its number."""
        return self._add(f"- {folder}")

    def end(self, line: int) -> None:
        """It is over, or could not be started; or that folder is not left any more."""
        self._groups.pop(line, None)
        self._write(line, "")
        self._free.append(line)

    @property
    def groups(self) -> set[int]:
        """Those that die with us."""
        return set(self._groups.copy().values())

    @property
    def is_ours(self) -> bool:
        """Whether this process started it, and not its parent before a `fork`."""
        return self._owner == os.getpid()

    @property
    def works(self) -> bool:
        return self.is_ours and not self._process.has_ended()

    def _add(self, text: str) -> int:
        try:
            line = self._free.pop()
        except IndexError:
            line = next(self._lines)
        self._write(line, text)
        return line

    def _write(self, line: int, text: str) -> None:
        data = os.fsencode(text)[: _LINE - 1].ljust(_LINE - 1) + b"\n"
        os.pwrite(self._table, data, line * _LINE)


def _memory() -> int:
    """A descriptor of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("openry")
    import tempfile

    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


_watch: Watch | None = None
_making = _thread.allocate_lock()


def watch(*, alone: bool) -> Watch:
    """The one watch of this process, started when it is first needed.

    Args:
        alone: As for `start`.
    """
    global _watch
    with _making:  # two threads' first commands have one watch
        if _watch is None or not _watch.works:
            _watch = Watch(alone=alone)
        return _watch
