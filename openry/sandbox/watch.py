"""Nothing outlives us: a small shell ends what we started when we are killed ourselves."""

from __future__ import annotations

import _thread
import os

from openry.sandbox.launcher import Launch
from openry.sandbox.process import Process, start

#: Reads `! MARK` before something is started, `+ GROUP` or `. MARK` once it was or could not be,
#: and `- GROUP MARK` when it is over. At the end of its input it kills every group that is still
#: there and every process whose environment holds one of the marks, until a look finds none. Where
#: something was being started it looks for two seconds: what has not got its environment yet is
#: not seen.
_SCRIPT = """
groups=' ' marks=' ' begun=0
forget() { [ -z "$1" ] || marks="${marks%% "$1" *} ${marks#* "$1" }"; }
while read -r sign what mark; do
    case $sign in
        '!') marks="$marks$what " begun=$((begun + 1)) ;;
        +) groups="$groups$what " begun=$((begun - 1)) ;;
        .) forget "$what"; begun=$((begun - 1)) ;;
        -) groups="${groups%% $what *} ${groups#* $what }"; forget "$mark" ;;
    esac
done
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
[ "$groups$begun" = ' 0' ] && exit
looks=1 tries=100
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

    def expect(self, mark: str) -> None:
        """Something is about to be started; whoever has `mark` for a TMPDIR dies with us."""
        self._say(f"! {mark}\n")

    def begin(self, group: int) -> None:
        """It was: from now on `group` dies with us as well."""
        self._say(f"+ {group}\n")

    def forsake(self, mark: str) -> None:
        """It could not be started."""
        self._say(f". {mark}\n")

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
