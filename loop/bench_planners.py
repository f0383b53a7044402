"""`openry-loop bench --planners`: what a planner's strength is worth, by dice and by formula (L1).

A workflow of some steps, each right half of the time, is mended for some rounds. In a round it
runs once; where it fails, the planner proposes one edit of the step that the diagnosis blames,
and the very gates of a session (G0 to G4) judge it; beside them, a loop in which only one whole
run decides, and one that takes whatever is proposed. What is measured is how often the workflow of
each round would succeed; the formula gives the same without throwing a die.

The formula has two parts. G3 is a walk over pairs of replays that ends at +4 or at -3: with `up`
and `down` the chances of a pair that speaks for the child or the parent, and r = down / up, it
admits with probability (1 - r**3) / (1 - r**7) (gambler's ruin: W. Feller, An Introduction to
Probability Theory, vol. 1, ch. XIV), here cut off at 40 pairs; G4 asks that two of three whole runs
keep what held. Without gates a change is taken where its one run comes further than the failed one:
with the product of the chances of the steps up to the blamed one. The workflow's states (which
steps are mended or harmed) are then a Markov chain: S(n) = sum over states of P(state after n
rounds) times the product of its steps' chances.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import prod
from typing import Any

from loop import pairs
from loop.apply import apply, data_of, dump
from loop.bench_figures import mean_interval
from loop.bench_page import Part, page
from loop.bench_plot import Series, chart
from loop.diagnose import diagnose
from loop.edits import AddContext, Proposal
from loop.journal import History, Round
from loop.selftest import dice_work
from loop.simulator import SHARED, Mode, Simulator
from loop.variant import Gates, Variant

STEPS = ("a", "b", "c")
ROUNDS, SESSIONS = 12, 200
#: How often a step is right at first, and what the words of an edit add to it.
AT_FIRST = 0.5
EFFECTS = {"helpful": 0.45, "harmful": -0.20}
#: What may be proposed for a step: one edit helps, three do nothing, one harms.
MENU = ("helpful", "plain", "short", "kind", "harmful")
#: How often each planner proposes the edit that helps; the others are equally likely, but the
#: adversary knows which one harms.
PLANNERS = {"oracle": 1.0, "70 % right": 0.7, "random": 1 / len(MENU), "adversarial": 0.0}

#: What decides on a proposal, and how it is called.
GATES: Mapping[Gates, str] = {
    "all": "all gates",
    "none": "one whole run decides",
    "accept": "everything is taken",
}

#: A step's words that matter, sorted; a workflow's state is one of these a step.
Words = tuple[str, ...]
State = tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One planner: how often the workflow of each round succeeds, round 0 first.

    Attributes:
        measured: Mean over sessions; `low` and `high` hold it with 95 % confidence.
        theory: What the formula gives.
        accepted: (taken, proposed) of the edits that help, and of those that harm.
        gates: What decided on them.
    """

    planner: str
    sessions: int
    measured: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    theory: tuple[float, ...]
    accepted: Mapping[str, tuple[int, int]]
    gates: Gates = "all"

    @property
    def apart(self) -> float:
        """How far dice and formula are apart where they are furthest."""
        pairs_ = zip(self.measured, self.theory, strict=True)
        return max(abs(one - other) for one, other in pairs_)


def study(
    sessions: int = SESSIONS, rounds: int = ROUNDS, tell: Callable[[str], None] | None = None
) -> tuple[Curve, ...]:
    """A curve for each planner, with and without the gates."""
    found = []
    for gates, planner in product(GATES, PLANNERS):
        counts: dict[str, list[int]] = {word: [0, 0] for word in EFFECTS}
        variant = Variant(gates=gates)
        runs = [_session(planner, variant, number, rounds, counts) for number in range(sessions)]
        by_round = list(zip(*runs, strict=True))
        bounds = [mean_interval(values) for values in by_round]
        found.append(
            Curve(
                planner,
                sessions,
                tuple(sum(values) / sessions for values in by_round),
                tuple(low for low, _ in bounds),
                tuple(high for _, high in bounds),
                theory(planner, rounds, gates),
                {word: (taken, seen) for word, (taken, seen) in counts.items()},
                gates,
            )
        )
        if tell is not None:
            tell(_line(found[-1]))
    return tuple(found)


def chances(planner: str) -> dict[str, float]:
    """How likely each edit of the menu is the planner's proposal.

    >>> chances("adversarial")["harmful"], round(sum(chances("70 % right").values()), 9)
    (1.0, 1.0)
    """
    if planner == "adversarial":
        return {word: float(word == "harmful") for word in MENU}
    right = PLANNERS[planner]
    return {word: right if word == "helpful" else (1 - right) / (len(MENU) - 1) for word in MENU}


