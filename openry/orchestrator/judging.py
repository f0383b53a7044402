"""Whether what a run did is good: payload promised, rules, and the conditions of its routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from openry.ledger.runs import Run
from openry.models import RuleResult
from openry.orchestrator.course import Standing
from openry.orchestrator.outside import Outside
from openry.orchestrator.room import Room
from openry.orchestrator.routing import Ended, match_routes
from openry.orchestrator.rules import COMMANDS, Rule, rule_types
from openry.orchestrator.rules_scene import MISSING, look_up
from openry.orchestrator.scope import scope_of
from openry.orchestrator.spec import BigStep, SubStep
from openry.orchestrator.validation import check_rules, has_template, said

#: Rules that start a process or reach out; everything else takes milliseconds.
_SLOW = COMMANDS | {"http_status", "db_query", "unchanged"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What hard validation says of a completed run.

    Attributes:
        missing: Promised payload keys that are not there.
        matches: What each condition of the step's routes said; only looked at when all passed.
    """

    results: tuple[RuleResult, ...] = ()
    missing: tuple[str, ...] = ()
    matches: tuple[bool, ...] = ()

    @property
    def ended(self) -> Ended:
        if self.missing:
            return Ended.PAYLOAD_MISSING
        return Ended.VALIDATED if all(result.passed for result in self.results) else Ended.INVALID

    @property
    def reason(self) -> str:
        """What failed, in one line; empty when nothing did."""
        return "; ".join(said(result) for result in self.results if not result.passed)


class Judge:
    """Judges the runs of one engine."""

    def __init__(self, room: Room) -> None:
        self.room = room

    def is_quick(self, step: SubStep, *, of_item: bool = False) -> bool:
        """Whether judging starts no process, so that it may go before the record."""
        routing = () if of_item else step.validation_routing
        rules = [*step.validation, *(rule for route in routing for rule in route.rules)]
        return not any(rule_types(rules) & _SLOW)

    def verdict(self, standing: Standing, run: Run, payload: Mapping[str, Any]) -> Verdict:
        """What the rules say of a run; `payload` is the one it ended with, inherited keys included.

        In a `for_each` the rules are about each item, and the conditional routes about them all.
        """
        step = standing.step(run.step_id)
        check = self._checker(standing, run, step, payload)
        verdict = Verdict()
        if step.for_each is None or run.item:
            missing = missing_keys(step, payload)
            verdict = Verdict((*_missing_results(step, missing), *check(step.validation)), missing)
        if verdict.ended is not Ended.VALIDATED or run.item:
            return verdict
        matches = match_routes(step.validation_routing, lambda rule: check([rule])[0].passed)
        return replace(verdict, matches=matches)

    def holds(self, standing: Standing, big_step: BigStep, payload: Mapping[str, Any]) -> bool:
        """Whether a big step's `when` holds."""
        assert big_step.when is not None
        check = self._checker(standing, None, None, payload)
        return check([big_step.when])[0].passed

    def _checker(
        self,
        standing: Standing,
        run: Run | None,
        step: SubStep | None,
        payload: Mapping[str, Any],
    ) -> Callable[[Iterable[Rule]], tuple[RuleResult, ...]]:
        outside = Outside(self.room, standing, run, step)
        scope = partial(self._scope, standing, run, payload)

        def check(rules: Iterable[Rule]) -> tuple[RuleResult, ...]:
            rules = tuple(rules)
            return check_rules(
                rules,
                workspace=Path(standing.workspace),
                payload=payload,
                run=outside.run,
                query=outside.query,
                fetch=outside.fetch,
                changed=outside.changed,
                scope=scope() if any(map(has_template, rules)) else None,
            )

        return check

    def _scope(
        self, standing: Standing, run: Run | None, payload: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What templates in rules see: the run's, with the payload it ended with."""
        if run is None:
            return {"inputs": dict(standing.inputs), "payload": dict(payload)}
        return {**scope_of(self.room, standing, run), "payload": dict(payload)}


def missing_keys(step: SubStep, payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Promised keys that are not there; `payload` itself when none at all came but one must."""
    if step.payload_keys_on_error == "fallback" and "_stdout" in payload:
        return ()
    missing = tuple(key for key in step.payload_keys if look_up(payload, key) is MISSING)
    if not missing and step.expect_payload and not payload:
        return ("payload",)
    return missing


def _missing_results(step: SubStep, missing: Iterable[str]) -> tuple[RuleResult, ...]:
    results = []
    for key in missing:
        rule = f"payload_keys {key}" if key in step.payload_keys else "expect_payload"
        message = f"the payload has no `{key}`" if key in step.payload_keys else "no payload came"
        results.append(RuleResult(rule, False, "a value", "nothing", message))
    return tuple(results)
