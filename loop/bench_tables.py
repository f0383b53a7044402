"""What the arms of a benchmark reached and used: tables, curves and their doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor
from typing import Any

from loop.bench_figures import all_of, bootstrap, share
from loop.bench_page import Part, page
from loop.bench_plot import Series, chart

#: Runs of one task that pass^k asks for.
K = 5
#: The arm whose cost the others are measured by.
MEASURE = "full"
#: Arms that leave no workflow: each time they write anew, whether it was right before or not.
ANEW = ("single_shot", "blind_retry", "best_of_12")
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an arm stood after a round or a try; tokens and seconds are all so far."""

    right: bool
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Score:
    """How one arm did on one task. `wrong` shows the first difference; empty when right.

    Attributes:
        calls: How often a model was asked.
        cpu_s: Processor seconds of everything that the arm did.
        again_cpu_s: Processor seconds of one more run of the workflow that the loop left; 0 where
            it left none that gives what is right.
        marks: How it stood after each round or try, its end last.
    """

    id: str
    arm: str
    right: bool
    outcome: str
    strength: str = ""
    rounds: int = 0
    edits: int = 0
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    again_cpu_s: float = 0.0
    wrong: str = ""
    task: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def silent_wrong(self) -> bool:
        """Said to be done, and wrong."""
        return self.outcome == "converged" and not self.right

    @property
    def kind(self) -> str:
        """The task of which this is an instance: its instances are not independent."""
        return self.id.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Totals:
    """One arm over the whole suite.

    Attributes:
        share: Right results of all, in the 95 % interval `share_in` (tasks drawn anew, each with
            all its instances); `silent_in` likewise holds the share that was silently wrong.
        all_five: pass^5, where each task has five instances or more; else None.
        strong_right: Right results that were reported as strong.
        stuck: Gave up or could not begin, where something could be done.
        at_equal_cost: Share that is right where the arm may use as much processor time in all as
            the full loop did: tasks in any order, none after the time is over. None where the full
            loop did not run.
        cpu_s_per_right: Processor seconds of all tasks for each right result.
        break_even: After so many runs of one task the loop has cost less than the arm
            (`break_even`); None where that never comes, where the arm too leaves a workflow
            that is only run again, or where the full loop did not run.
    """

    arm: str
    tasks: int
    right: int
    converged: int
    silent_wrong: int
    strong_right: int
    strong_wrong: int
    stuck: int
    share: float
    share_in: Interval
    silent_in: Interval
    all_five: float | None
    all_five_in: Interval | None
    at_equal_cost: float | None
    calls: int
    tokens: int
    seconds: float
    cpu_s: float
    cpu_s_per_right: float | None
    tokens_per_right: float | None
    break_even: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """All scores of a run of a suite."""

    suite: str
    scores: tuple[Score, ...]

    def of(self, arm: str) -> list[Score]:
        return [score for score in self.scores if score.arm == arm]

    @property
    def arms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.arm for score in self.scores))

    def totals(self) -> tuple[Totals, ...]:
        """One line an arm, in the order they ran."""
        measure = self.of(MEASURE)
        return tuple(_totals(arm, self.of(arm), measure) for arm in self.arms)

    def to_json(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "totals": [asdict(total) for total in self.totals()],
            "scores": [asdict(score) for score in self.scores],
            "schema_version": 1,
        }

    def to_text(self) -> str:
        """The tables that a person reads."""
        columns = ("outcome", "strength", "rounds", "s")
        wide = max((len(score.id) for score in self.scores), default=0)
        head = f"{'task':<{wide}} " + "{:<13} {:<6} {:<14} {:<9} {:>6} {:>6}".format(
            "arm", "", *columns
        )
        lines = [head, "-" * len(head)]
        lines += [row(score, wide) for score in self.scores]
        totals = self.totals()
        lines += ["", *map(_total_row, totals)]
        if len(totals) > 1:
            lines += ["", *_aligned((_HEAD, *(_cells(total) for total in totals)))]
        return "\n".join(lines)

    def to_html(self) -> str:
        """The report page: the table, and the curves."""
        kinds = len({score.kind for score in self.scores})
        words = (
            f"{kinds} tasks, {len({score.id for score in self.scores})} instances; every right"
            " result was hidden from all arms. Brackets hold 95 % intervals: tasks are drawn anew,"
            " each with all its instances."
        )
        cost = (
            "At equal cost: the share that is right where an arm may use only as much processor"
            " time in all as the full loop did. After the break-even runs of one task the loop has"
            " cost less for each right result than an arm that writes anew each time: its workflow"
            " is only run again."
        )
        return page(
            f"Arms on {self.suite}",
            words,
            [
                Part("Arms", cost, "", _HEAD, [_cells(total) for total in self.totals()]),
                Part(
                    "Success by round or try",
                    "Share of the tasks whose workflow (or folder) was right after that many.",
                    self.by_round(),
                ),
                Part(
                    "Success against tokens",
                    "Where each arm stood after that many tokens a task, on average.",
                    self.by_tokens(),
                ),
            ],
        )

    def by_round(self) -> str:
        """The share that was right after each round or try, as SVG."""
        most = max((len(score.marks) for score in self.scores), default=0)
        series = [
            Series(
                arm,
                tuple((n, share([[_after(score, n).right for score in self.of(arm)]]))
                      for n in range(max(most, 2))),
            )
            for arm in self.arms
        ]  # fmt: skip
        return chart(series, title="success by round", x="round or try", y="right results")

    def by_tokens(self) -> str:
        """The share that was right against the tokens used so far, as SVG."""
        series = []
        for arm in self.arms:
            scores = self.of(arm)
            points = []
            for n in range(max((len(score.marks) for score in scores), default=0)):
                marks = [_after(score, n) for score in scores]
                mean = sum(mark.tokens for mark in marks) / len(marks)
                points.append((mean, share([[mark.right for mark in marks]])))
            series.append(Series(arm, tuple(points)))
        title = "success against tokens"
        return chart(series, title=title, x="tokens a task (1 stands for none)", y="right results",
                     log_x=True)  # fmt: skip


