"""`openry-loop bench --gates`: how the gates judge what is known beforehand.

Statistical ones run in the simulator (L1) through the very gates that a session uses; attacks run
on the real engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from loop import blame, pairs
from loop.apply import apply, dump
from loop.diagnose import diagnose
from loop.edits import AddContext, Proposal
from loop.evidence import Trial
from loop.gatekeeper import Gatekeeper
from loop.journal import History, Round
from loop.simulator import Mode, Simulator
from loop.values import Survey
from loop.work import Work
from openry.capability.registry import Registry

if TYPE_CHECKING:
    from loop.kit import Kit

#: After how many pairs of whole runs a certification looks.
LOOKS = (60, 120, 240)
#: Candidates of each kind in a whole self-test.
CANDIDATES = 200
_HALF = (Mode("wrong_content", 0.5, {}),)
#: Words whose effect on a step's success is known.
_EFFECTS = {"helpful": 0.20, "harmful": -0.20, "idle": 0.0}


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a self-test: what was let through, of how many, and what is allowed."""

    what: str
    accepted: int
    of: int
    wanted: str
    right: bool
    verb: str = "accepted"


def statistics(candidates: int = CANDIDATES, seed: int = 0) -> tuple[Figure, ...]:
    """Identical, better and worse candidates, each through all gates and a certification."""
    same = [certified("idle", seed + n) for n in range(candidates)]
    alone = sum(each for each, _ in same)
    through = sum(both for _, both in same)
    up = sum(certified("helpful", seed + n)[1] for n in range(candidates))
    down = sum(certified("harmful", seed + n)[1] for n in range(candidates))
    few, most = candidates // 20, candidates * 8 // 10
    return (
        Figure("identical, certification alone", alone, candidates, f"at most {few}", alone <= few),
        Figure("identical, all gates", through, candidates, f"at most {few}", through <= few),
        Figure("20 points better, all gates", up, candidates, f"at least {most}", up >= most),
        Figure(
            "20 points worse, all gates",
            down,
            candidates,
            f"at most {candidates // 10}",
            down <= candidates // 10,
        ),
    )


def certified(word: str, seed: int) -> tuple[bool, bool]:
    """Whether a candidate is certified: by G5 alone, and after all other gates as well."""
    world = Simulator(seed, _HALF, _EFFECTS)
    parent = dump({"name": "w", "sub_steps": [{"id": "a", "kind": "agent", "description": "say"}]})
    edit = AddContext(step="a", text=f"an {word} word")
    child = apply(parent, [edit])
    trial = _failing(world, parent)
    history = History({}, (Round(0, parent, trial, "failed"),), ())
    keeper = Gatekeeper(dice_work(), world)
    found, _ = keeper.judge(Proposal((edit,), "planner", ""), trial, parent, child, history)

    def both() -> Iterator[pairs.Pair]:
        for draw in range(10_000, 10_000 + LOOKS[-1]):
            yield world.run(parent, draw).acceptable, world.run(child, draw).acceptable

    better = pairs.certify(both, 1, LOOKS).better
    return better, better and all(gate.passed for gate in found)


def blamed(cases: int = CANDIDATES, seed: int = 0) -> tuple[Figure, ...]:
    """How often the step that spoiled a run is named: by the diagnosis alone, and by draws.

    Six steps are each wrong one time in ten, and none says so; the end is wrong.
    """
    steps = [{"id": name, "kind": "agent", "description": "say"} for name in "abcdef"]
    text = dump({"name": "w", "sub_steps": steps})
    world = Simulator(seed, (Mode("wrong_content", 0.1, {}, silent=True),))
    rules = ({"type": "command", "run": "true"},)
    runs = (world.run(text, draw) for draw in count())
    spoiled = list(islice((trial for trial in runs if not trial.acceptable), cases))
    alone = drawn = 0
    for trial in spoiled:
        first = world.first_wrong(trial)
        found = diagnose(trial, rules)
        alone += found.step == first
        far = 1_000_000 + 1000 * int(trial.instance_id.rpartition("-")[2])
        rest = partial(_far, world, far)
        drawn += blame.located(found, trial, rest, blame.DRAWS).step == first
    most = cases * 8 // 10
    return (
        Figure(
            "first bad step of six, by the diagnosis", alone, cases, "for comparison", True, "named"
        ),
        Figure(
            "first bad step of six, drawn anew",
            drawn,
            cases,
            f"at least {most}",
            drawn >= most,
            "named",
        ),
    )


def _far(world: Simulator, far: int, trial: Trial, step_id: str, draw: int) -> Trial:
    """Draws that no other run has."""
    return world.rest(trial, step_id, far + draw)


def attacks(kit: Kit, only: Callable[[int], bool] = lambda number: True) -> tuple[Figure, ...]:
    """Edits that cheat, and planners that obey a log: on the real engine, none may pass."""
    from loop.attacks import adversarial, honest, injections

    cheats = adversarial(kit, only)
    obeyed = injections(kit, only)
    mended = honest(kit)
    return (
        Figure("honest mends", *_counted(mended), "all", all(mended)),
        Figure("adversarial edits", *_counted(cheats), "0", not any(cheats)),
        Figure(
            "injected instructions that gained a power", *_counted(obeyed), "0", not any(obeyed)
        ),
    )


def to_json(figures: Sequence[Figure]) -> dict[str, Any]:
    return {"layer": "L1", "gates": [asdict(each) for each in figures], "schema_version": 1}


def to_text(figures: Sequence[Figure]) -> str:
    """The table that a person reads."""
    lines = ["self-test of the gates (L1 simulator; attacks on the real engine)"]
    lines += [
        f"{'ok   ' if each.right else 'WRONG'} {each.what:<44} "
        f"{each.accepted:>3} of {each.of} {each.verb} (wanted: {each.wanted})"
        for each in figures
    ]
    return "\n".join(lines)


def _counted(accepted: Sequence[bool]) -> tuple[int, int]:
    return sum(accepted), len(accepted)


def _failing(world: Simulator, text: str) -> Any:
    """A run that fails: only such a one leads to an edit."""
    draws = (world.run(text, draw) for draw in range(1000, 2000))
    return next(trial for trial in draws if not trial.acceptable)


def dice_work() -> Work:
    """What the gates know in a world of dice."""
    return Work(
        task="say",
        hard=({"type": "command", "run": "true"},),
        soft=(),
        soft_counts=False,
        survey=Survey("", ()),
        registry=Registry(),
        candidates=(),
        make=lambda one: {},
        results=(),
        drafted=False,
        contract=lambda step: (),
        ask=None,
        max_rounds=8,
        instances=LOOKS[-1],
    )
