"""Read a workflow or composition: either a spec, or every problem of the file at once.

Nothing here raises over what a file says. Shape comes from the models of `spec`, meaning across
keys (routes, ids, what a kind needs) from `checks`, places from `yaml12`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from openry.errors import BadFileError
from openry.files import must_be_file
from openry.models import Problem
from openry.orchestrator import checks, yaml12
from openry.orchestrator.report import visible
from openry.orchestrator.rules import RULE_TYPES, Rule, read_rules
from openry.orchestrator.shape import Model
from openry.orchestrator.spec import Composition, PromptBlock, WorkflowSpec
from openry.texts import did_you_mean

MAX_FILE_BYTES = yaml12.MAX_EXPANDED_BYTES
Where = tuple[str | int, ...]
_NONE: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a text says: a workflow or a composition, unless a problem of level `error` stands.

    Attributes:
        text: The text as read, without a byte order mark.
        path: Where it came from; None for text.
    """

    workflow: WorkflowSpec | None
    composition: Composition | None
    problems: tuple[Problem, ...]
    text: str
    file: str = "<text>"
    path: Path | None = None

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.level == "error")

    @property
    def ok(self) -> bool:
        return not self.errors

    def required(self) -> Loaded:
        """This, if nothing is wrong with it.

        Raises:
            BadFileError: With every problem, one a line.
        """
        if self.errors:
            raise BadFileError("", tuple(map(str, self.errors)))
        return self


def load(
    source: Path | str,
    *,
    file: str = "<text>",
    refs: Collection[str] = (),
    capabilities: Collection[str] | None = None,
) -> Loaded:
    """Read a file (`Path`) or a text (`str`).

    Args:
        refs: Other workflows that a route may lead to; beside a file, those in its folder count
            as well.
        capabilities: The names that are registered; None leaves them unchecked.
    """
    path = source if isinstance(source, Path) else None
    text, problems = str(source), _NONE
    if path is not None:
        file = str(path) if file == "<text>" else file
        text, problems = _read(path, file)
    if problems:
        return Loaded(None, None, problems, text, file, path)
    document = yaml12.compose(text, file)
    if document.root is None:
        return Loaded(None, None, _in_order(document.problems), text, file, path)
    return _load_document(document, text, path, refs, capabilities)


