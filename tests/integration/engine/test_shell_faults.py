"""What went wrong with shell steps elsewhere: here it is an end like any other."""

from __future__ import annotations

import time


def test_a_step_that_waits_for_input_ends_at_once(bench):
    """Its standard input is empty, in the foreground and in the background (B07)."""
    began = time.monotonic()
    outcome = bench.run(
        """
        name: waits
        sub_steps:
          - {id: a, kind: shell, command: "cat; (cat; echo back) & wait; echo end"}
          - {id: b, kind: shell, command: "grep foo"}
        """
    )

    assert time.monotonic() - began < 60
    assert outcome.step("a").commands[0].stdout == "back\nend\n"
    assert outcome.step("b").commands[0].exit_code == 1


def test_a_flood_of_a_step_or_a_rule_is_bounded(bench, config):
    """The ledger and the payload hold a cut text, whatever was printed (B15)."""
    outcome = bench.run(
        """
        name: floods
        sub_steps:
          - id: a
            kind: shell
            command: seq 1 3000000
            validation:
              - {type: command, run: seq 1 3000000}
        """
    )

    assert outcome.ok, outcome.reason
    assert len(outcome.step("a").payload["_stdout"]) < 1_100_000
    assert all(len(row.stdout) < 1_100_000 for row in outcome.step("a").commands)
    assert (config.home / "openry.db").stat().st_size < 20_000_000


def test_a_rule_sees_a_failing_part_of_a_pipeline(bench):
    """`-c` answers a pipeline's own code, its last part's; a rule is stricter (B17)."""
    outcome = bench.run(
        """
        name: piped
        sub_steps:
          - id: a
            kind: shell
            command: "false | tee /dev/null"
            validation:
              - {type: command, run: "python3 -c 'raise SystemExit(3)' 2>&1 | tail -3"}
        """
    )

    assert outcome.step("a").commands[0].exit_code == 0
    assert not outcome.ok
    assert "exit 3" in outcome.reason or "failed" in outcome.reason
