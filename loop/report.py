"""One session as one HTML page that opens without a network: plan, rounds, edits, gates, cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from loop.acceptance import rule_words
from loop.diagnose import said
from loop.evidence import Trial
from loop.journal import Attempt, Gate, History, Round
from loop.provenance import confidence, place
from loop.review import Hunk
from openry.data import data_root

if TYPE_CHECKING:
    from jinja2 import Template

_TONES = {"converged": "good", "not_converged": "bad", "unusable": "bad"}
_BAR, _GAP, _HEIGHT, _LEFT = 44, 18, 120, 34


def html(history: History) -> str:
    """The page. It holds no script and loads nothing."""
    session = dict(history.session)
    outcome = session["outcome"] or session["state"]
    rules = session["acceptance"]
    return template("loop.html.j2").render(
        session=session,
        outcome=outcome.replace("_", " "),
        tone=_TONES.get(outcome, "mid"),
        acceptance=[rule_words(rule) for rule in _hard(rules)],
        rounds=[
            _round(each, history.of_round(each.number), before)
            for each, before in zip(
                history.rounds, [None, *(r.trial for r in history.rounds)], strict=False
            )
        ],
        confidence=confidence(history.current),
        accepted=len(history.accepted),
        waiting=[place(each) for each in history.attempts if each.verdict == "waiting"],
        spending=markup(spending(history.rounds)),
        chart=markup(chart([each.trial for each in history.rounds])),
    )


def review_html(history: History, found: Sequence[Hunk]) -> str:
    """A page on which each edit is decided on; it gives the decisions as a file."""
    session = dict(history.session)
    listed = [
        {
            **hunk.to_data(),
            "diff": [{"text": line, "tone": _tone(line)} for line in hunk.diff.splitlines()],
            "edits_text": json.dumps(hunk.edits, indent=1, ensure_ascii=False),
        }
        for hunk in found
    ]
    page = template("review.html.j2")
    return page.render(session=session, hunks=listed, workflow=session["workflow_text"] or "")


def chart(trials: Sequence[Trial]) -> str:
    """Bars as inline SVG: the share of what must hold that held, one bar a round."""
    if not trials:
        return ""
    width = _LEFT + len(trials) * (_BAR + _GAP) + 10
    parts = [
        f'<svg role="img" aria-label="checks held by round" width="{width}" height="{_HEIGHT + 40}"'
        f' viewBox="0 0 {width} {_HEIGHT + 40}">',
        f'<line x1="{_LEFT}" y1="{_HEIGHT + 10}" x2="{width}" y2="{_HEIGHT + 10}" '
        'stroke="var(--line)"/>',
        f'<text x="0" y="18">100%</text><text x="12" y="{_HEIGHT + 10}">0</text>',
    ]
    for index, trial in enumerate(trials):
        held, total = _held(trial)
        height = round(_HEIGHT * held / total) if total else 0
        x, y = _LEFT + 8 + index * (_BAR + _GAP), _HEIGHT + 10 - height
        tone = "var(--good)" if trial.acceptable else "var(--bar)"
        parts += [
            f'<rect x="{x}" y="{y}" width="{_BAR}" height="{max(height, 1)}" rx="3" fill="{tone}">'
            f"<title>round {index}: {held} of {total}</title></rect>",
            f'<text x="{x + 4}" y="{_HEIGHT + 28}">{index}: {held}/{total}</text>',
        ]
    return "".join([*parts, "</svg>"])


def spending(rounds: Sequence[Round]) -> str:
    """Tokens by round as inline SVG; empty where no model was asked."""
    most = max((each.tokens for each in rounds), default=0)
    if not most:
        return ""
    width = _LEFT + len(rounds) * (_BAR + _GAP) + 10
    parts = [
        f'<svg role="img" aria-label="tokens by round" width="{width}" height="{_HEIGHT // 2 + 40}"'
        f' viewBox="0 0 {width} {_HEIGHT // 2 + 40}">'
    ]
    for index, each in enumerate(rounds):
        height = round(_HEIGHT / 2 * each.tokens / most)
        x, y = _LEFT + 8 + index * (_BAR + _GAP), _HEIGHT // 2 + 14 - height
        parts += [
            f'<rect x="{x}" y="{y}" width="{_BAR}" height="{max(height, 1)}" rx="3"'
            f' fill="var(--mid)"/>',
            f'<text x="{x}" y="{_HEIGHT // 2 + 32}">{index}: {each.tokens:,}</text>',
        ]
    return "".join([*parts, "</svg>"])


def _held(trial: Trial) -> tuple[int, int]:
    """Steps that passed and rules that held, of all there are."""
    marks = [step.passed for step in trial.steps] + [rule.passed for rule in trial.hard]
    return sum(marks), len(marks)


def _deltas(before: Trial, after: Trial) -> list[dict[str, str]]:
    """Each hard rule that holds now and did not, or the other way round: gains pay for no loss."""
    pairs = zip(before.hard, after.hard, strict=False)
    return [
        {"rule": new.rule, "tone": "good" if new.passed else "bad",
         "word": "holds now" if new.passed else "no longer holds"}
        for old, new in pairs
        if old.passed != new.passed
    ]  # fmt: skip


def _round(round_: Round, attempts: Sequence[Attempt], before: Trial | None) -> dict[str, Any]:
    broken = [said(rule) for rule in round_.trial.hard if not rule.passed]
    title = "the draft" if round_.number == 0 else round_.verdict
    return {
        "number": round_.number,
        "title": title,
        "diagnosis": round_.diagnosis,
        "attempts": [_attempt(each) for each in attempts],
        "deltas": _deltas(before, round_.trial) if before else [],
        "gates": _gates(round_.gates),
        "cost": f"{round_.tokens:,} tokens, {round_.cost_usd:.4f} USD, {round_.seconds:.1f} s",
        "steps": [
            {
                "id": step.id,
                "state": step.state,
                "passed": step.passed,
                "attempts": step.attempts,
                "said": "; ".join(map(said, step.broken_rules)) or step.error or step.reason,
            }
            for step in round_.trial.steps
        ],
        "broken": broken,
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    proposal = attempt.proposal
    return {
        "verdict": attempt.verdict,
        "accepted": attempt.accepted,
        "summary": proposal.summary,
        "origin": proposal.origin,
        "why": attempt.reason or proposal.why,
        "diff": [{"text": line, "tone": _tone(line)} for line in attempt.diff.splitlines()],
        "gates": _gates(attempt.gates),
    }


def _gates(gates: Sequence[Gate]) -> list[dict[str, Any]]:
    return [
        {
            "name": gate.name,
            "passed": gate.passed,
            "note": gate.note,
            "word": "indecisive" if gate.indecisive else "passed" if gate.passed else "refused",
        }
        for gate in gates
    ]


def _tone(line: str) -> str:
    return "add" if line.startswith("+") else "del" if line.startswith("-") else ""


def _hard(acceptance: Any) -> Sequence[Mapping[str, Any]]:
    """The column holds a list of rules, or `{"hard": [...]}`."""
    rules: Sequence[Mapping[str, Any]] = (
        acceptance.get("hard", []) if isinstance(acceptance, Mapping) else acceptance
    )
    return rules


def markup(text: str) -> Any:
    """`text` as HTML that is put into a page as it stands."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  # made here, of numbers only


@cache
def template(name: str) -> Template:
    """One of the pages that ship with the product."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(data_root() / "templates" / "reports")
    env = Environment(loader=loader, undefined=StrictUndefined, autoescape=True)
    return env.get_template(name)
