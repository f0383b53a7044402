"""What a validation rule said."""

from __future__ import annotations

from openry.models.value import value


@value
class RuleResult:
    """One rule's verdict with what was expected and what was there.

    A rule that could not be evaluated is not passed, and `message` says why.
    `vacuous` marks a relation that held only because there was nothing to compare.
    """

    rule: str
    passed: bool
    expected: str = ""
    actual: str = ""
    message: str = ""
    vacuous: bool = False
