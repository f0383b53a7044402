"""Where the commands of a line are run: what `cd` does to those that come after it."""

# ruff: noqa: PTH112
# Paths are compared as text here, many for each command.

from __future__ import annotations

import os

from openry.policy.patterns import resolve
from openry.policy.words import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.policy.calls import Place
    from openry.policy.script import Script, Simple
    from openry.policy.tracing import Tracing

MOVING = frozenset(("cd", "pushd", "popd"))
#: Commands that leave every folder where it is.
_QUIET = MOVING | {"echo", "printf", "set", "export", "pwd", "true", ":", "ls", "cat", "test", "["}
_MOST = 8

Folders = tuple[str, ...]  #: an empty one among them is not known


def places(script: Script, place: Place, tracing: Tracing, *, still: bool) -> list[Folders]:
    """The folders in which each command may be run.

    Where it is certain what runs, and in which order, what follows a `cd` is run there and nowhere
    else; otherwise anything may be run wherever some `cd` leads.

    Args:
        still: Nothing that the line does can take a folder away.
    """
    walk = _Walk(script, place, tracing, still=still)
    found = [walk.before(simple) for simple in script.commands]
    certain = (script.in_turn or script.straight) and not _runs_later(script)
    if certain:
        return found
    every = tuple(dict.fromkeys(one for some in (*found, walk.cwds) for one in some))
    return [every if len(every) <= _MOST else (*every[:_MOST], "")] * len(found)


def _runs_later(script: Script) -> bool:
    """Whether something in it runs elsewhere than it stands: functions, traps."""
    words = (simple.words[0].literal for simple in script.commands if simple.words)
    return bool(script.functions) or "trap" in words


class _Walk:
    def __init__(self, script: Script, place: Place, tracing: Tracing, *, still: bool) -> None:
        self.script, self.home, self.tracing = script, place.home, tracing
        self.cwds: Folders = place.cwds
        self.been: dict[str, None] = dict.fromkeys(place.cwds)
        self.moved = False
        self.still = True  #: no folder was taken away by now
        self.always_still = still

    def before(self, simple: Simple) -> Folders:
        """Where `simple` is run; then go where it leads."""
        here = self.cwds
        self.tracing.here = here
        if not simple.words:
            return here
        first = simple.words[0].literal
        if first in MOVING:
            self._move(simple)
        elif first not in _QUIET:
            self.still = self.always_still
        return here

    def _move(self, simple: Simple) -> None:
        targets = [word for word in simple.words[1:] if word.text not in ("-P", "-L", "--")]
        target = targets[0] if targets else Word("~")
        back = target.text == "-" and self.moved
        if simple.words[0].literal == "popd" or back:
            after = (*self.been,)
        else:
            texts = self.tracing.texts(target) if target.text != "-" else None
            if texts is not None and target.splits and self.tracing.may_vanish(target):
                texts = (*texts, self.home)
            physical = any(word.text == "-P" for word in simple.words)
            if texts and physical and any(".." in text.split("/") for text in texts):
                texts = None  # above where a link leads
            after = tuple(
                resolve(one, cwd, self.home) or "" for cwd in self.cwds for one in texts or ()
            )
        self.moved = True
        arrives = len(targets) == 1 and (self.script.in_turn or self._is_there(target, after))
        kept = () if arrives else self.cwds
        self.cwds = tuple(dict.fromkeys((*kept, *(after or ("",)))))
        self.been.update(dict.fromkeys(self.cwds))

    def _is_there(self, target: Word, after: Folders) -> bool:
        """Whether `cd` is certain to come to `after`."""
        if not self.script.straight or len(after) != 1 or not after[0]:
            return False
        return (self.still or target.text == "..") and os.path.isdir(after[0])
