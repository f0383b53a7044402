"""Solved workflows as templates: the same task with other literals is drafted at once.

A template is one YAML file of OPENRY_HOME/templates: the task with its literals taken out, and the
workflow they stand in. A draft from it is run and judged like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loop.apply import data_of, dump, read_workflow
from loop.order import file_name
from openry.errors import BadFileError, NotFoundError, OpenRYError, UsageError

#: What of a task may be another one the next time: quoted texts, file names, numbers.
_SLOT = re.compile(
    r"(?P<text>'[^'\n]+'|\"[^\"\n]+\"|`[^`\n]+`|“[^”\n]+”|「[^」\n]+」)"
    r"|(?P<file>(?<![\w/.-])(?:[\w*-]+/)*[\w*-]+(?:\.[\w*-]+)*\.[A-Za-z]\w{0,7}(?![\w/]))"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?![\w]))"
)
_QUOTES = "'\"`“”「」"


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A task with its literals taken out: `count {file} into {file}`, and what they were."""

    words: str
    slots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A solved task.

    Attributes:
        task: The task as it was solved.
        workflow: Its workflow's text.
        session: The session that solved it; empty for a file of a person's.
    """

    name: str
    task: str
    workflow: str
    session: str = ""

    def to_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "task": self.task,
            "session": self.session,
            "workflow": self.workflow,
        }


def skeleton(task: str) -> Skeleton:
    """The task's words and its literals.

    >>> skeleton("Count the lines with 'ERROR' in app.log").words
    'count the lines with {text} in {file}'
    """
    slots: list[str] = []

    def taken(match: re.Match[str]) -> str:
        slots.append(match[0].strip(_QUOTES))
        return "{" + str(match.lastgroup) + "}"

    words = " ".join(_SLOT.sub(taken, task).lower().split()).rstrip(".!。")
    return Skeleton(words, tuple(slots))


def filled(template: Template, task: str) -> str | None:
    """The workflow for `task`, if it is the template's but for its literals; else None.

    A literal that stood for two things that now differ leaves open which is meant: None as well.
    """
    old, new = skeleton(template.task), skeleton(task)
    if old.words != new.words:
        return None
    swaps: dict[str, str] = {}
    for before, after in zip(old.slots, new.slots, strict=True):
        if swaps.setdefault(before, after) != after:
            return None
    data = _swapped(data_of(template.workflow), swaps)
    return dump({**data, "description": task} if "description" in data else data)


def find(folder: Path, task: str) -> tuple[Template, str] | None:
    """The first template that fits `task`, and the workflow it makes."""
    for template in load_all(folder):
        text = filled(template, task)
        if text is not None:
            return template, text
    return None


def add(folder: Path, template: Template) -> Path:
    """Keep a template.

    Raises:
        UsageError: The name is taken, or no literal of the task is in the workflow.
    """
    path = folder / f"{template.name}.yaml"
    if path.exists():
        raise UsageError(f"template `{template.name}` exists already: choose another `--name`")
    used = [slot for slot in skeleton(template.task).slots if slot in template.workflow]
    if not used:
        raise UsageError(
            "nothing of the task (file names, quoted texts, numbers) stands in the workflow,"
            " so a template of it would do the same whatever it is asked"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(_written(template), "utf-8")
    return path


def remove(folder: Path, name: str) -> None:
    """Forget a template.

    Raises:
        NotFoundError: There is none of that name.
    """
    known = {template.name for template in load_all(folder)}
    if name not in known:
        there = ", ".join(f"`{each}`" for each in sorted(known)) or "none"
        raise NotFoundError(f"no template is called `{name}` (there are {there})")
    (folder / f"{name}.yaml").unlink()


def load_all(folder: Path) -> tuple[Template, ...]:
    """All templates by name; files that are none are passed over."""
    found = []
    for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
        try:
            found.append(_read(path))
        except (OpenRYError, OSError, ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def name_for(task: str, given: str = "") -> str:
    """A template's name: the given one, else the first words of the task.

    Raises:
        BadFileError: The given one cannot be a file's name.
    """
    if given and file_name(given) != given:
        raise BadFileError(f"`{given}` cannot be a name: use letters, digits, `-`, `_` and `.`")
    words = re.findall(r"[a-z0-9]+", skeleton(task).words)[:6]
    return given or "-".join(words) or "template"


def _written(template: Template) -> str:
    from openry.orchestrator.canonical import entry_lines

    lines = [
        line for key, value in template.to_data().items() for line in entry_lines(key, value, 0)
    ]
    return "\n".join(lines) + "\n"


def _read(path: Path) -> Template:
    from openry.orchestrator import yaml12

    data = yaml12.plain(yaml12.compose(path.read_text("utf-8"), str(path)).data)
    template = Template(
        path.stem, str(data["task"]), str(data["workflow"]), str(data.get("session") or "")
    )
    read_workflow(template.workflow, str(path))
    return template


def _swapped(value: Any, swaps: Mapping[str, str]) -> Any:
    """`value` with every literal that stands by itself in its texts replaced, all at once."""
    if isinstance(value, dict):
        return {key: _swapped(inner, swaps) for key, inner in value.items()}
    if isinstance(value, list):
        return [_swapped(inner, swaps) for inner in value]
    if isinstance(value, str):
        return _pattern(tuple(swaps)).sub(lambda match: swaps[match[0]], value)
    if isinstance(value, int | float) and not isinstance(value, bool) and str(value) in swaps:
        number = swaps[str(value)]
        return float(number) if "." in number else int(number)
    return value


def _pattern(literals: Sequence[str]) -> re.Pattern[str]:
    words = sorted(map(re.escape, literals), key=len, reverse=True)
    return (
        re.compile(rf"(?<![\w.])(?:{'|'.join(words)})(?![\w]|\.\w)")
        if words
        else re.compile(r"(?!)")
    )
