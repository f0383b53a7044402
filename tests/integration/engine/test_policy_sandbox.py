"""What a policy says of files, hosts, limits and layers holds for the steps of a workflow."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.sandbox


#: What programs do is for the sandbox; the words of commands are judged elsewhere.
OPEN = {"default": "allow", "commands": [{"allow": "python3", "runs": True}]}


def flow(policy, command, around="auto", **step):
    """A workflow of one shell step under a policy."""
    own = {"id": "a", "kind": "shell", "command": command, "on_validation_fail": "abort", **step}
    made = {"name": "x", "sandbox": around, "command_policy": OPEN | policy, "sub_steps": [own]}
    return json.dumps(made)


def rows(bench, instance_id):
    from sqlalchemy import select

    from openry.ledger.schema import commands_log

    with bench.engine.ledger.read() as connection:
        wanted = select(commands_log.c.exit_code, commands_log.c.stderr, commands_log.c.shell)
        return connection.execute(wanted.where(commands_log.c.instance_id == instance_id)).all()


@pytest.mark.parametrize(
    ("policy", "command", "said"),
    [
        ({"limits": {"procs": 8}}, "for i in $(seq 40); do sleep 9 & done; wait", "8 are allowed"),
        ({"limits": {"time_s": 0.3}}, "sleep 9", "stopped after 0.3 s (timeout)"),
        ({"limits": {"disk_mb": 1}}, "python3 -c \"open('b','wb').write(b'x'*3000000)\"", "large"),
        ({"files": {"write": ["out/**"]}}, "python3 -c \"open('b','w')\"", "Read-only file system"),
        ({"files": {"read": ["in/**"]}}, "python3 -c \"open('top.txt')\"", "No such file"),
        (
            {"network": {"hosts": ["a.test"]}},
            "python3 -c 'import urllib.request as r; r.urlopen(\"http://b.test/\")'",
            "b.test:80 is not allowed; allowed: a.test",
        ),
    ],
)
def test_a_step_is_held_to_it(bench, workspace, policy, command, said):
    """Without the policy the same command does what it says, but for a host that is not there."""
    for name in ("in", "out"):
        (workspace / name).mkdir()
    (workspace / "top.txt").write_text("x")

    held = bench.run(flow(policy, command))

    assert not held.ok
    (row,) = rows(bench, held.instance_id)
    assert said in row.stderr, row
    assert "sandbox: bubblewrap" in row.shell
    if "network" not in policy:
        free = "true; " + command.replace("sleep 9", "sleep 0.5")
        assert bench.run(flow({}, free)).ok


def test_what_it_leaves_works(bench, workspace):
    """A folder it may write is made; what it may read is there, and nothing else."""
    (workspace / "in").mkdir()
    (workspace / "in" / "a.txt").write_text("a")
    (workspace / "other.txt").write_text("x")
    policy = {"files": {"read": ["in/**"], "write": ["out/**"]}, "require": ["fs_read", "fs_write"]}

    done = bench.run(flow(policy, "cat in/a.txt > out/b.txt; ls"))

    assert done.ok, done
    assert done.step("a").payload["_stdout"] == "in\nout\n"
    assert bench.read("out/b.txt") == "a"


@pytest.mark.parametrize(
    ("policy", "sandbox", "said"),
    [
        ({"require": ["tree_kill"]}, "none", "`tree_kill` is required, which `none` cannot hold"),
        ({"require": ["net"]}, "none", "write `sandbox: auto`"),
        ({"require": ["fs_read"], "files": {"read": ["*.txt"]}}, "auto", "whole folders only"),
    ],
)
def test_what_cannot_be_held_is_not_run(bench, workspace, policy, sandbox, said):
    """125 with the way to get it, in the row and as the reason of the step."""
    held = bench.run(flow(policy, "touch ran", sandbox))

    assert not held.ok
    assert said in held.step("a").reason
    assert [row.exit_code for row in rows(bench, held.instance_id)] == [125]
    assert not (workspace / "ran").exists()


def test_a_step_may_not_ask_for_more_than_its_workflow(bench, workspace):
    """It is refused with a sentence, and nothing is started."""
    held = bench.run(flow({}, "touch ran", {"write": ["out"]}, sandbox={"write": ["/var"]}))

    assert "which its workflow's has not" in held.step("a").reason
    assert not (workspace / "ran").exists()
