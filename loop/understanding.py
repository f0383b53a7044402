"""What the loop makes of an order before anything runs: survey, reading, plan, acceptance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loop.acceptance import rule_words, settle
from loop.apply import read_workflow
from loop.mentions import Kind, find_mentions
from loop.order import GROUNDED, Order, file_name, slug
from loop.second import second_reading
from loop.values import Acceptance, Reading, Survey
from openry.errors import UsageError

if TYPE_CHECKING:
    from loop.kit import Kit


@dataclass(frozen=True, slots=True)
class Understood:
    """An order with everything that can be known of it beforehand.

    Attributes:
        name: The workflow's: the chosen one, its own, or the first words of the task.
        plan: What will be done, in short sentences; of a given workflow its own steps.
        wanted: What a second, independent reading computes; empty where it is not sure.
    """

    name: str
    survey: Survey
    reading: Reading
    plan: tuple[str, ...]
    acceptance: Acceptance
    wanted: Mapping[str, bytes]

    def to_event(self) -> dict[str, Any]:
        """What a person is shown before the first run."""
        acceptance = self.acceptance
        return {
            "plan": list(self.plan),
            "acceptance": {
                "origin": acceptance.origin,
                "hard": [rule_words(rule) for rule in acceptance.hard],
                "soft": [f"{path} is what a second reading gives" for path in self.wanted],
            },
            "assumed": list(self.reading.problems),
        }


def understand(
    kit: Kit,
    order: Order,
    folder: Path,
    sealed: Acceptance | None = None,
    made: Collection[str] = (),
) -> Understood:
    """What `order` means in `folder`, a copy of the person's.

    Args:
        sealed: The acceptance of a session that began earlier; it stays.
        made: Files of `folder` that are to be taken for new ones.

    Raises:
        UsageError: The task cannot be carried out as it is worded.
        BadFileError: The workflow to start from is wrong.
        ModelError: `no_weights`, where the reading is needed.
    """
    own = read_workflow(order.source, order.source_file) if order.source else None
    survey = kit.survey(folder)
    survey = replace(survey, files=tuple(one for one in survey.files if one.name not in made))
    if own is None and not order.accept:
        refuse_if_vague(order.task, survey)
    reading = kit.read(order, survey)
    if own is None:
        refuse_if_nameless(reading, grounded=order.strategy == GROUNDED)
    acceptance = sealed or settle(reading, order.accept)
    if own is None and order.strategy == GROUNDED and not reading.candidates:
        refuse_if_unjudged(reading, acceptance)
    name = order.name or slug(order.task)
    plan = reading.plan
    if own is not None:
        name = order.name or file_name(str(own.get("name") or ""))
        plan = tuple(f"{step['id']}: {_said_of(step)}" for step in own["sub_steps"])
    if own is None and not order.accept and order.strategy == GROUNDED:
        refuse_if_unclear(reading)
    wanted = second_reading(reading.task, survey, folder)
    return Understood(name, survey, reading, plan, acceptance, wanted)


def refuse_if_vague(task: str, survey: Survey) -> None:
    """Raises UsageError when a task names no file though the folder leaves a choice."""
    kinds = {mention.kind for mention in find_mentions(task, survey)}
    if len(survey.files) == 1 or kinds & {Kind.FILE, Kind.NEW_FILE, Kind.EXTENSION}:
        return
    there = f"it has {', '.join(survey.names[:5])}" if survey.files else "it is empty"
    raise UsageError(
        f"the task names no file: say which file of the folder to read and which to write ({there})"
    )


def refuse_if_nameless(reading: Reading, *, grounded: bool) -> None:
    """Raises UsageError when a file to read is not there, or nothing tells which one it is.

    A planner that drafts freely makes its own of a task that names no file.
    """
    sentence = reading.missing or (reading.vague if grounded else "")
    if sentence:
        raise UsageError(sentence)


def refuse_if_unclear(reading: Reading) -> None:
    """Raises UsageError when a part of the task is like nothing that the tools are asked with.

    Without checks of the person's own, nobody would notice that the result is not what was meant.
    """
    if reading.unclear:
        raise UsageError(
            f"`{reading.unclear}` was not understood: say it as a chore with files (count, sort,"
            " keep lines, take a column …), or state `--accept` with what must hold at the end"
        )


def refuse_if_unjudged(reading: Reading, acceptance: Acceptance) -> None:
    """Raises UsageError when no tool fits and nothing says what a right result would be."""
    if acceptance.hard:
        return
    why = reading.problems[0] if reading.problems else "it names no result file"
    raise UsageError(
        f"the task cannot be carried out as it is worded: {why};"
        " name the file to read and the file to write, or state `--accept`"
    )


def seal(stored: Mapping[str, Any]) -> str:
    """The hash that says whether an acceptance is still the one that was agreed.

    It is of what is stored, as it stands: older sessions stored more than is read today.
    """
    text = json.dumps(stored, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def unsealed(row: Mapping[str, Any]) -> Acceptance:
    """The acceptance of a session in the journal.

    Raises:
        UsageError: It is not the one that was sealed.
    """
    stored = row["acceptance"]
    if seal(stored) != row["acceptance_hash"]:
        raise UsageError(
            f"the acceptance of session `{row['session_id']}` was changed after it was sealed;"
            " start the task anew"
        )
    return Acceptance(tuple(stored["hard"]), row["acceptance_origin"])


def _said_of(step: Mapping[str, Any]) -> str:
    """One step in a line."""
    words = step.get("command") or step.get("description") or step.get("capability") or ""
    return " ".join(str(words).split())[:100]
