"""Would the acceptance have rejected every different result? Computed, never asserted.

Two ways lead to *strong*. Either a second, independent reading of the wording gives the same
result, on the real files and on witness files made so that different operations differ. Or every
feasible rival that gives something else, and every built-in bad result, fails the person's rules.
Everything else is *weak*, with what survived in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from loop.mentions import find_mentions
from loop.minded import minds_columns
from loop.reference import OpenQuestionError, UnfitError, expected, same
from loop.values import RuleData, Strength, Survey
from loop.wording import Op, readings

#: File contents by name, relative to the workspace.
Files = Mapping[str, bytes]
#: Runs a workflow on files; its result files, or None when it failed.
RunOn = Callable[[Files], Files | None]
#: Whether rules hold in a folder with these files.
Accepts = Callable[[Sequence[RuleData], Files], bool]
_MOST_SURVIVORS = 3
_LIKENESS = "the wording was understood by likeness only"
_ANOTHER = "a second reading of the task gives another"


@dataclass(frozen=True, slots=True)
class Rival:
    """Another reading of the task, named by its tools."""

    name: str
    run: RunOn


def measure(
    task: str,
    survey: Survey,
    files: Files,
    rules: Sequence[RuleData],
    final: RunOn,
    rivals: Sequence[Rival],
    accepts: Accepts,
    *,
    doubts: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Strength:
    """How much the acceptance of `final`'s result on `files` is worth.

    Args:
        files: The input files as they were before the run.
        rules: The person's own rules; a capability's contract is no help against a wrong tool.
        final: The accepted workflow.
        doubts: What makes the acceptance weak whatever the results are.
        left_out: Words of the task that `final` makes nothing of. Only a second reading that gives
            the same result shows that nothing hangs on them.
    """
    result = final(files)
    if not result:
        return Strength(False, (*doubts,) or ("the accepted workflow left no result to compare",))
    reasons = tuple(_second_reading(task, survey, files, final, result))
    if not reasons:
        return Strength(not doubts, (*doubts,))
    if reasons != (_LIKENESS,):
        left_out = ()  # every word has its place in a reading
    survivors = tuple(_survivors(files, rules, result, rivals, accepts))
    if rules and rivals and not survivors and not left_out:
        return Strength(not doubts, (*doubts,))
    unused = (f"this part of the task was not used: `{', '.join(left_out)}`",) if left_out else ()
    disputed = next((reason for reason in reasons if reason.startswith(_ANOTHER)), "")
    why = (*doubts, *unused, *reasons, *survivors[:_MOST_SURVIVORS])
    return Strength(False, why, disputed)


def _second_reading(
    task: str, survey: Survey, files: Files, final: RunOn, result: Files
) -> Iterator[str]:
    """Why the independent reading does not vouch for the result; nothing when it does."""
    mentions = find_mentions(task, survey)
    found = [ops for ops in readings(task, mentions) if _fits(ops, files)]
    if found and not all(minds_columns(ops, task, mentions, survey) for ops in found):
        yield "a column that the wording names is not minded"
    if not found:
        yield _LIKENESS
        return
    for ops in found:
        yield from _as_read(ops, files, final, result)


def _fits(ops: Sequence[Op], files: Files) -> bool:
    """Whether what a reading speaks of is there at all, such as a column of that name."""
    try:
        expected(ops, files)
    except UnfitError:
        return False
    except OpenQuestionError:
        return True
    return True


def _as_read(ops: Sequence[Op], files: Files, final: RunOn, result: Files) -> Iterator[str]:
    """Why one independent reading does not vouch for the result."""
    for op in ops:
        if op.args.get("needle") and not _occurs(op, files):
            yield f"`{op.args['needle']}` occurs nowhere in {op.inputs[0]}"
    try:
        wanted = expected(ops, files)
    except OpenQuestionError as question:
        yield f"the wording leaves something open: {question}"
        return
    for name, content in wanted.items():
        if name not in result:
            yield f"{name} is missing"
        elif not same(content, result[name]):
            shown = _difference(content, result[name])
            yield f"{_ANOTHER} {name}: {shown}"
    yield from _witnesses(ops, files, final)


def _occurs(op: Op, files: Files) -> bool:
    """Whether the text that an operation looks for is in its input (or in any file)."""
    needle = str(op.args["needle"]).encode()
    texts = [files[name] for name in op.inputs if name in files] or list(files.values())
    return any(needle in text for text in texts)


def _witnesses(ops: Sequence[Op], files: Files, final: RunOn) -> Iterator[str]:
    """Compare on changed inputs; a witness that the wording leaves open says nothing."""
    inputs = {name for op in ops for name in op.inputs if name in files}
    for title, change in _CHANGES:
        witness = {name: change(data) if name in inputs else data for name, data in files.items()}
        if witness == files:
            continue
        try:
            wanted = expected(ops, witness)
        except OpenQuestionError:
            continue
        got = final(witness) or {}
        for name, content in wanted.items():
            if not same(content, got.get(name, b"")):
                yield f"with {title} a second reading gives another {name}"
                return


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n") if data else []


def _text(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _repeat_first(data: bytes) -> bytes:
    if data.lstrip()[:1] in (b"[", b"{"):
        return data
    lines = _lines(data)
    return _text([*lines, *lines[-1:], *lines[1:2]])


def _turn_round(data: bytes) -> bytes:
    """Lines in another order; a table keeps its first line."""
    if data.lstrip()[:1] in (b"[", b"{"):
        return data
    lines = _lines(data)
    if lines and b"," in lines[0]:
        return _text([lines[0], *lines[1:][::-1]])
    return _text(lines[1:] + lines[:1])


def _add_blank(data: bytes) -> bytes:
    lines = _lines(data)
    if data.lstrip()[:1] in (b"[", b"{") or (lines and b"," in lines[0]):
        return data
    return _text([*lines[:1], b"", *lines[1:]])


def _add_capital(data: bytes) -> bytes:
    lines = _lines(data)
    if data.lstrip()[:1] in (b"[", b"{") or (lines and b"," in lines[0]):
        return data
    return _text([*lines, *(line.swapcase() for line in lines[:1])])


#: Changes to an input that make different operations differ.
_CHANGES: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("a line repeated", _repeat_first),
    ("the lines in another order", _turn_round),
    ("a blank line", _add_blank),
    ("a line in other letters", _add_capital),
)


def _survivors(
    files: Files,
    rules: Sequence[RuleData],
    result: Files,
    rivals: Sequence[Rival],
    accepts: Accepts,
) -> Iterator[str]:
    """Different results that the person's rules would have let pass."""
    changed = any(not same(files.get(name, b""), data) for name, data in result.items())
    if rules and changed and accepts(rules, files):
        yield "doing nothing would pass as well"
    for title, bad in _bad_results(files, result):
        if accepts(rules, {**files, **bad}):
            yield f"{title} would pass as well"
    for rival in rivals:
        other = rival.run(files)
        if other is None or all(same(other.get(n, b""), data) for n, data in result.items()):
            continue
        if accepts(rules, {**files, **other}):
            name = next(n for n, data in result.items() if not same(other.get(n, b""), data))
            found = _difference(result[name], other.get(name, b""))
            yield f"`{rival.name}` would pass as well, with another {name}: {found}"


