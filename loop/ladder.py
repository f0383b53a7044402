"""Which planner is asked: a larger one only when the smaller did not help, and down again after."""

from __future__ import annotations

from collections.abc import Sequence

from loop.journal import Round

#: So many rounds in which one failure survived lead one rung up.
SURVIVED = 2


def rung(rounds: Sequence[Round], signature: str, rungs: int) -> int:
    """The rung for the next round, counted from 0, as the journal alone decides it.

    A round in which nothing was accepted leads up, and so does a failure that survived two
    edits; an edit after which something else fails leads down.
    """
    place = survived = 0
    after = [each.diagnosis.signature for each in rounds[1:] if each.diagnosis][1:]
    for round_, following in zip(rounds[1:], [*after, signature], strict=False):
        own = round_.diagnosis.signature if round_.diagnosis else ""
        if round_.verdict == "nothing accepted":
            place, survived = place + 1, 0
        elif own and own == following:
            survived += 1
            if survived >= SURVIVED:
                place, survived = place + 1, 0
        else:
            place, survived = max(0, place - 1), 0
    return min(place, rungs - 1)
