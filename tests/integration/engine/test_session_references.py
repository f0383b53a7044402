"""What a step of another session ended with, as an input."""

from __future__ import annotations

import json

import pytest

from openry.errors import UsageError
from openry.ledger.change import change
from openry.ledger.journal import later, ledger_now
from openry.ledger.prune import forget
from openry.ledger.schema import schedules
from openry.ledger.verify import verify
from openry.orchestrator.loader import load
from openry.session.lifecycle import mark_exported

COUNT = r"""
name: count
sub_steps:
  - id: look
    kind: shell
    command: |
      printf '%s' '{"n": 3, "who": "o\u0027hara; ls"}'
    payload_keys: [n, who]
  - {id: fails, kind: shell, command: 'exit {{ inputs.code }}'}
inputs: {code: {type: int, default: 0}}
"""
USE = """
name: use
inputs: {counted: {type: ref}}
sub_steps:
  - id: say
    kind: shell
    command: 'echo {{ inputs.counted.n }} {{ inputs.counted.who }} >> said'
"""


def test_a_result_of_another_session_is_an_input(bench):
    """By its id, the beginning of that, or its workflow's name; the values are no program."""
    other = bench.run(COUNT).instance_id
    for ref in (f"{other}/look", f"{other[:6]}/look", "count/look"):
        made = bench.run(USE, inputs={"counted": ref})
        assert made.ok, made.reason
        with bench.engine.ledger.read():
            kept = bench.engine._instance(made.instance_id).inputs["counted"]
        assert (kept["n"], kept["_ref"]) == (3, f"{other}/look")
    assert bench.read("said") == "3 o'hara; ls\n" * 3


def test_the_newest_that_ended_well_stands_for_its_workflow(bench):
    """One that failed later does not; its done steps are there by its id."""
    good = bench.run(COUNT).instance_id
    bad = bench.run(COUNT, inputs={"code": 1})
    assert bad.state == "failed"

    by_name = bench.submit(USE, inputs={"counted": "count/look"})
    by_id = bench.submit(USE, inputs={"counted": f"{bad.instance_id}/look"})

    found = [bench.engine._instance(one).inputs["counted"]["_ref"] for one in (by_name, by_id)]
    assert found == [f"{good}/look", f"{bad.instance_id}/look"]


def test_it_is_looked_up_once(bench):
    """Whatever becomes of the other session: the instance and its replay have what they had."""
    other = bench.run(COUNT).instance_id
    made = bench.submit(
        USE.replace("kind: shell", "kind: shell\n    snapshot: before"),
        inputs={"counted": f"{other}/look"},
    )
    with bench.engine.room.write() as connection:
        forget(connection, [other])
    assert bench.engine.run(made).ok

    again = bench.engine.replay(made).row["instance_id"]

    assert bench.engine.run(again).ok
    assert bench.read("said") == "3 o'hara; ls\n"


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("count/nothing", r"session `\w+` has no step `nothing` \(it has `look`, `fails`\)"),
        ("count/loook", r"session `\w+` has no step `loook` \(did you mean `look`\?\)"),
        ("nobody/look", "there is no instance `nobody`: it never was, or it was pruned"),
        ("look", "must be SESSION/STEP, got `look`"),
        ("count/look/n", "must be SESSION/STEP"),
        ("", "must be SESSION/STEP"),
    ],
)
def test_what_is_not_there_is_said_before_anything_begins(bench, ref, said):
    """With the input's name; nothing is queued."""
    bench.run(COUNT)
    with pytest.raises(UsageError, match=f"input `counted`:? {said}"):
        bench.submit(USE, inputs={"counted": ref})
    assert len(bench.engine.instances()) == 1


def refused(bench, ref):
    """What is said of a reference that has no result."""
    with pytest.raises(UsageError) as error:
        bench.submit(USE, inputs={"counted": ref})
    return str(error.value)


def test_a_step_that_failed_or_was_not_reached_is_said_to_be_so(bench):
    """With its reason and how the session stands."""
    bad = bench.run(COUNT.replace("kind: shell\n    command: |", "kind: shell\n    command: |\n"
                                  "      exit 7"))  # fmt: skip
    assert bad.state == "failed"
    session = bad.instance_id
    assert refused(bench, f"{session}/look") == (
        f"input `counted`: step `look` of session `{session}` failed (exit 7), so it has no result:"
        " the session ended (failed)"
    )
    assert refused(bench, f"{session}/fails") == (
        f"input `counted`: step `fails` of session `{session}` was never reached, so it has no"
        " result: the session ended (failed)"
    )
    assert refused(bench, "count/look") == (
        f"input `counted`: no session of workflow `count` has ended well: the newest, `{session}`,"
        " ended (failed)"
    )


