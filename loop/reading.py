"""Read a task: every feasible way to carry it out with capabilities, the likeliest first."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from itertools import pairwise

from loop.absent import absent, vague
from loop.accounting import unaccounted
from loop.binding import (
    WORK,
    Filled,
    Pair,
    Scene,
    as_made,
    asks_for_rest,
    compounds,
    fill,
    without_remarks,
)
from loop.choosing import Chooser, veiled
from loop.loosely import loose_readings
from loop.means import UNDERSTOOD, candidates_of, fits_heads
from loop.mentions import Kind, Mention, find_mentions
from loop.minded import minds_columns, unminded_cells
from loop.segments import Fragment, belongs_to_last, boundaries, segmentations
from loop.values import Candidate, FileInfo, Goal, Reading, Survey
from loop.wording import ANSWER, Op, readings, understand
from openry.capability.definition import ToolDefinition

#: How many partial readings of one segmentation are followed, and how many tools each goal tries.
_BEAM = 16
_TOOLS = 10
_WAYS = 16
#: At most so many readings that leave words out go before the guesses.
_LOOSE = 4
#: Differences of score that count as one step of likelihood (e-fold).
_TEMPERATURE = 0.1
#: How much the surer and less sure places to cut count.
_CUTS = 0.3
#: What a fragment gains that a tool fits clearly: a good cut makes clear fragments.
_CLARITY, _CLEAR_FIT = 4.0, 0.3
#: What it costs to do the same to a result once more.
_AGAIN = 1.5
#: A fit below this is a guess: of 220 trial tasks two right ones lie below it, of a dozen tasks
#: that no tool can do all but one.
_LEAST_FIT = 0.145
#: Words that turn a meaning round, or offer a choice.
_TURNING = re.compile(
    r"(?i)\b(?:except|but not|but (?:do|does) not|neither|nor|unless|other than|apart from|do not"
    r"|does not|is not|are not|not|never|\w+n't|or|(?:contain(?:s|ing)?|ha(?:ve|s|ving)) no"
    r"(?! header))\b|除了|以外|不要(?!表头)|不包含|不含|或者?"
)
#: A goal more than the task names new files costs this much: a hidden step must be wanted.
_EXTRA_GOAL = 0.5
#: E-folds that one point of penalty costs.
_PENALTY = 6.0
#: What each wording costs that speaks for another tool and that the chosen one does not explain.
_UNEXPLAINED = 1.0
#: What each condition costs that a reading leaves out of account.
_UNMINDED = 2.0
#: What an operation that the second reader understood gains.
_AGREED = 3.0
#: From an operation of `loop.wording` to the tools that can carry it out.
_TOOLS_FOR: dict[str, frozenset[str]] = {
    "keep_lines": frozenset({"filter_lines"}),
    "drop_lines": frozenset({"remove_lines"}),
    "drop_empty": frozenset({"remove_empty_lines"}),
    "count_lines": frozenset({"count_lines"}),
    "count_kept": frozenset({"count_matching_lines"}),
    "count_words": frozenset({"count_words"}),
    "count_unique": frozenset({"count_unique_lines", "count_lines"}),
    "count_chars": frozenset({"count_characters"}),
    "count_files": frozenset({"count_files"}),
    "sort": frozenset({"sort_lines"}),
    "first": frozenset({"first_lines"}),
    "last": frozenset({"last_lines"}),
    "unique": frozenset({"unique_lines"}),
    "tally": frozenset({"count_each_line"}),
    "upper": frozenset({"upper_case"}),
    "lower": frozenset({"lower_case"}),
    "replace": frozenset({"replace_text"}),
    "reverse": frozenset({"reverse_lines"}),
    "join": frozenset({"join_files"}),
    "stack": frozenset({"csv_concat"}),
    "list_files": frozenset({"find_files"}),
    "skip": frozenset({"skip_lines"}),
    "skip_last": frozenset({"skip_lines"}),
    "longest": frozenset({"longest_line"}),
    "shortest": frozenset({"shortest_line"}),
    "number_lines": frozenset({"number_lines"}),
    "trim": frozenset({"trim_lines"}),
    "column": frozenset({"csv_column"}),
    "columns": frozenset({"csv_columns"}),
    "rows": frozenset({"csv_filter"}),
    "count_rows": frozenset({"csv_count_rows"}),
    "csv_sort": frozenset({"csv_sort"}),
    "json_get": frozenset({"json_query"}),
    "max": frozenset({"max_number", "csv_aggregate"}),
    "min": frozenset({"min_number", "csv_aggregate"}),
    "sum": frozenset({"sum_numbers", "csv_aggregate"}),
    "mean": frozenset({"average_numbers", "csv_aggregate"}),
    "json_to_csv": frozenset({"json_to_csv"}),
    "csv_to_json": frozenset({"csv_to_json"}),
}


_FILES = (Kind.FILE, Kind.NEW_FILE)


@dataclass(frozen=True, slots=True)
class _Partial:
    """A reading of the first fragments: goals so far and the files they made."""

    goals: tuple[Goal, ...] = ()
    score: float = 0.0
    made: tuple[FileInfo, ...] = ()


class Reader:
    """Reads tasks against one set of tools. Keeps the chooser, so use one per process.

    Args:
        open_chooser: Makes the chooser; called when a wording is first read by likeness.
    """

    def __init__(
        self, tools: Sequence[ToolDefinition], open_chooser: Callable[[], Chooser]
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._open_chooser = open_chooser
        self._known: dict[object, list[tuple[float, ToolDefinition, Filled, float]]] = {}
        self._pairs: dict[object, list[tuple[float, Pair, float]]] = {}

    @cached_property
    def _chooser(self) -> Chooser:
        return self._open_chooser()

    def read(self, task: str, survey: Survey, *, most: int = 40) -> Reading:
        """Every feasible reading of `task` on `survey`, best first, at most `most`.

        Where every word has a place nothing is guessed: the readings are those of the words, and
        the ways to take what they leave open.

        Raises:
            ModelError: `no_weights`, where something must be guessed.
        """
        text = re.sub(r"\s+", " ", task).strip()
        mentions = find_mentions(text, survey)
        missing = absent(text, mentions, survey)
        if missing:
            return Reading(text, (), (), problems=(missing,), missing=missing)
        ops = understand(text, mentions)
        ops = ops if minds_columns(ops, text, mentions, survey) else ()
        ranked = self._understood(text, mentions, survey)[:most] or [
            *self._loosely(text, mentions, survey),
            *self._minding(
                text, mentions, survey, self._guessed(text, mentions, survey, ops, most)
            ),
        ]
        ranked = list({candidate.key: candidate for candidate in reversed(ranked)}.values())[::-1]
        artefacts = tuple(dict.fromkeys(m.text for m in mentions if m.kind is Kind.NEW_FILE))
        return Reading(
            task=text,
            candidates=tuple(ranked),
            plan=tuple(map(in_words, ranked[0].goals)) if ranked else (),
            artefacts=artefacts,
            problems=() if ranked else tuple(_why_not(text, mentions, survey)),
            unclear=self._unclear(text, mentions, survey, ranked[0], ops) if ranked else "",
            vague=vague(text, mentions, survey, ranked[0] if ranked else None),
        )

    def _understood(
        self, text: str, mentions: Sequence[Mention], survey: Survey
    ) -> list[Candidate]:
        """What the second reader makes of the whole task, in calls; the plainest first.

        A reading that speaks of what the files do not hold, or that leaves a column unminded, is
        none.
        """
        fitting = (
            ops
            for ops in sorted(readings(text, mentions), key=len)
            if minds_columns(ops, text, mentions, survey) and fits_heads(ops, survey)
        )
        made = [each for ops in fitting for each in candidates_of(ops, text, survey, self._tools)]
        return list({candidate.key: candidate for candidate in made}.values())

    def _loosely(self, text: str, mentions: Sequence[Mention], survey: Survey) -> list[Candidate]:
        """What the second reader makes of the task without a few of its words; it stays a guess."""
        loose = loose_readings(text, mentions)
        if loose is None:
            return []
        made = [
            replace(each, why=("without " + " ".join(loose.dropped),))
            for ops in sorted(loose.readings, key=len)
            if fits_heads(ops, survey)
            for each in candidates_of(ops, text, survey, self._tools)
        ]
        return list({candidate.key: candidate for candidate in made}.values())[:_LOOSE]

    def _guessed(
        self,
        text: str,
        mentions: Sequence[Mention],
        survey: Survey,
        ops: tuple[Op, ...],
        most: int,
    ) -> list[Candidate]:
        """Feasible readings by likeness, the likeliest first."""
        self._known.clear()
        self._pairs.clear()
        found: dict[object, Candidate] = {}
        cuts = list(self._segmentations(text, mentions))
        self._score_ahead(
            text, mentions, [fragment for fragments, _ in cuts for fragment in fragments]
        )
        for fragments, weight in cuts:
            for candidate in self._read_fragments(text, mentions, survey, fragments, weight, ops):
                best = found.get(candidate.key)
                if best is None or candidate.score > best.score:
                    found[candidate.key] = candidate
        return nlargest(most, found.values(), key=lambda c: c.score)

    def _minding(
        self, text: str, mentions: Sequence[Mention], survey: Survey, guessed: Sequence[Candidate]
    ) -> list[Candidate]:
        """The likeliest readings, each condition that one leaves out of account held against it."""
        counted = [
            replace(
                each,
                score=each.score - _UNMINDED * len(self._left_out(text, mentions, survey, each)),
            )
            for each in guessed
        ]
        return sorted(counted, key=lambda candidate: -candidate.score)

    def _left_out(
        self, text: str, mentions: Sequence[Mention], survey: Survey, candidate: Candidate
    ) -> tuple[str, ...]:
        """The words, columns and cells that a candidate makes nothing of."""
        calls = [(goal.tool, goal.args) for goal in candidate.goals]
        words = unaccounted(text, mentions, calls, self._tools)
        return (*words, *unminded_cells(candidate, text, mentions, survey))

    def _unclear(
        self,
        text: str,
        mentions: Sequence[Mention],
        survey: Survey,
        best: Candidate,
        ops: Sequence[Op],
    ) -> str:
        """The words that `best` only guesses at, unless the second reader says the same.

        A goal that no tool fits is one; a word that turns a meaning round is another, since nothing
        in a likeness shows whether it was minded; so is a word that no call makes anything of.
        """
        if UNDERSTOOD in best.why or _agreement(best.goals, ops) == 1:
            return ""
        turning = _TURNING.search(text)
        if turning:
            return turning.group().strip()
        if left_out := self._left_out(text, mentions, survey, best):
            return ", ".join(left_out)
        weakest = min(best.goals, key=lambda goal: goal.fit)
        return "" if weakest.fit >= _LEAST_FIT else weakest.text

    def nearest(self, text: str, *, most: int = 8) -> tuple[str, ...]:
        """The tools whose wordings are most like `text`, best first: what a small model is offered
        when no reading is feasible, since all of them would not fit its context."""
        scores = self._chooser.scores([text])[0]
        ranked = sorted(zip(scores, self._chooser.names, strict=True), reverse=True)
        return tuple(name for _, name in ranked[:most])

    def _score_ahead(
        self, text: str, mentions: Sequence[Mention], fragments: Sequence[Fragment]
    ) -> None:
        """Embed all fragments in one go, which is several times quicker than one by one."""
        spans = dict.fromkeys((f.start, f.end) for f in fragments)
        self._chooser.scores([_asked(text, mentions, *span) for span in spans])

    def _segmentations(
        self, text: str, mentions: Sequence[Mention]
    ) -> Iterator[tuple[tuple[Fragment, ...], float]]:
        """Ways to cut in which no fragment only says where to save; each fragment set once."""
        seen: set[tuple[tuple[int, int], ...]] = set()
        for fragments, weight in segmentations(text, boundaries(text, mentions)):
            merged = _merge_saving(text, mentions, fragments)
            key = tuple((f.start, f.end) for f in merged)
            if key not in seen and len(merged) <= 6:
                seen.add(key)
                yield merged, weight

    def _read_fragments(
        self,
        text: str,
        mentions: Sequence[Mention],
        survey: Survey,
        fragments: Sequence[Fragment],
        weight: float,
        ops: tuple[Op, ...],
    ) -> Iterator[Candidate]:
        new_files = len({m.text for m in mentions if m.kind is Kind.NEW_FILE})
        if new_files > len(fragments):
            return
        beam = [_Partial()]
        for index, fragment in enumerate(fragments):
            grown = [
                longer
                for partial in beam
                for longer in self._extend(text, mentions, survey, fragment, index, partial)
            ]
            beam = nlargest(_BEAM, grown, key=lambda partial: partial.score)
            if not beam:
                return
        for partial in beam:
            if _uses_all_files(partial.goals, mentions):
                yield Candidate(partial.goals, _total(partial, weight, new_files, ops))

    def _extend(
        self,
        text: str,
        mentions: Sequence[Mention],
        survey: Survey,
        fragment: Fragment,
        index: int,
        partial: _Partial,
    ) -> Iterator[_Partial]:
        scene = _scene(text, mentions, survey, fragment, index, partial)
        for value, tool, way, score in self._ways_once(scene, fragment, partial):
            goal = _goal(tool, scene, way, score)
            made = (*partial.made, as_made(tool, way, scene)) if way.outputs else partial.made
            yield _Partial((*partial.goals, goal), partial.score + value, made)
        for value, pair, score in self._pairs_once(scene, fragment, partial):
            goals = (
                _goal(pair.first, scene, pair.choosing, score),
                _goal(pair.second, pair.scene, pair.wanted, _CLEAR_FIT),
            )
            made = (
                *partial.made,
                as_made(pair.first, pair.choosing, scene),
                as_made(pair.second, pair.wanted, pair.scene),
            )
            yield _Partial((*partial.goals, *goals), partial.score + value, made)

    def _pairs_once(
        self, scene: Scene, fragment: Fragment, partial: _Partial
    ) -> list[tuple[float, Pair, float]]:
        """(log-likelihood, pair, score) of two operations on a table that a fragment says."""
        key = ("pairs", fragment, scene.intermediate, scene.previous, partial.made)
        if key not in self._pairs:
            self._pairs[key] = list(
                self._scored_pairs(scene, self._ways_once(scene, fragment, partial))
            )
        return self._pairs[key]

    def _scored_pairs(
        self, scene: Scene, ways: Sequence[tuple[float, ToolDefinition, Filled, float]]
    ) -> Iterator[tuple[float, Pair, float]]:
        """As likely as the likelier of the two, by all the text: either may set its tone.

        That there are two is said, so the second is no hidden step that must be wanted.
        """
        scores = dict(zip(self._chooser.names, self._chooser.scores([scene.asked])[0], strict=True))
        feasible = {tool.name for _, tool, *_ in ways}
        for pair in compounds(self._tools, scene):
            score = float(max(scores[name] for name in pair.alike if name in scores))
            known = feasible | set(pair.alike)
            total = math.log(sum(math.exp(scores[name] / _TEMPERATURE) for name in known))
            penalty = pair.choosing.penalty + pair.wanted.penalty
            value = score / _TEMPERATURE - total - _PENALTY * penalty + _EXTRA_GOAL
            yield value, pair, score

    def _ways_once(
        self, scene: Scene, fragment: Fragment, partial: _Partial
    ) -> list[tuple[float, ToolDefinition, Filled, float]]:
        """`_ways`, worked out once for a fragment after the same files and the same last goal."""
        last = scene.last
        key = (
            fragment,
            scene.intermediate,
            scene.previous,
            partial.made,
            (last.tool, last.inputs, repr(last.args)) if last else None,
        )
        if key not in self._known:
            self._known[key] = self._ways(scene)
        return self._known[key]

    def _ways(self, scene: Scene) -> list[tuple[float, ToolDefinition, Filled, float]]:
        """(log-likelihood, tool, arguments, score) of the feasible ways of the best tools.

        Likelihoods are shared out among feasible tools; what a way leaves unused and what a tool
        leaves unexplained count beside that, so that they also tell a good cut from a bad one.
        """
        scores, rest = self._chooser.scores([scene.asked])[0], asks_for_rest(scene)
        feasible: list[tuple[float, str, tuple[Filled, ...]]] = []
        for score, name in sorted(zip(scores, self._chooser.names, strict=True), reverse=True):
            full = len(feasible) >= _TOOLS
            if full and not rest:
                break
            ways = fill(self._tools[name], scene)
            if ways and (not full or ways[0].penalty < 0):  # the rest is asked for by its name
                feasible.append((float(score), name, ways))
        total = math.log(sum(math.exp(score / _TEMPERATURE) for score, *_ in feasible) or 1.0)
        found = [
            (
                score / _TEMPERATURE
                - total
                - _PENALTY * way.penalty
                - _UNEXPLAINED * self._chooser.unexplained(scene.asked, name),
                self._tools[name],
                way,
                score,
            )
            for score, name, ways in feasible
            for way in ways
        ]
        return sorted(found, key=lambda each: -each[0])[:_WAYS]


def _scene(
    text: str,
    mentions: Sequence[Mention],
    survey: Survey,
    fragment: Fragment,
    index: int,
    partial: _Partial,
) -> Scene:
    inside = tuple(
        replace(m, start=m.start - fragment.start, end=m.end - fragment.start)
        for m in mentions
        if fragment.start <= m.start and m.end <= fragment.end
    )
    asked = _asked(text, mentions, fragment.start, fragment.end)
    return Scene(
        text=text[fragment.start : fragment.end],
        asked=asked,
        veiled=veiled(asked),
        mentions=inside,
        survey=survey,
        previous=tuple(name for goal in reversed(partial.goals) for name in goal.outputs),
        before=partial.goals,
        sequel=fragment.sequel,
        made={info.name: info for info in partial.made},
        intermediate=f"{WORK}{index + 1}.txt",
        answer="" if _names_target(mentions) or fragment.end < len(text) - 3 else ANSWER,
    )


def _asked(text: str, mentions: Sequence[Mention], start: int, end: int) -> str:
    """What a fragment asks for, without remarks; file names that are no plain words made so."""
    parts, at = [], start
    for m in mentions:
        plain = re.fullmatch(r"[\w./-]+\.\w+", m.text, re.ASCII)
        if m.kind in _FILES and start <= m.start and m.end <= end and not plain:
            ending = m.text.rpartition(".")[2] if "." in m.text else "txt"
            parts += [text[at : m.start], f" x.{ending} "]
            at = m.end
    return without_remarks("".join([*parts, text[at:end]]))


def _names_target(mentions: Sequence[Mention]) -> bool:
    return any(m.kind is Kind.NEW_FILE or m.is_target for m in mentions)


def _goal(tool: ToolDefinition, scene: Scene, way: Filled, score: float) -> Goal:
    why = (f"{tool.name} {score:.2f}", *((f"cost {way.penalty:.2f}",) if way.penalty else ()))
    return Goal(
        text=scene.text,
        tool=tool.name,
        args=way.args,
        inputs=way.inputs,
        outputs=way.outputs,
        score=score - way.penalty,
        fit=max(score, _CLEAR_FIT) if way.penalty < 0 else score,  # asked for in so many words
        why=why,
    )


def _merge_saving(
    text: str, mentions: Sequence[Mention], fragments: Sequence[Fragment]
) -> tuple[Fragment, ...]:
    """Join each fragment that only saves or describes to the one before it."""
    merged: list[Fragment] = []
    for fragment in fragments:
        own = _names_source(mentions, fragment)
        if merged and not own and belongs_to_last(_words(text, mentions, fragment)):
            merged[-1] = replace(merged[-1], end=fragment.end)
        else:
            merged.append(fragment)
    return tuple(merged)


def _names_source(mentions: Sequence[Mention], fragment: Fragment) -> bool:
    """Whether a fragment reads a file of its own: then it does more than save."""
    return any(
        m.kind is Kind.FILE and not m.is_target
        for m in mentions
        if fragment.start <= m.start and m.end <= fragment.end
    )


def _words(text: str, mentions: Sequence[Mention], fragment: Fragment) -> str:
    """The fragment with its file names taken out."""
    parts, at = [], fragment.start
    for m in mentions:
        if m.kind in _FILES and fragment.start <= m.start and m.end <= fragment.end:
            parts.append(text[at : m.start])
            at = m.end
    return " ".join([*parts, text[at : fragment.end]])


def _uses_all_files(goals: Sequence[Goal], mentions: Sequence[Mention]) -> bool:
    """Whether every new file is the output of exactly one goal and every named input is read."""
    outputs = [name for goal in goals for name in goal.outputs]
    wanted = {m.text for m in mentions if m.kind is Kind.NEW_FILE}
    return all(outputs.count(name) == 1 for name in wanted)


def _total(partial: _Partial, weight: float, new_files: int, ops: Sequence[Op]) -> float:
    """Mean score of the goals, the weight of the cuts, and what hidden steps cost."""
    extra = max(0, len(partial.goals) - max(new_files, 1))
    agreed = _AGREED * _agreement(partial.goals, ops)
    again = sum(
        goal.tool == before.tool and goal.inputs == before.outputs
        for before, goal in pairwise(partial.goals)
    )
    clear = _CLARITY * sum(goal.fit - _CLEAR_FIT for goal in partial.goals)
    return partial.score + _CUTS * weight - _EXTRA_GOAL * extra + clear + agreed - _AGAIN * again


def _agreement(goals: Sequence[Goal], ops: Sequence[Op]) -> float:
    """The share of the second reader's operations that the goals carry out, in their order."""
    if not ops or len(ops) != len(goals):
        return 0.0
    return sum(_agrees(goal, op) for goal, op in zip(goals, ops, strict=True)) / len(ops)