# --- by dice ----------------------------------------------------------------------------------


def _session(
    planner: str, variant: Variant, number: int, rounds: int, counts: Mapping[str, list[int]]
) -> tuple[float, ...]:
    """How often the workflow of each round would succeed."""
    steps = [{"id": step, "kind": "agent", "description": "say"} for step in STEPS]
    text = dump({"name": "w", "sub_steps": steps})
    dice = random.Random(f"{planner} {number}")  # noqa: S311  # dice of a game
    likely = chances(planner)
    modes = (Mode("wrong_content", 1 - AT_FIRST, {}),)
    curve = [_success(Simulator(0, modes, EFFECTS), text)]
    for place in range(rounds):
        world = Simulator(number * 1000 + place, modes, EFFECTS)
        trial = world.run(text, 1000)
        if not trial.acceptable:
            word = dice.choices(MENU, [likely[each] for each in MENU])[0]
            edit = AddContext(step=diagnose(trial, ()).step, text=f"a {word} word")
            child = apply(text, [edit])
            keeper = variant.gatekeeper(dice_work(), world)
            history = History({}, (Round(0, text, trial, "failed"),), ())
            proposal = Proposal((edit,), "planner", "")
            found, _ = keeper.judge(proposal, trial, text, child, history)
            passed = all(gate.passed for gate in found)
            if word in counts and word not in str(_step(text, edit.step)):
                counts[word][0] += passed
                counts[word][1] += 1
            text = child if passed else text
        curve.append(_success(world, text))
    return tuple(curve)


def _success(world: Simulator, text: str) -> float:
    return prod(world.chance(step) for step in data_of(text)["sub_steps"])


def _step(text: str, step_id: str) -> Mapping[str, Any]:
    step: Mapping[str, Any] = next(s for s in data_of(text)["sub_steps"] if s["id"] == step_id)
    return step


# --- by formula -------------------------------------------------------------------------------


def theory(planner: str, rounds: int, gates: Gates = "all") -> tuple[float, ...]:
    """How often the workflow succeeds after each round, by the Markov chain of its states."""
    likely = chances(planner)
    states: dict[State, float] = {((),) * len(STEPS): 1.0}
    curve = [_expected(states)]
    for _ in range(rounds):
        after: dict[State, float] = defaultdict(float)
        for state, share in states.items():
            for next_state, chance in _moves(state, likely, gates):
                after[next_state] += share * chance
        states = dict(after)
        curve.append(_expected(states))
    return tuple(curve)


def admitted(parent: float, child: float, shared: float = SHARED) -> float:
    """How likely the walk over pairs of replays (G3) admits a child.

    Args:
        parent: How often the parent's step is right; `child` likewise.
        shared: How often both have the same luck.

    >>> round(admitted(0.5, 0.95), 3), round(admitted(0.5, 0.5), 3), round(admitted(0.5, 0.3), 3)
    (1.0, 0.247, 0.008)
    """
    up = shared * max(0.0, child - parent) + (1 - shared) * child * (1 - parent)
    down = shared * max(0.0, parent - child) + (1 - shared) * parent * (1 - child)
    places = {0: 1.0}
    reached = 0.0
    for _ in range(pairs.MAX_PAIRS):
        after: dict[int, float] = defaultdict(float)
        for place, share in places.items():
            for move, chance in ((1, up), (-1, down), (0, 1 - up - down)):
                after[place + move] += share * chance
        reached += after.pop(pairs.ADMIT, 0.0)
        after.pop(pairs.REFUSE, None)
        places = dict(after)
    return reached


def protected(before: Sequence[float]) -> float:
    """How likely the steps before the changed one fail in none but one of three runs each (G4).

    A run ends at the first step that fails.

    >>> round(protected([0.5]), 3), protected([])
    (0.5, 1.0)
    """
    left = 1.0
    ends = []
    for chance in before:
        ends.append(left * (1 - chance))
        left *= chance
    ends.append(left)  # no step before the changed one fails
    held = 0.0
    for runs in product(range(len(ends)), repeat=pairs.RUNS):
        failed = [runs.count(place) for place in range(len(before))]
        if all(pairs.RUNS - count >= pairs.MUST_HOLD for count in failed):
            held += prod(ends[place] for place in runs)
    return held


def taken(gates: Gates, steps: Sequence[float], place: int, child: float) -> float:
    """How likely a change of the blamed step is taken.

    Args:
        steps: How often each step is right; `place` is the blamed one.
        child: How often that one is right once it is changed.
    """
    if gates == "accept":
        return 1.0
    if gates == "none":
        return prod(steps[:place]) * child
    return admitted(steps[place], child) * protected(steps[:place])


