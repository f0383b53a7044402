"""`parallel_actions` of a step: what the engine keeps of actions at the same time."""

from __future__ import annotations

import json

from openry.ledger.records import snapshots_of
from openry.llm import ChatReply, ToolCall
from tests.meeting import meeting_pack


def calls(name, *all_arguments):
    """One reply with several calls of a tool."""
    made = [
        ToolCall(f"c{at}", name, json.dumps(arguments))
        for at, arguments in enumerate(all_arguments)
    ]
    return ChatReply("", tuple(made), "tool_calls")


DONE = calls("report", {"status": "completed"})


def meeting(*names):
    return calls("meet", *({"output": n, "others": [o for o in names if o != n]} for n in names))


def test_actions_of_one_reply_are_under_way_at_the_same_time(bench, config):
    """Three that each wait for the two others; workspace, rows and events are as they should be.

    The workspace is kept after the fifth action, which is the middle one of the second three:
    nobody works in it then, so all six files are there.
    """
    meeting_pack(config.home / "capabilities")
    bench.script(meeting("a", "b", "c"), meeting("d", "e", "f"), DONE, tool_calling=True)

    outcome = bench.run(
        """
        name: together
        sub_steps:
          - id: act
            description: meet
            capabilities: [meet]
            parallel_actions: 3
        """
    )

    assert outcome.ok, outcome.reason
    rows = outcome.step("act").commands
    assert sorted(row.command.partition(" ")[0] for row in rows) == ["meet"] * 6
    for three in (rows[:3], rows[3:]):
        assert max(row.started_at for row in three) <= min(row.ended_at for row in three)
    assert max(row.ended_at for row in rows[:3]) <= min(row.started_at for row in rows[3:])
    with bench.engine.ledger.read() as connection:
        kept = snapshots_of(connection, outcome.instance_id)
    assert [one.reason for one in kept] == ["after action 5"]
    files = bench.engine.room.snapshots.tree(kept[0].snapshot_id)
    assert set(files) >= {"a", "b", "c", "d", "e", "f"}


def test_going_round_in_circles_together_is_noticed(bench):
    """Three times the same in one reply is told in an answer, and the next time it is braked."""
    same = calls("openry", *[{"command": "echo again"}] * 3)
    bench.script(same, same, calls("openry", {"command": "ls"}), tool_calling=True)

    outcome = bench.run(
        "{name: x, sub_steps: [{id: act, description: go, parallel_actions: 3,"
        " max_sub_step_retries: 0}]}"
    )

    assert outcome.state == "failed"
    assert outcome.reason.startswith("looped")
    kinds = [(e.kind, e.new) for e in bench.events(outcome.instance_id) if e.kind == "loop"]
    assert kinds == [("loop", "warned")]


def test_a_wrong_number_is_said_with_its_line():
    """With what it must be; a slip of its name with what was meant."""
    from openry.orchestrator.loader import load

    loaded = load(
        "sub_steps:\n"
        "  - {id: a, description: x, parallel_actions: 0}\n"
        "  - {id: b, description: x, paralel_actions: 2}\n",
        file="w.yaml",
    )

    said = [str(one) for one in loaded.errors]
    assert any(one.startswith("w.yaml:2: `parallel_actions` must be") for one in said), said
    assert any("did you mean `parallel_actions`?" in one for one in said), said