def _bad_results(files: Files, result: Files) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What a lazy or broken step leaves behind."""
    for name, data in result.items():
        lines = _lines(data)
        yield f"an empty {name}", {**result, name: b""}
        if data.strip().isdigit():
            yield f"a wrong number in {name}", {**result, name: b"%d\n" % (int(data) + 1)}
        if len(lines) > 1:
            yield f"{name} without its last line", {**result, name: _text(lines[:-1])}
            if lines[::-1] != lines:
                yield f"{name} in another order", {**result, name: _text(lines[::-1])}
        for source, content in files.items():
            if not same(content, data) and content:
                yield f"a mere copy of {source}", {**result, name: content}


def _difference(wanted: bytes, got: bytes) -> str:
    """The first line in which two results differ, both shown."""
    ours, theirs = _lines(wanted), _lines(got)
    for index in range(max(len(ours), len(theirs))):
        one = ours[index] if index < len(ours) else b"(nothing)"
        other = theirs[index] if index < len(theirs) else b"(nothing)"
        if one != other:
            return f"line {index + 1} is {_shown(one)}, not {_shown(other)}"
    return "they differ in their final newline"


def _shown(line: bytes) -> str:
    return _visible(line.decode("utf-8", "replace")[:60])


def _visible(text: str) -> str:
    """`text` in backticks with control characters made visible."""
    return "`" + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + "`"
