"""Nothing outlives us: a small shell ends what we started when we are killed ourselves."""

from __future__ import annotations

import os

from openry.sandbox.launcher import Launch
from openry.sandbox.process import Process, start

#: Reads `+ GROUP MARK` and `- GROUP MARK` lines. At the end of its input it kills every group that
#: is still there, and every process whose environment holds one of the marks; marks are folders,
#: and empty ones whose names begin like the last one's are removed.
_SCRIPT = """
groups=' ' marks=' ' last=
while read -r sign group mark; do
    case $sign in
        +) groups="$groups$group "; [ -z "$mark" ] || marks="$marks$mark " last=$mark ;;
        -) groups="${groups%% $group *} ${groups#* $group }"
           [ -z "$mark" ] || marks="${marks%% "$mark" *} ${marks#* "$mark" }" ;;
    esac
done
tidy() {
    [ -z "$last" ] || for left in "${last%-*}"-*; do [ ! -d "$left" ] || rmdir "$left"; done
}
trap 'tidy 2>/dev/null' EXIT
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
[ "$groups" = ' ' ] && exit
for mark in $marks; do
    for pid in $(grep -lFs -- "TMPDIR=$mark" /proc/[0-9]*/environ | tr -cd '0-9\\n'); do
        [ "$pid" = $$ ] || kill -KILL "$pid" 2>/dev/null
    done
done
"""


class Watch:
    """The shell that watches over this process, and over what it is told of."""

    def __init__(self, *, alone: bool) -> None:
        read, self._write = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY)
        launch = Launch(("/bin/sh", "-c", _SCRIPT), "/")
        env = {"PATH": os.defpath}
        self._process: Process = start(launch, env, std=(read, nothing, nothing), alone=alone)
        self.pid = self._process.pid
        self._owner = os.getpid()
        os.close(read)
        os.close(nothing)

    def begin(self, group: int, mark: str) -> None:
        """From now on `group` dies with us, and whoever has `mark` for a TMPDIR."""
        self._say(f"+ {group} {mark}\n")

    def end(self, group: int, mark: str) -> None:
        """`group` is over."""
        self._say(f"- {group} {mark}\n")

    @property
    def works(self) -> bool:
        return self._owner == os.getpid() and not self._process.has_ended()

    def _say(self, line: str) -> None:
        try:
            os.write(self._write, line.encode())
        except BrokenPipeError:  # it was killed: there is nobody to tell, and `works` says so
            return


_watch: Watch | None = None


def watch(*, alone: bool) -> Watch:
    """The one watch of this process, started when it is first needed.

    Args:
        alone: As for `start`.
    """
    global _watch
    if _watch is None or not _watch.works:
        _watch = Watch(alone=alone)
    return _watch
