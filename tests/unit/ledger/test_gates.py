"""What a run must meet before its command may start."""

from __future__ import annotations

import pytest

from openry.errors import UsageError
from openry.ledger.gates import MAY_START, REPORTS, RunRow, gate, judge_report
from openry.ledger.tokens import hashed
from openry.models import RunContext

TOKEN = "t" * 48
CONTEXT = RunContext(run_id="r", token=TOKEN)


def run(**fields) -> RunRow:
    known = {
        "run_id": "r",
        "workflow": "w",
        "big_step": "",
        "step_id": "s",
        "instance_id": "i",
        "attempt": 1,
        "status": "in_progress",
        "reported_status": "",
        "validation_status": "",
        "reason": "",
        "payload": {},
        "cancel_requested": False,
        "brake": "",
        "brake_reason": "",
        "max_tool_calls": 0,
        "tool_calls": 0,
        "max_output_tokens": 0,
        "deadline_at": None,
        "data": {},
        "workspace": "/ws",
        "token_hash": hashed(TOKEN),
    }
    return RunRow(**{**known, **fields})


def test_free_use_by_hand_always_passes():
    """The run id `manual` belongs to no run, so no brake and no limit is its own."""
    assert gate(RunContext(max_tool_calls=1), None) is MAY_START


def test_a_run_in_progress_passes():
    """Without brake and below its limit a run may start commands."""
    assert gate(CONTEXT, run(max_tool_calls=3, tool_calls=2)) is MAY_START


@pytest.mark.parametrize("token", ["", "t" * 47, "T" * 48, "t" * 49, hashed(TOKEN), "é\udcff"])
def test_a_live_run_is_only_for_who_has_its_token(token):
    """Missing or wrong: 126 and a sentence, before brake and limit, for a call and a report."""
    stranger = RunContext(run_id="r", token=token)
    braked = run(cancel_requested=True, max_tool_calls=1, tool_calls=1)

    for live in (run(), braked):
        found = gate(stranger, live)
        assert (found.ending, found.exit_code, found.brake) == ("refused", 126, "")
        assert found.stderr.startswith("openry: not allowed: OPENRY_RUN_TOKEN is ")
        said = judge_report("r", live, "completed", {}, token)
        assert (said.outcome.acknowledged, said.accepted, said.unknown) == (False, False, True)


@pytest.mark.parametrize("token", ["", "x", TOKEN])
def test_no_token_fits_a_run_that_has_none(token):
    """A row that was never claimed lets nobody in."""
    found = gate(RunContext(run_id="r", token=token), run(token_hash=""))

    assert (found.ending, found.exit_code) == ("refused", 126)


def test_an_unknown_run_is_refused():
    """A run id is a claim: one that the ledger does not know is answered with 126 and a way out."""
    found = gate(CONTEXT, None)

    assert (found.ending, found.exit_code) == ("refused", 126)
    assert found.stderr.startswith("openry: not allowed: run `r` is not in the ledger; try: ")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"cancel_requested": True}, "cancelled"),
        ({"brake": "budget", "brake_reason": "0.50 USD are spent"}, "0.50 USD are spent"),
        ({"brake": "loop"}, "loop"),
        ({"status": "completed"}, "no longer in progress"),
        ({"status": "queued"}, "no longer in progress"),
        ({"max_tool_calls": 3, "tool_calls": 3}, "limit of 3"),
    ],
)
def test_a_braked_call_reads_the_brake_sentence(fields, why):
    """First line exactly the brake sentence, second line why, exit code 0, nothing on stderr."""
    found = gate(CONTEXT, run(**fields))

    first, second = found.stdout.split("\n")
    assert first == "User requested immediate stop"
    assert why in second
    assert (found.exit_code, found.stderr) == (0, "")


@pytest.mark.parametrize(("asked", "stored"), [(2, 5), (5, 2), (0, 2), (2, 0)])
def test_the_strictest_limit_holds(asked, stored):
    """Whether the caller's limit or the ledger's is smaller, the smaller one counts."""
    context = RunContext(run_id="r", token=TOKEN, max_tool_calls=asked)

    assert gate(context, run(max_tool_calls=stored, tool_calls=1)) is MAY_START
    assert gate(context, run(max_tool_calls=stored, tool_calls=2)).brake == "call_limit"


@pytest.mark.parametrize("status", REPORTS)
def test_a_first_report_is_accepted(status):
    """A run in progress takes every status that may be reported."""
    verdict = judge_report("r", run(), status, {}, TOKEN)

    assert verdict.outcome.acknowledged
    assert verdict.accepted
    assert verdict.becomes == ("" if status == "in_progress" else status)


def test_who_was_braked_by_us_has_failed():
    """`cancelled` after a brake of ours is a failure with the brake's reason; after a person's,
    it is a cancel."""
    braked = run(brake="call_limit", brake_reason="the limit of 3 calls is used up")
    verdict = judge_report("r", braked, "cancelled", {"reason": "I was told to"}, TOKEN)

    assert (verdict.becomes, verdict.reason) == ("failed", "the limit of 3 calls is used up")
    asked_to = run(cancel_requested=True, brake="timeout")
    assert judge_report("r", asked_to, "cancelled", {}, TOKEN).becomes == "cancelled"


def test_the_same_status_is_acknowledged_again():
    """Saying it twice changes nothing, and is not an error."""
    verdict = judge_report(
        "r", run(status="done", reported_status="completed"), "completed", {}, TOKEN
    )

    assert verdict.outcome.acknowledged
    assert not verdict.accepted


def test_a_repeated_claim_hears_that_validation_failed():
    """An agent that asks again is told what was wrong."""
    ended = run(
        status="failed",
        reported_status="completed",
        validation_status="failed",
        reason="`out.txt` is missing",
    )

    assert judge_report("r", ended, "completed", {}, TOKEN).outcome.message == (
        "validation failed: `out.txt` is missing"
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (run(status="completed", reported_status="completed"), "already reported as `completed`"),
        (run(status="cancelled"), "it is `cancelled`"),
        (run(status="queued"), "not been started"),
        (None, "not in the ledger"),
    ],
)
def test_another_final_status_is_not_acknowledged(found, why):
    """What ended otherwise, was never started or is unknown cannot be said to have failed."""
    verdict = judge_report("r", found, "failed", {}, TOKEN)

    assert not verdict.outcome.acknowledged
    assert not verdict.accepted
    assert why in verdict.outcome.message


def test_free_use_by_hand_has_no_status():
    """Nobody waits for one, and that is said."""
    said = judge_report("manual", None, "completed", {}, TOKEN).outcome
    assert not said.acknowledged and "a status belongs to a run" in said.message


def test_an_unknown_status_names_the_known_ones():
    """A misspelt status is a usage error that lists what may be said."""
    with pytest.raises(UsageError, match=r"`complete` cannot be reported; use one of completed"):
        judge_report("r", run(), "complete", {}, TOKEN)