def _agrees(goal: Goal, op: Op) -> bool:
    if goal.tool not in _TOOLS_FOR.get(op.kind, ()) or goal.outputs != (op.output,):
        return False
    if op.inputs and goal.inputs != op.inputs:
        return False
    return all(_same_value(goal.args, key, value) for key, value in op.args.items())


def _same_value(args: Mapping[str, object], key: str, value: object) -> bool:
    if key in ("columns", "ext"):
        return True
    return str(args.get(key, "")).casefold() == str(value).casefold()


def in_words(goal: Goal) -> str:
    """One goal as a short line: the tool, what it reads, its settings and what it writes."""
    settings = ", ".join(
        f"{key}={value!r}"
        for key, value in goal.args.items()
        if value not in goal.inputs and value not in goal.outputs and value != list(goal.inputs)
    )
    reads = " from " + ", ".join(goal.inputs) if goal.inputs else ""
    writes = " into " + ", ".join(goal.outputs) if goal.outputs else ""
    return f"{goal.tool.replace('_', ' ')}{f' ({settings})' if settings else ''}{reads}{writes}"


def _why_not(text: str, mentions: Sequence[Mention], survey: Survey) -> Iterator[str]:
    if not survey.files:
        yield "the folder is empty: there is nothing to work on"
        return
    if not any(m.kind is Kind.FILE for m in mentions):
        yield f"the task names no file of the folder (it has {', '.join(survey.names[:5])})"
    yield "no capability fits the task with what it names; say what to do with which file"
