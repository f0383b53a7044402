"""What the hand and the ledger decide about a call or a report. Pure: nothing is written here."""

from __future__ import annotations

from openry.errors import UsageError
from openry.ledger.tokens import fits
from openry.models.command import MANUAL_RUN, Ending, RunContext
from openry.models.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: The first line an agent reads when its run is braked, exactly.
BRAKE_LINE = "User requested immediate stop"
#: What an agent may say of its run, and the state that makes of it. `in_progress` changes none.
REPORTS = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "overflow": "overflow",
    "in_progress": "",
}


@value
class Begun:
    """What became of a call at the gates.

    Attributes:
        command_id: The row of a command that may be started now, and must be finished; else None.
        braked: The whole standard output of a braked call, with exit code 0; else None.
        refused: The whole standard error of a refused call, with exit code 126 (or the one given
            to `refuse`); else None.
    """

    command_id: int | None
    braked: str | None = None
    refused: str | None = None


@value
class StatusOutcome:
    """What an agent hears of its report. `message` is empty unless something must be done."""

    acknowledged: bool
    message: str = ""


@value
class RunRow:
    """A run as the hand sees it."""

    run_id: str
    workflow: str
    big_step: str
    step_id: str
    instance_id: str
    attempt: int
    status: str
    reported_status: str
    validation_status: str
    reason: str
    payload: Mapping[str, Any]
    cancel_requested: bool
    brake: str
    brake_reason: str
    max_tool_calls: int
    tool_calls: int
    max_output_tokens: int
    deadline_at: str | None
    data: Mapping[str, Any]
    workspace: str
    token_hash: str = ""


@value
class Gate:
    """How a row begins: `started`, or ended at once as `braked` or `refused`.

    Attributes:
        text: What the agent reads.
        brake: The brake to put on the run with it; empty for none.
        reason: Why that brake.
    """

    ending: str
    text: str = ""
    exit_code: int = 0
    brake: str = ""
    reason: str = ""

    @property
    def stdout(self) -> str:
        return self.text if self.ending == Ending.BRAKED else ""

    @property
    def stderr(self) -> str:
        return self.text if self.ending == Ending.REFUSED else ""

    def begun(self, command_id: int | None) -> Begun:
        if self.ending == Ending.BRAKED:
            return Begun(None, braked=self.text)
        if self.ending == Ending.REFUSED:
            return Begun(None, refused=self.text)
        return Begun(command_id)


MAY_START = Gate("started")


def gate(context: RunContext, run: RunRow | None) -> Gate:
    """Whether a call of `context` may start a command, `run` being what the ledger knows of it."""
    if context.run_id == MANUAL_RUN:
        return MAY_START
    if run is None:
        return _refused(
            f"openry: not allowed: run `{context.run_id}` is not in the ledger;"
            " try: unset OPENRY_RUN_ID to use openry by hand"
        )
    if run.status == "in_progress" and not fits(context.token, run.token_hash):
        return _refused(f"openry: not allowed: {wrong_token(context.run_id, context.token)}")
    if run.cancel_requested:
        return _braked("this run was cancelled; call: openry --status cancelled")
    if run.brake:
        return _braked(f"{run.brake_reason or run.brake}; call: openry --status cancelled")
    if run.status != "in_progress":
        return _braked(f"this run is no longer in progress, it is `{run.status}`")
    limit = _strictest(context.max_tool_calls, run.max_tool_calls)
    if limit and run.tool_calls >= limit:
        reason = f"the limit of {limit} calls is used up"
        told = f"{reason}; call: openry --status completed if the task is done, else failed"
        return _braked(told, brake="call_limit", reason=reason)
    return MAY_START


def wrong_token(run_id: str, token: str) -> str:
    """The sentence for who says to be a run and cannot show it."""
    how = "is not that of" if token else "is missing, and it needs that of"
    return f"OPENRY_RUN_TOKEN {how} run `{run_id}`; only who was started for a run acts in it"


def gate_by_hand(inside: str) -> Gate:
    """Whether free use by hand may start a command; `inside` says why it is no free use."""
    return _refused(f"openry: not allowed: {inside}") if inside else MAY_START


def _refused(text: str) -> Gate:
    return Gate(Ending.REFUSED, text, 126)


def _braked(why: str, *, brake: str = "", reason: str = "") -> Gate:
    return Gate(Ending.BRAKED, f"{BRAKE_LINE}\n{why}", 0, brake, reason)


def _strictest(*limits: int) -> int:
    """The smallest limit that is one; 0 means none.

    >>> _strictest(0, 5), _strictest(3, 5), _strictest(0, 0)
    (5, 3, 0)
    """
    return min((limit for limit in limits if limit > 0), default=0)


@value
class ReportVerdict:
    """What becomes of a run by a report.

    Attributes:
        accepted: Whether the payload becomes the run's.
        becomes: The run's new status; empty when it keeps the one it has.
        unknown: Who reports is not the run's agent; nothing of it is kept.
    """

    outcome: StatusOutcome
    accepted: bool = False
    becomes: str = ""
    reason: str = ""
    unknown: bool = False


def judge_report(
    run_id: str, run: RunRow | None, status: str, payload: Mapping[str, Any], token: str
) -> ReportVerdict:
    """Say what becomes of `run` when its agent reports `status`.

    Raises:
        UsageError: `status` is none that may be reported.
    """
    if status not in REPORTS:
        raise UsageError(f"`{status}` cannot be reported; use one of {', '.join(REPORTS)}")
    if run is None:
        return ReportVerdict(StatusOutcome(False, _unknown(run_id)))
    if not fits(token, run.token_hash):
        return ReportVerdict(StatusOutcome(False, wrong_token(run_id, token)), unknown=True)
    if run.status == "in_progress":
        becomes, reason = _ending(run, status, payload)
        return ReportVerdict(StatusOutcome(True), True, becomes, reason)
    if run.reported_status == status:
        return ReportVerdict(StatusOutcome(True, _since_then(run)))
    if run.status == "queued":
        return ReportVerdict(StatusOutcome(False, f"run `{run_id}` has not been started yet"))
    as_what = (
        f"was already reported as `{run.reported_status}`"
        if run.reported_status
        else (f"is no longer in progress, it is `{run.status}`")
    )
    return ReportVerdict(StatusOutcome(False, f"run `{run_id}` {as_what}; nothing was changed"))


def _ending(run: RunRow, status: str, payload: Mapping[str, Any]) -> tuple[str, str]:
    """The run's next status and its reason. Who is braked by us has failed, not cancelled."""
    becomes = REPORTS[status]
    if becomes == "cancelled" and run.brake and not run.cancel_requested:
        return "failed", run.brake_reason or run.brake
    said = payload.get("reason", "") if becomes in ("failed", "cancelled") else ""
    return becomes, said if isinstance(said, str) else ""


def _unknown(run_id: str) -> str:
    if run_id == MANUAL_RUN:
        return "a status belongs to a run, and this is free use by hand: nothing waits for one"
    return f"run `{run_id}` is not in the ledger"


def _since_then(run: RunRow) -> str:
    if run.validation_status == "failed":
        return f"validation failed: {run.reason}"
    return ""
