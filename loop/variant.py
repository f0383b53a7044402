"""How a session may differ from the one that people get: benchmarks show what a part is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from loop import gates
from loop.apply import check_text
from loop.edits import Proposal
from loop.evidence import Trial
from loop.gatekeeper import Gatekeeper
from loop.journal import Gate, History
from loop.understanding import Understood
from loop.work import Runner, Work


class WithoutGates(Gatekeeper):
    """Only the whole run decides: what loads and looks better is taken."""

    def judge(
        self, proposal: Proposal, parent: Trial, before: str, text: str, history: History
    ) -> tuple[tuple[Gate, ...], Trial | None]:
        loads = gates.static(check_text(text, self.work.registry, before), ())
        if not loads.passed or proposal.needs_person:
            return (loads,), None
        trial = self.runner.run(text)
        return (loads, *self._decided(parent, trial)), trial

    def _decided(self, parent: Trial, trial: Trial) -> tuple[Gate, ...]:
        return (gates.whole(parent, trial),)


class TakesAll(WithoutGates):
    """Whatever loads is taken, and nobody looks what came of it."""

    takes_first = True

    def _decided(self, parent: Trial, trial: Trial) -> tuple[Gate, ...]:
        return ()


#: Whether all gates are asked, none but the whole run, or nothing.
Gates = Literal["all", "none", "accept"]
_KEEPERS: Mapping[Gates, type[Gatekeeper]] = {
    "all": Gatekeeper,
    "none": WithoutGates,
    "accept": TakesAll,
}


@dataclass(frozen=True, slots=True)
class Variant:
    """What is different.

    Attributes:
        soft: Whether what the wording suggests counts: not at all, for the rank, or as if the
            person had stated it.
        gates: What decides on a proposal.
    """

    soft: Literal["off", "soft", "hard"] = "soft"
    gates: Gates = "all"

    def understood(self, found: Understood) -> Understood:
        """What counts of what was understood."""
        if self.soft != "off":
            return found
        return replace(found, wanted={})

    def gatekeeper(self, work: Work, runner: Runner) -> Gatekeeper:
        return _KEEPERS[self.gates](work, runner)


#: The session that people get.
USUAL = Variant()