def _read(path: Path, file: str) -> tuple[str, tuple[Problem, ...]]:
    try:
        must_be_file(path)
        with path.open("rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        return "", (Problem(file, 0, f"cannot be read: {why}"),)
    if len(raw) > MAX_FILE_BYTES:
        return "", (Problem(file, 0, "larger than 10 MB"),)
    return yaml12.decode(raw, file)


def _load_document(
    document: yaml12.Document,
    text: str,
    path: Path | None,
    refs: Collection[str],
    capabilities: Collection[str] | None,
) -> Loaded:
    file, data = document.file, document.data
    if not isinstance(data, dict):
        found = Problem(file, 1, "a workflow is a mapping with `name` and `sub_steps`")
        return Loaded(None, None, (*document.problems, found), text, file, path)
    if path is not None and data.get("name") is None:
        data["name"] = path.stem
    is_composition = "big_steps" in data and "sub_steps" not in data
    model: type[WorkflowSpec] | type[Composition] = Composition if is_composition else WorkflowSpec
    value, found_problems = read_model(model.model_validate, data, document)
    known = {*refs, *(_neighbours(path) if path else ())}
    check = checks.composition if is_composition else checks.workflow
    found_problems += check(data, document, known, path.parent if path else None)
    if capabilities is not None:
        found_problems += checks.capabilities(data, document, capabilities)
    problems = _in_order((*document.problems, *found_problems))
    broken = any(problem.level == "error" for problem in problems)
    workflow = value if isinstance(value, WorkflowSpec) and not broken else None
    if workflow is not None and path is not None:
        workflow = _with_prompt_files(workflow, path.parent)
    composition = value if isinstance(value, Composition) and not broken else None
    return Loaded(workflow, composition, problems, text, file, path)


def _with_prompt_files(workflow: WorkflowSpec, folder: Path) -> WorkflowSpec:
    """Prompt files that lie beside the workflow get their full path, wherever it will run."""
    steps = []
    for step in workflow.sub_steps:
        blocks = tuple(_placed(block, folder) for block in step.prompt_blocks)
        same = blocks == step.prompt_blocks
        steps.append(step if same else step.model_copy(update={"prompt_blocks": blocks}))
    return workflow.model_copy(update={"sub_steps": tuple(steps)})


def _placed(block: PromptBlock, folder: Path) -> PromptBlock:
    found = checks.prompt_file(block.path, folder) if block.path else None
    return block if found is None else block.model_copy(update={"path": str(found)})


def _neighbours(path: Path) -> Iterable[str]:
    """Names of the workflows that lie where this one does."""
    folders = (path.parent, path.parent.parent / "workflows", path.parent.parent / "compositions")
    for folder in folders:
        try:
            yield from (p.stem for p in folder.iterdir() if p.suffix in (".yaml", ".yml"))
        except OSError:
            continue


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    unique = dict.fromkeys(map(visible, problems))
    return tuple(sorted(unique, key=lambda problem: problem.line))


def load_rules(
    source: Path | str, *, file: str = "<text>"
) -> tuple[tuple[Rule, ...], tuple[Problem, ...]]:
    """Read a YAML or JSON list of validation rules."""
    text, problems = str(source), _NONE
    if isinstance(source, Path):
        file = str(source) if file == "<text>" else file
        text, problems = _read(source, file)
    if problems:
        return (), problems
    document = yaml12.compose(text, file)
    if document.root is None:
        return (), _in_order(document.problems)
    data = document.data
    if isinstance(data, dict):
        data = data.get("validation") or data.get("accept") or [data]
    rules, found = read_model(read_rules(), data, document)
    problems = _in_order((*document.problems, *found))
    return (rules or ()) if not problems else (), problems


def read_model(
    read: Callable[..., Any], data: Any, document: yaml12.Document
) -> tuple[Any, list[Problem]]:
    """What `read` makes of `data`, e.g. a model's `model_validate`, and all it complains of."""
    shapes: dict[int, type[Model]] = {}
    value: Any = None
    problems: list[Problem] = []
    try:
        value = read(data, context={"shapes": shapes})
    except ValidationError as error:
        details = [dict(detail) for detail in error.errors(include_url=False)]
        # A tuple that lost its bad items is "too short"; the items' own errors say it better.
        real = (d for d in details if d["type"] != "too_short" or not d["input"])
        problems += [_problem(detail, data, document, shapes) for detail in real]
    problems += _foreign(data, (), document, shapes)
    return value, problems


def _foreign(
    data: Any, where: Where, document: yaml12.Document, shapes: dict[int, type[Model]]
) -> list[Problem]:
    """A warning for each key that other tools of the language act on and we do not."""
    found: list[Problem] = []
    if isinstance(data, dict):
        cls = shapes.get(id(data))
        for key, value in data.items():
            if cls is not None and key in cls.foreign_keys:
                said = f"`{key}` is understood by other tools and has no effect here"
                found.append(
                    Problem(document.file, document.line((*where, key)), said, level="warning")
                )
            found += _foreign(value, (*where, key), document, shapes)
    elif isinstance(data, list):
        for place, value in enumerate(data):
            found += _foreign(value, (*where, place), document, shapes)
    return found


def _problem(
    detail: dict[str, Any], data: Any, document: yaml12.Document, shapes: dict[int, type[Model]]
) -> Problem:
    """A pydantic error as a sentence with its line."""
    where, holder = _locate(detail, data)
    message, hint = _sentence(detail, where, holder, shapes)
    return Problem(document.file, document.line(where), message, hint)


def _locate(detail: dict[str, Any], data: Any) -> tuple[Where, Any]:
    """The path in the data that an error is about, and the value that holds its last part.

    Pydantic's own path also names union branches; those are no keys and fall out.
    """
    node, holder = data, data
    where: list[str | int] = []
    last = len(detail["loc"]) - 1
    for place, part in enumerate(detail["loc"]):
        inside = (isinstance(node, dict) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        )
        if inside:
            holder, node = node, node[part]
            where.append(part)
        elif place == last and detail["type"] == "missing":
            return (*where, part), node
    return tuple(where), holder


_WANTED = {
    "string_type": "text", "int_type": "a whole number", "int_parsing": "a whole number",
    "int_from_float": "a whole number", "float_type": "a number", "float_parsing": "a number",
    "bool_type": "true or false", "bool_parsing": "true or false", "list_type": "a list",
    "tuple_type": "a list", "dict_type": "a mapping", "model_type": "a mapping",
    "model_attributes_type": "a mapping", "finite_number": "a finite number",
    "number_expected": "a number",
}  # fmt: skip
_BOUNDS = {
    "greater_than": ("greater than", "gt"), "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"), "less_than_equal": ("at most", "le"),
}  # fmt: skip