def test_a_step_that_is_still_to_come_is_said_to_be_so(bench):
    """Queued, asking a person, exported: with where it goes on."""
    asking = COUNT.replace("{id: fails, kind: shell, command: 'exit {{ inputs.code }}'}",
                           "{id: ask, kind: approval, prompt: go on}")  # fmt: skip
    waiting = bench.submit(asking)
    assert refused(bench, f"{waiting}/look") == (
        f"input `counted`: step `look` of session `{waiting}` was not reached yet, so it has no"
        " result: the session is initialised"
    )
    bench.engine.run(waiting)
    assert refused(bench, f"{waiting}/ask").startswith(
        f"input `counted`: step `ask` of session `{waiting}` waits for a person"
    )
    assert refused(bench, "count/look").endswith(f"the newest, `{waiting}`, is suspended")

    with bench.engine.room.write() as connection:
        mark_exported(connection, ledger_now(connection), (waiting,), "half.tar")

    assert refused(bench, f"{waiting}/ask").endswith(
        "so it has no result here: the session was exported to half.tar and goes on there"
    )
    made = bench.run(USE, inputs={"counted": f"{waiting}/look"})
    assert made.ok and bench.read("said") == "3 o'hara; ls\n"


def test_what_was_pruned_is_not_there(bench):
    """One sentence, whichever way it is named; of an id the ledger knows that it was there."""
    other = bench.run(COUNT).instance_id
    with bench.engine.room.write() as connection:
        forget(connection, [other])

    assert "it never was, or it was pruned" in refused(bench, "count/look")
    for name in (other, other[:8]):
        said = refused(bench, f"{name}/look")
        assert f"instance `{other}` was pruned at 20" in said and "nothing of it is left" in said
    with bench.engine.ledger.read() as connection:
        assert verify(connection).ok


def test_a_composition_hands_it_on(bench, tmp_path):
    """To its big steps, as it was at the start; what a big step names by itself is refused."""
    (tmp_path / "use.yaml").write_text(USE)
    other = bench.run(COUNT).instance_id
    given, about = {"found": f"{other}/look"}, {"workspace": bench.workspace}

    def all_of(counted):
        (tmp_path / "all.yaml").write_text(
            "name: all\ninputs: {found: {type: ref}}\n"
            f"big_steps: [{{ref: use, inputs: {{counted: '{counted}'}}}}]\n"
        )
        return load(tmp_path / "all.yaml")

    made = bench.engine.submit(all_of("{{ inputs.found }}"), inputs=given, **about)
    assert bench.engine.run(made).ok
    assert bench.read("said") == "3 o'hara; ls\n"
    with pytest.raises(UsageError, match="big step `use`: input `counted` is looked up when"):
        bench.engine.submit(all_of("count/look"), inputs=given, **about)


def test_a_schedule_looks_each_time(bench, tmp_path):
    """What is not there yet is noted with its reason, and the next time it is."""
    file = tmp_path / "use.yaml"
    file.write_text(USE)
    with bench.engine.ledger.read() as connection:
        minute = int(ledger_now(connection)[14:16])
    about = {"zone": "UTC", "workspace": bench.workspace, "inputs": {"counted": "count/look"}}
    bench.engine.clockwork.add(str(file), f"{(minute + 30) % 60} * * * *", **about)

    for _ in range(2):
        with bench.engine.room.write() as connection:
            at = later(ledger_now(connection), -1)
            assert change(connection, schedules, {"name": "use"}, {"next_at": at}) == 1
        bench.engine.serve(once=True)
        bench.run(COUNT)

    firings = sorted(bench.engine.clockwork.firings("use"), key=lambda one: one.due_at)
    assert {one.outcome for one in firings} == {"failed", "started"}
    assert "there is no instance `count`" in next(one.reason for one in firings if one.reason)
    assert bench.read("said") == "3 o'hara; ls\n"


def test_a_dry_run_shows_it(call, call_json, here):
    """The value is in the plan and in the command, and nothing is started."""
    (here / "count.yaml").write_text(COUNT)
    (here / "use.yaml").write_text(USE)
    _, first = call_json("start", "./count.yaml", "--wait")
    words = ("start", "./use.yaml", "--dry-run", "--input", "counted=count/look")
    status, said = call_json(*words)
    assert (status, said["inputs"]["counted"]["n"]) == (0, 3)
    assert json.dumps(said["steps"]).count("inputs.counted.n") == 1
    assert len(call_json("list")[1]["instances"]) == 1 and first["state"] == "completed"
