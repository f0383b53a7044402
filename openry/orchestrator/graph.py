"""A workflow or composition as a drawing: boxes in the file's order, arrows with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from openry.orchestrator.loader import Loaded
from openry.orchestrator.spec import (
    ABORT,
    CONTINUE,
    DONE,
    RETRY,
    RETRY_CURRENT,
    Composition,
    SubStep,
    WorkflowSpec,
)
from openry.texts import one_line

_STAY = (RETRY, RETRY_CURRENT)
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Box:
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """From one box to another, `done` or `abort`; `why` is empty for the ordinary way on."""

    start: str
    end: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    name: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """Where arrows lead that are no boxes: `done`, `abort`, other workflows."""
        known = {box.name for box in self.boxes}
        return tuple(dict.fromkeys(a.end for a in self.arrows if a.end not in known))


def graph_of(loaded: Loaded) -> Graph:
    """The boxes and arrows of a file that loaded."""
    if loaded.composition is not None:
        return _of_composition(loaded.composition)
    assert loaded.workflow is not None
    return _of_workflow(loaded.workflow)


def _of_workflow(spec: WorkflowSpec) -> Graph:
    boxes = tuple(Box(step.id, _kind(step)) for step in spec.sub_steps)
    arrows = (arrow for step in spec.sub_steps for arrow in _of_step(spec, step))
    return Graph(spec.name, boxes, tuple(dict.fromkeys(arrows)))


def _kind(step: SubStep) -> str:
    return f"{step.kind}, for each" if step.for_each else str(step.kind)


def _of_step(spec: WorkflowSpec, step: SubStep) -> Iterator[Arrow]:
    continues = True
    for route in step.validation_routing:
        condition = " and ".join(rule.wording() for rule in route.rules)
        condition = condition if not route.when_any else condition.replace(" and ", " or ")
        for target, word in ((route.on_match, "if"), (route.on_mismatch, "unless")):
            if target != CONTINUE:
                yield Arrow(step.id, step.id if target in _STAY else target, f"{word} {condition}")
        continues &= CONTINUE in (route.on_match, route.on_mismatch)
    if continues:
        yield Arrow(step.id, spec.after(step.id))
    others: dict[str, str | None] = {
        "failed": step.on_failure,
        "invalid": step.on_validation_fail,
        "no payload": step.on_payload_missing,
        "given up": step.on_dropped,
    }
    for why, other in others.items():
        if other in _STAY:
            yield Arrow(step.id, step.id, f"{why}: again")
        elif other and (other != ABORT or why == "failed"):
            yield Arrow(step.id, other, why)


def _of_composition(plan: Composition) -> Graph:
    names = _numbered([step.ref for step in plan.big_steps])
    place = {step.ref: names[at] for at, step in reversed(list(enumerate(plan.big_steps)))}
    arrows = []
    for at, step in enumerate(plan.big_steps):
        following = names[at + 1] if at + 1 < len(names) else DONE
        arrows.append(
            Arrow(names[at], place.get(step.on_success or "", step.on_success or following))
        )
        arrows.append(Arrow(names[at], place.get(step.on_failure, step.on_failure), "failed"))
        if step.when is not None:
            arrows.append(Arrow(names[at], following, f"skipped unless {step.when.wording()}"))
    boxes = tuple(Box(name, "workflow") for name in names)
    return Graph(plan.name, boxes, tuple(dict.fromkeys(arrows)))


def _numbered(refs: list[str]) -> list[str]:
    """Names that differ where the same workflow stands twice."""
    seen: dict[str, int] = {}
    names = []
    for ref in refs:
        seen[ref] = seen.get(ref, 0) + 1
        names.append(ref if seen[ref] == 1 else f"{ref} ({seen[ref]})")
    return names


def _cut(text: str) -> str:
    return one_line(text, _SHOWN_CHARS)


# --- as text ------------------------------------------------------------------------------


def as_text(graph: Graph) -> str:
    """One box a line, its arrows under it."""
    lines = [graph.name]
    for box in graph.boxes:
        lines.append(f"  {box.name}  ({box.kind})")
        lines += [
            f"    -> {arrow.end}" + (f"  [{_cut(arrow.why)}]" if arrow.why else "")
            for arrow in graph.arrows
            if arrow.start == box.name
        ]
    return "\n".join(lines)


# --- as mermaid ---------------------------------------------------------------------------


def as_mermaid(graph: Graph) -> str:
    """A flowchart that Markdown viewers draw. Names are quoted, so anything may stand in them."""
    ids = {name: f"n{at}" for at, name in enumerate([*(b.name for b in graph.boxes), *graph.ends])}
    lines = ["flowchart TD"]
    lines += [f'    {ids[b.name]}["{_quoted(b.name)}<br/><i>{b.kind}</i>"]' for b in graph.boxes]
    lines += [f'    {ids[end]}(["{_quoted(end)}"])' for end in graph.ends]
    for arrow in graph.arrows:
        label = f'|"{_quoted(_cut(arrow.why))}"|' if arrow.why else ""
        lines.append(f"    {ids[arrow.start]} -->{label} {ids[arrow.end]}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "".join(c if c.isalnum() or c in " .-_,/…" else f"#{ord(c)};" for c in text)


# --- as SVG -------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _GAP, _MARGIN, _LANE = 220, 44, 40, 24, 26


def as_svg(graph: Graph) -> str:
    """Boxes under each other; arrows that skip some run in lanes at the right."""
    names = [*(box.name for box in graph.boxes), *graph.ends]
    kinds = {box.name: box.kind for box in graph.boxes}
    top = {name: _MARGIN + at * (_HEIGHT + _GAP) for at, name in enumerate(names)}
    parts: list[str] = []
    lane = 0
    for arrow in graph.arrows:
        straight = names.index(arrow.end) == names.index(arrow.start) + 1 and not arrow.why
        lane += not straight
        parts += _line(top[arrow.start], top[arrow.end], 0 if straight else lane, arrow.why)
    parts += [part for name in names for part in _box(name, kinds.get(name, ""), top[name])]
    width = _MARGIN + _WIDTH + (lane + 1) * _LANE + 8 * _SHOWN_CHARS
    height = _MARGIN + len(names) * (_HEIGHT + _GAP)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">'
        f"<title>{escape(graph.name)}</title>"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
    )
    return head + "".join(parts) + "</svg>"


def _box(name: str, kind: str, top: int) -> Iterator[str]:
    middle = _MARGIN + _WIDTH // 2
    corner = 6 if kind else _HEIGHT // 2
    yield (
        f'<rect x="{_MARGIN}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="{corner}" '
        'fill="#f4f6fa" stroke="#345"/>'
    )
    line = top + (19 if kind else 27)
    yield f'<text x="{middle}" y="{line}" text-anchor="middle">{escape(_cut(name))}</text>'
    if kind:
        yield (
            f'<text x="{middle}" y="{top + 35}" text-anchor="middle" font-size="11" '
            f'fill="#567">{escape(kind)}</text>'
        )


def _line(start: int, end: int, lane: int, why: str) -> Iterator[str]:
    style = 'fill="none" stroke="#345" marker-end="url(#tip)"'
    if not lane:
        x = _MARGIN + _WIDTH // 2
        yield f'<path d="M{x} {start + _HEIGHT} V{end}" {style}/>'
        return
    right = _MARGIN + _WIDTH
    out, into, x = start + _HEIGHT // 2 + 6, end + _HEIGHT // 2 - 6, right + lane * _LANE
    yield f'<path d="M{right} {out} H{x} V{into} H{right}" {style}/>'
    if why:
        yield f'<text x="{x + 4}" y="{out - 4}" font-size="11">{escape(_cut(why))}</text>'