def _moves(
    state: State, likely: Mapping[str, float], gates: Gates = "all"
) -> Iterator[tuple[State, float]]:
    """What one round makes of a workflow, and how likely."""
    steps = [_chance(words) for words in state]
    stays = prod(steps)
    before = 1.0
    for place, chance in enumerate(steps):
        blamed = before * (1 - chance)
        for word, share in likely.items():
            words = tuple(sorted({*state[place], word} & set(EFFECTS)))
            moves = taken(gates, steps, place, _chance(words))
            yield (*state[:place], words, *state[place + 1 :]), blamed * share * moves
            stays += blamed * share * (1 - moves)
        before *= chance
    yield state, stays


def _chance(words: Words) -> float:
    return min(1.0, max(0.0, AT_FIRST + sum(EFFECTS[word] for word in words)))


def _expected(states: Mapping[State, float]) -> float:
    return sum(share * prod(map(_chance, state)) for state, share in states.items())


# --- for readers ------------------------------------------------------------------------------


def to_json(curves: Sequence[Curve]) -> dict[str, Any]:
    return {
        "layer": "L1",
        "steps": len(STEPS),
        "at_first": AT_FIRST,
        "effects": EFFECTS,
        "planners": [{**asdict(curve), "apart": curve.apart} for curve in curves],
        "schema_version": 1,
    }


def to_text(curves: Sequence[Curve]) -> str:
    """The table that a person reads: measured, and in brackets what the formula gives."""
    rounds = len(curves[0].measured)
    shown = [n for n in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24) if n < rounds]
    head = f"{'success after round':<22}" + "".join(f"{n:>14}" for n in shown)
    lines = ["strength of planners (L1 simulator; formula in brackets)", head]
    for gates, named in GATES.items():
        lines.append(f"-- {named} ".ljust(len(head), "-"))
        for curve in (curve for curve in curves if curve.gates == gates):
            cells = (f"{curve.measured[n]:.1%} ({curve.theory[n]:.1%})" for n in shown)
            lines.append(f"{curve.planner:<22}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join([*lines, "", *map(_line, curves)])


def picture(curves: Sequence[Curve]) -> str:
    """The curves as SVG; broken lines are the formula's. Empty without curves."""
    if not curves:
        return ""
    series = [
        Series(
            curve.planner,
            tuple(enumerate(curve.measured)),
            tuple(zip(curve.low, curve.high, strict=True)),
            tuple(enumerate(curve.theory)),
        )
        for curve in curves
    ]
    return chart(series, title="success by round and planner", x="round", y="runs that succeed")


def to_html(curves: Sequence[Curve]) -> str:
    """The report page."""
    words = (
        f"Layer L1, a simulator: {len(STEPS)} steps, each right {AT_FIRST:.0%} of the time; one"
        f" edit of {len(MENU)} adds {EFFECTS['helpful']:.0%}, one takes {-EFFECTS['harmful']:.0%}."
        " Every proposal goes through the gates of a session. It says what the gates make of a"
        " planner's strength, and nothing of any one model."
    )
    formula = (
        "Broken lines: gambler's ruin for the walk over pairs of replays (up at +4, down at -3, cut"
        " off at 40 pairs), two of three whole runs for the steps before, and a Markov chain over"
        " the workflow's states."
    )
    rounds = range(len(curves[0].measured))
    rows = [
        (_name(curve), *(f"{curve.measured[n]:.1%} ({curve.theory[n]:.1%})" for n in rounds))
        for curve in curves
    ]
    taken = [
        (_name(curve), *(f"{one} of {all_}" for one, all_ in curve.accepted.values()),
         f"{curve.apart:.1%}")
        for curve in curves
    ]  # fmt: skip
    return page(
        "What a planner's strength is worth",
        words,
        [
            *(
                Part(f"Success by round: {named}", formula if gates == "all" else "", drawn)
                for gates, named in GATES.items()
                if (drawn := picture([curve for curve in curves if curve.gates == gates]))
            ),
            Part("Measured, and by formula", "", "", ("planner", *rounds), rows),
            Part("Edits taken", "", "", ("planner", *EFFECTS, "furthest from the formula"), taken),
        ],
    )


def _name(curve: Curve) -> str:
    return f"{curve.planner}, {GATES[curve.gates]}"


def _line(curve: Curve) -> str:
    counts = ", ".join(f"{word} {one} of {all_}" for word, (one, all_) in curve.accepted.items())
    return (
        f"{_name(curve)}: {curve.sessions} sessions, at most {curve.apart:.1%} from the formula;"
        f" taken: {counts}"
    )