_HEAD = (
    "arm", "right", "pass^5", "silently wrong", "stuck", "at equal cost", "tokens a task",
    "calls a task", "CPU s a task", "CPU s per right", "tokens per right", "break-even runs",
)  # fmt: skip


def row(score: Score, wide: int = 24) -> str:
    """One score in a line, its id in `wide` columns."""
    verdict = "right" if score.right else "wrong"
    why = f"  {score.wrong}" if score.wrong else ""
    return (
        f"{score.id:<{wide}} {score.arm:<13} {verdict:<6} {score.outcome:<14} {score.strength:<9} "
        f"{score.rounds:>6} {score.seconds:>6.1f}{why}"
    ).rstrip()


def by_kind(
    scores: Iterable[Score], value: Callable[[Score], bool]
) -> Mapping[str, Sequence[float]]:
    """The marks of each task's instances."""
    found: dict[str, list[float]] = {}
    for score in scores:
        found.setdefault(score.kind, []).append(float(value(score)))
    return found


def _after(score: Score, n: int) -> Mark:
    """How a score stood after round `n`; what has ended stays as it is."""
    marks = score.marks or (Mark(score.right, score.tokens, score.seconds),)
    return marks[min(n, len(marks) - 1)]


def break_even(first_s: float, again_s: float, anew_s: float | None) -> int | None:
    """The smallest number of runs after which the loop has cost less than writing anew each time.

    The loop pays `first_s` for its first right result and `again_s` for each further one, as its
    workflow is only run again; an arm that leaves no workflow pays `anew_s` each time. So the
    smallest n of 1 or more with first_s + (n - 1) * again_s < n * anew_s, which is
    floor((first_s - again_s) / (anew_s - again_s)) + 1. All are processor seconds for each right
    result, so that tries that led to nothing count as well.

    Args:
        anew_s: None for an arm that was never right: it is dearer from the first run on.

    Returns:
        None where the arm's every run costs no more than the workflow's.

    >>> break_even(10.0, 1.0, 3.0), break_even(1.0, 0.1, 4.0), break_even(1.0, 0.1, None)
    (5, 1, 1)
    >>> break_even(1.0, 0.5, 0.5) is None
    True
    """
    if anew_s is None or first_s < anew_s:
        return 1
    if anew_s <= again_s:
        return None
    return floor((first_s - again_s) / (anew_s - again_s)) + 1


