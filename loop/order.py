"""What a person orders: the task, its folder, its limits, and what they will accept."""

from __future__ import annotations

import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

from loop.values import RuleData
from openry.errors import BadFileError, UsageError
from openry.files import must_be_file

MAX_TASK_CHARS = 8000
#: A larger file was not meant.
MAX_FILE_BYTES = 10 * 1024**2
MAX_INSTANCES = 200
#: Strategy for models that draft freely, and for those that only choose.
STRUCTURED, GROUNDED = "structured", "grounded"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@dataclass(frozen=True, slots=True)
class Order:
    """One task as it was ordered. Survives the journal as plain data.

    Attributes:
        planner: Model that drafts and mends; `local/…` ones choose instead.
        ladder: Planners above it, asked to mend where it did not help.
        model: Model of the agent steps.
        accept: Rules the person gave; empty means they are derived.
        source: Text of the workflow to start from; empty means a new draft.
        source_file: Where that text came from.
        instances: Whole runs by which a workflow that asks models is certified.
    """

    task: str
    directory: str
    planner: str
    model: str
    rounds: int = 8
    budget_usd: float | None = None
    budget_tokens: int | None = None
    max_minutes: float | None = None
    name: str = ""
    accept: tuple[RuleData, ...] = ()
    source: str = ""
    source_file: str = ""
    require_strong: bool = False
    allow_unpriced: bool = False
    instances: int = 1
    ladder: tuple[str, ...] = ()

    @property
    def planners(self) -> tuple[str, ...]:
        """All that may be asked, from small to large."""
        return (self.planner, *self.ladder)

    @property
    def strategy(self) -> str:
        return GROUNDED if self.planner.startswith("local/") else STRUCTURED

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The order that `to_data` wrote."""
        lists = {key: tuple(data.get(key, ())) for key in ("accept", "ladder")}
        return cls(**{**data, **lists})


def checked(order: Order) -> Order:
    """`order`, if it can be carried out as far as can be seen without starting.

    Raises:
        UsageError: It cannot; one sentence says what to do.
    """
    if not order.task.strip():
        raise UsageError(
            'the task is empty: say in a sentence what to do, e.g. "count the lines of app.log'
            ' into count.txt"'
        )
    if len(order.task) > MAX_TASK_CHARS:
        raise UsageError(
            f"the task has {len(order.task):,} characters, at most {MAX_TASK_CHARS:,} are read:"
            " put the details into a file of the folder"
        )
    folder = Path(order.directory)
    if kind_of(folder) != "folder":
        what = "is not a folder" if kind_of(folder) else "does not exist"
        raise UsageError(f"`{folder}` {what}: give the folder of the task with `--dir`")
    if not order.task.isprintable() and not _printable(order.task):
        raise UsageError("the task holds control characters: type it as plain text")
    if order.rounds < 0:
        raise UsageError(f"`--rounds` must be 0 or more, got {order.rounds}")
    if not 1 <= order.instances <= MAX_INSTANCES:
        raise UsageError(f"`--instances` must be 1 to {MAX_INSTANCES}, got {order.instances}")
    limits = (
        ("--budget-usd", order.budget_usd),
        ("--budget-tokens", order.budget_tokens),
        ("--max-minutes", order.max_minutes),
    )
    for flag, limit in limits:
        if limit is not None and not 0 < limit < inf:  # also refuses nan
            raise UsageError(f"`{flag}` must be more than 0, got {limit:g}")
    if order.name and not _NAME.fullmatch(order.name):
        raise UsageError(
            f"`{order.name}` cannot be a workflow's name: use letters, digits, `-`, `_` and `.`"
        )
    return order


def read_accept(given: Sequence[str]) -> tuple[RuleData, ...]:
    """The rules of every `--accept`: a file of rules, or one rule inline.

    Raises:
        BadFileError: A rule is wrong or a file cannot be read; every problem at once.
    """
    from openry.orchestrator.rules import with_inner
    from openry.orchestrator.validation import parse_rules

    found: list[RuleData] = []
    problems: list[str] = []
    for each in given:
        if not each.strip():
            problems.append(
                "--accept: it is empty: give a rule such as `file_exists path=out.txt`, or a file"
                " of rules"
            )
            continue
        if kind_of(each) == "folder":
            problems.append(f"--accept: `{each}` is a folder: give a rule, or a file of rules")
            continue
        as_file = kind_of(each) == "file" or ("=" not in each and _looks_like_file(each))
        rules, wrong = parse_rules(Path(each) if as_file else each, "--accept")
        problems += map(str, wrong)
        found += [rule.model_dump(mode="json", exclude_unset=True) for rule in rules]
        problems += [
            f"--accept: `{path}` is not in the folder: name a file as it stands in there"
            for rule in with_inner(rules)
            for path in _paths(rule.model_dump())
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts
        ]
        if not wrong and not rules:
            problems.append(f"--accept: `{each}` holds no rule")
    if problems:
        raise BadFileError("", tuple(problems))
    return tuple(found)


def kind_of(path: str | Path) -> Literal["file", "folder", ""]:
    """What lies at a path; nothing also where the text is too long to be one.

    A device or a pipe is taken for a file: it can be read.
    """
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return ""
    return "folder" if stat.S_ISDIR(mode) else "file"


def read_text(path: Path) -> str:
    """The text of a file that a person names.

    Raises:
        BadFileError: It cannot be read, is no text, or is too large to be meant.
    """
    try:
        must_be_file(path)
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise BadFileError(f"{path}: larger than {MAX_FILE_BYTES // 1024**2} MiB")
        return raw.decode("utf-8-sig")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BadFileError(f"{path}: cannot be read: {why}") from error
    except UnicodeDecodeError as error:
        raise BadFileError(f"{path}: is not UTF-8 text") from error


def slug(task: str) -> str:
    """A workflow's name made of the first words of a task.

    >>> slug("Count the lines of app.log, then save!")
    'count-the-lines-of-app-log'
    """
    plain = unicodedata.normalize("NFKD", task).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)[:6]
    return "-".join(words)[:60] or "workflow"


def file_name(name: str) -> str:
    """`name` with what cannot stand in a file's name left out.

    >>> file_name("Weekly report / sales")
    'Weekly-report-sales'
    """
    return "-".join(re.findall(r"[\w.]+", name)).strip(".-")[:80] or "workflow"


def _paths(rule: Mapping[str, Any]) -> Iterator[str]:
    """The files that a rule names itself."""
    for key in ("path", "input", "output", "glob"):
        value = rule.get(key) or ()
        yield from (value,) if isinstance(value, str) else map(str, value)


def _looks_like_file(text: str) -> bool:
    return text.endswith((".yaml", ".yml", ".json")) or "/" in text.split(" ")[0]


def _printable(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t\r" or char == "　" for char in text)
