"""Which step spoiled a run: what follows a step is drawn anew, from the files as they were then.

A run of models can go wrong long before anything fails: a step passes with a poor result, and one
that builds on it is blamed. From the files before a step, that step and all behind it run again,
a few times. Where one of these draws ends well, nothing was spoiled yet; where none does, it was.
So the first bad step is the last one from before which the rest can still end well, and halving
finds it among n steps with about log2(n) questions. A step without a model gives the same again,
so only those that ask one are tried; a run without any has nothing to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from loop.diagnose import Diagnosis, FailureClass
from loop.evidence import Trial

#: Draws of the rest at most, from before one step; the first that ends well is enough.
DRAWS = 5


def first_bad(places: Sequence[str], ends_well: Callable[[str], bool]) -> str:
    """The last of `places` from before which the rest can still end well; empty for none.

    Args:
        places: In the order in which they ran.
        ends_well: True for some of the first places, and for none behind them.

    >>> asked = []
    >>> first_bad("abcdefgh", lambda place: asked.append(place) or place <= "c"), "".join(asked)
    ('c', 'aecd')
    """
    if not places or not ends_well(places[0]):
        return ""
    good, bad = 0, len(places)
    while bad - good > 1:
        middle = (good + bad) // 2
        if ends_well(places[middle]):
            good = middle
        else:
            bad = middle
    return places[good]


def located(
    diagnosis: Diagnosis, trial: Trial, rest: Callable[[Trial, str, int], Trial], draws: int
) -> Diagnosis:
    """`diagnosis`, with the step that spoiled the run in the place of the one that shows it.

    It stays as it is where fewer than two steps could be to blame, or where no draw from the
    beginning ends well. The signature is that of the symptom all the same.

    Args:
        rest: Runs a trial anew from before a step; the number says which draw it is.
        draws: Draws that may be made from before one step.
    """
    places = [step.id for step in trial.steps if step.kind == "agent" and step.snapshot]
    if draws < 1 or not set(places) - {diagnosis.step}:
        return diagnosis
    tried: dict[str, list[bool]] = {}

    def ends_well(place: str) -> bool:
        found = tried.setdefault(place, [])
        for draw in range(1, draws + 1):
            found.append(rest(trial, place, draw).acceptable)
            if found[-1]:
                return True
        return False

    step = first_bad(places, ends_well)
    if step in ("", diagnosis.step):
        return diagnosis
    behind = places[places.index(step) + 1 :]
    never = f", from before `{behind[0]}` in none of {draws}" if behind else ""
    cause = (
        f"step `{step}` passed and spoiled what follows: drawn anew from before it the rest ends"
        f" well in draw {len(tried[step])}{never} ({diagnosis.cause})"
    )
    return replace(
        diagnosis,
        step=step,
        failure_class=FailureClass.UPSTREAM_DAMAGE,
        cause=cause,
        suspects=tuple(dict.fromkeys((*filter(None, (diagnosis.step,)), *diagnosis.suspects))),
    )