def _sentence(
    detail: dict[str, Any], where: Where, holder: Any, shapes: dict[int, type[Model]]
) -> tuple[str, str]:
    kind, given, ctx = detail["type"], detail.get("input"), detail.get("ctx", {})
    key = _label(where)
    if kind == "missing":
        return f"missing `{where[-1]}`", ""
    if kind == "extra_forbidden":
        return _unknown_key(str(where[-1]), holder, where, shapes)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _no_such_rule(given)
    if kind in ("literal_error", "enum"):
        words = [str(word) for word in _choices(ctx.get("expected", ""))]
        return f"{key} must be {' | '.join(words)}, got {_got(given)}", did_you_mean(
            str(given), words
        )
    if kind in _WANTED:
        return f"{key} must be {_WANTED[kind]}, got {_got(given)}", ""
    if kind in _BOUNDS:
        words_, bound = _BOUNDS[kind]
        return f"{key} must be {words_} {ctx.get(bound)}, got {_got(given)}", ""
    if kind in ("too_short", "string_too_short"):
        return f"{key} must not be empty", ""
    said = detail["msg"].removeprefix("Value error, ")
    return (
        f"{key}: {said}" if not said.startswith(("must", "needs", "takes")) else f"{key} {said}"
    ), ""


def _label(where: Where) -> str:
    words = [part for part in where if isinstance(part, str)]
    if not words:
        return "this"
    number = f"[{where[-1]}]" if isinstance(where[-1], int) else ""
    return f"`{words[-1]}{number}`"


def _choices(expected: str) -> list[str]:
    return [word.strip(" '") for word in expected.replace(" or ", ", ").split(",") if word.strip()]


def _got(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    return f"`{str(getattr(value, 'text', value))[:60]}`"


def _unknown_key(
    key: str, holder: Any, where: Where, shapes: dict[int, type[Model]]
) -> tuple[str, str]:
    cls = shapes.get(id(holder)) if isinstance(holder, dict) else None
    if cls is None and len(where) > 1:
        cls = RULE_TYPES.get(str(where[-2]))
    names = [] if cls is None else [info.alias or name for name, info in cls.model_fields.items()]
    return f"unknown key `{key}`", did_you_mean(key, names)


def _no_such_rule(given: Any) -> tuple[str, str]:
    if not isinstance(given, dict):
        return f"a rule is a mapping with `type`, got {_got(given)}", ""
    kind = given.get("type")
    if kind is None:
        names = ", ".join(f"`{key}`" for key in list(given)[:4])
        return f"a rule needs `type` (found only {names})" if names else "a rule needs `type`", ""
    return f"unknown rule type {_got(kind)}", did_you_mean(str(kind), RULE_TYPES)
