"""One action of a run: was it done before, is it done over and over?"""

from __future__ import annotations

from dataclasses import replace

from openry.forwarder.fingerprint import action_of, fingerprint
from openry.forwarder.judging import Refusal
from openry.forwarder.loops import Circles
from openry.forwarder.run import with_line
from openry.ledger.fast import FastLedger
from openry.ledger.repeats import RECORDED, Earlier, earlier, note_loop
from openry.models.command import Command, CommandResult, RunContext

_INSTEAD = "try something else or call --status failed"


class Acting:
    """What is known of an action before it is carried out, and learnt from how it ended."""

    def __init__(
        self,
        ledger: FastLedger,
        context: RunContext,
        command: Command,
        cwd: str,
        circles: Circles | None,
    ) -> None:
        self._ledger = ledger
        self._context = context
        self._command = command
        self._circles = circles
        self.fingerprint = fingerprint(command, context, cwd)
        self._earlier: Earlier | None = None
        if command.once or context.once:
            self._earlier = earlier(ledger, context.run_id, action_of(self.fingerprint))

    def unknown(self) -> Refusal | None:
        """A person is asked about what an earlier attempt began and may have done.

        Of a step that is irreversible as a whole, they were asked before it was begun again.
        """
        if self._earlier is None or self._earlier.result is not None or self._context.once:
            return None
        number = self._earlier.command_id
        reason = (
            f"unknown outcome: command {number} of an earlier attempt was cut off; run it again?"
        )
        return Refusal("confirm", "unknown outcome", reason)

    def recorded(self, command_id: int) -> CommandResult | None:
        """The result of an earlier attempt, written down as this one's; None: it is to be run."""
        if self._earlier is None or self._earlier.result is None:
            return None
        note = f"{RECORDED} by command {self._earlier.command_id}: its result; it was not run again"
        result = self._earlier.result
        self._ledger.finish(command_id, replace(result, note=note))
        return replace(result, stderr=with_line(result.stderr, note), note=note)

    def watched(self, result: CommandResult) -> CommandResult:
        """The result, with a warning when this goes round in circles; the next time is braked."""
        if self._circles is None or (self._command.capability and not result.ok):
            return result  # a tool that fails is tried again by rule, not by whoever called it
        text = self._command.text or self._command.label
        said = f"{result.exit_code}\0{result.stdout}\0{result.stderr}"
        why, brake = self._circles.note(action_of(self.fingerprint), text, said)
        if not why:
            return result
        note_loop(self._ledger, self._context, why, brake=brake)
        return replace(result, stderr=with_line(result.stderr, f"openry: {why}; {_INSTEAD}"))