def _even(arm: str, anew_s: float | None, measure: Sequence[Score]) -> int | None:
    """`break_even` of an arm beside the full loop."""
    right = sum(score.right for score in measure)
    again = [score.again_cpu_s for score in measure if score.again_cpu_s]
    if arm not in ANEW or not right or not again:
        return None
    first = sum(score.cpu_s for score in measure) / right
    return break_even(first, sum(again) / len(again), anew_s)


def _totals(arm: str, scores: Sequence[Score], measure: Sequence[Score]) -> Totals:
    strong = [score for score in scores if score.strength == "strong"]
    rights = by_kind(scores, lambda score: score.right)
    enough = all(len(marks) >= K for marks in rights.values())
    right = sum(score.right for score in scores)
    tokens = sum(score.tokens for score in scores)
    cpu = sum(score.cpu_s for score in scores)
    most = sum(score.cpu_s for score in measure) if measure else None
    per_right = cpu / right if right else None
    return Totals(
        arm,
        tasks=len(scores),
        right=right,
        converged=sum(score.outcome == "converged" for score in scores),
        silent_wrong=sum(score.silent_wrong for score in scores),
        strong_right=sum(score.right for score in strong),
        strong_wrong=sum(score.silent_wrong for score in strong),
        stuck=sum(score.outcome != "converged" and not score.right for score in scores),
        share=share(list(rights.values())),
        share_in=bootstrap(rights, share),
        silent_in=bootstrap(by_kind(scores, lambda score: score.silent_wrong), share),
        all_five=all_of(K)(list(rights.values())) if enough else None,
        all_five_in=bootstrap(rights, all_of(K)) if enough else None,
        at_equal_cost=None if most is None else right / len(scores) * min(1.0, most / (cpu or 1.0)),
        calls=sum(score.calls for score in scores),
        tokens=tokens,
        seconds=round(sum(score.seconds for score in scores), 1),
        cpu_s=round(cpu, 1),
        cpu_s_per_right=None if per_right is None else round(per_right, 2),
        tokens_per_right=round(tokens / right, 1) if right else None,
        break_even=_even(arm, per_right, measure),
    )


def _total_row(total: Totals) -> str:
    return (
        f"{total.arm}: {total.right} of {total.tasks} right, {total.converged} converged, "
        f"{total.silent_wrong} silently wrong, {total.strong_right} of {total.right} right ones "
        f"strong, {total.strong_wrong} strong and wrong, {total.tokens} tokens, "
        f"{total.seconds:.1f} s"
    )


def _cells(total: Totals) -> tuple[str, ...]:
    """A line of the table of arms."""
    n = max(total.tasks, 1)
    return (
        total.arm,
        _percent(total.share, total.share_in),
        _percent(total.all_five, total.all_five_in),
        _percent(total.silent_wrong / n, total.silent_in),
        f"{total.stuck / n:.1%}",
        _percent(total.at_equal_cost),
        f"{total.tokens / n:.0f}",
        f"{total.calls / n:.1f}",
        f"{total.cpu_s / n:.2f}",
        "-" if total.cpu_s_per_right is None else f"{total.cpu_s_per_right:.2f}",
        "-" if total.tokens_per_right is None else f"{total.tokens_per_right:.0f}",
        "-" if total.break_even is None else f"{total.break_even}",
    )


def _percent(value: float | None, inside: Interval | None = None) -> str:
    """A share with its interval.

    >>> _percent(0.5, (0.25, 0.75)), _percent(None)
    ('50.0% [25, 75]', '-')
    """
    if value is None:
        return "-"
    bounds = f" [{inside[0] * 100:.0f}, {inside[1] * 100:.0f}]" if inside else ""
    return f"{value:.1%}{bounds}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cells[n]) for cells in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if n == 0 else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in rows
    ]
