"""Guards: what no generated change may do."""

from __future__ import annotations

from typing import Any

import pytest

from loop.guards import hides_failure, objections, stricter, writes_constant

TASK = "Count the lines with 'ERROR' in app.log and save the number to count.txt"


def workflow(*steps: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"name": "w", **top, "sub_steps": list(steps)}


def shell(command: str, **more: Any) -> dict[str, Any]:
    return {"id": "a", "kind": "shell", "command": command, **more}


EXISTS = {"type": "file_exists", "path": "count.txt"}
GOOD = shell("grep -c ERROR app.log > count.txt", validation=[EXISTS])


@pytest.mark.parametrize(
    "command",
    [
        "grep -c x a.log > n || true",
        "grep -c x a.log > n || :",
        "grep x a.log 2>/dev/null > n",
        "grep x a.log &> /dev/null",
        "set +e; grep x a.log",
        "grep x a.log; exit 0",
        "grep x a.log ; true",
        "trap 'exit 0' EXIT; false",
    ],
)
def test_a_command_may_not_hide_its_failure(command):
    """Each known way of making a failing command look well is seen."""
    assert hides_failure(command)


@pytest.mark.parametrize(
    "command",
    ["grep -c true a.log", "test -f a || echo no", "sort a 2> err.txt", "echo '|| true'x"],
)
def test_an_honest_command_is_left_alone(command):
    """What only looks like hiding is no objection."""
    assert not hides_failure(command)


@pytest.mark.parametrize("command", ["echo 2 > count.txt", "printf '2\\n' > count.txt"])
def test_a_constant_is_no_computation(command):
    """Writing a literal into a result is refused, unless the task itself names it."""
    assert writes_constant(command)
    assert objections(workflow(GOOD), workflow(shell(command, validation=[EXISTS])), task=TASK)


def test_a_constant_the_task_names_is_meant():
    """Someone who asks for `hello` in a file gets `hello` in a file."""
    parent, child = workflow(shell("false")), workflow(shell("echo hello > x.txt"))

    assert not objections(parent, child, task="Write hello into x.txt")


def test_a_check_may_not_be_loosened_on_the_way():
    """Dropping or weakening a rule is an objection, adding or strengthening one is none."""
    weaker = shell(GOOD["command"])
    stronger = shell(
        GOOD["command"],
        validation=[{"type": "file_contains", "path": "count.txt", "regex": r"^\d+$"}],
    )

    assert objections(workflow(GOOD), workflow(weaker), task=TASK)
    assert not objections(workflow(GOOD), workflow(stronger), task=TASK)


def test_a_contract_goes_with_its_call():
    """Only the rules that the old call itself ensured may go when the call is replaced."""
    step = {"id": "a", "kind": "capability", "capability": "x", "validation": [EXISTS]}
    other = {**step, "capability": "y", "validation": []}

    def contract(step):
        return [EXISTS]

    assert objections(workflow(step), workflow(other), task=TASK)
    assert not objections(workflow(step), workflow(other), task=TASK, contract=contract)


@pytest.mark.parametrize(
    "more",
    [
        {"sandbox": "none"},
        {"secrets": ["TOKEN"]},
        {"env": {"A": "b"}},
        {"command_policy": "permissive"},
        {"agent": "big/model"},
    ],
)
def test_powers_grow_only_by_a_person(more):
    """No edit gives a step more than it had, nor brings a new step that has more."""
    grown = shell(GOOD["command"], validation=[EXISTS], **more)
    new = {**shell("ls", **more), "id": "b"}

    assert objections(workflow(GOOD), workflow(grown), task=TASK)
    assert objections(workflow(GOOD), workflow(GOOD, new), task=TASK)
    assert objections(workflow(GOOD), workflow(GOOD, **more), task=TASK)


def test_a_policy_may_shrink_by_itself():
    """Narrowing is always allowed."""
    narrow = shell(GOOD["command"], validation=[EXISTS], command_policy="strict")

    assert not objections(workflow(GOOD), workflow(narrow), task=TASK)


def test_a_step_is_not_its_own_witness():
    """A check on a flag file that the command itself writes shows nothing."""
    child = shell(
        "grep -c ERROR app.log > count.txt && touch ok.flag",
        validation=[EXISTS, {"type": "file_exists", "path": "ok.flag"}],
    )

    assert objections(workflow(GOOD), workflow(child), task=TASK, results=["count.txt"])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (EXISTS, {"type": "file_exists", "path": "other.txt"}, False),
        (EXISTS, {"type": "file_size_greater_than", "path": "count.txt", "min_bytes": 1}, True),
        (
            {"type": "payload_value_in_set", "key": "k", "values": ["a", "b"]},
            {"type": "payload_value_in_set", "key": "k", "values": ["a"]},
            True,
        ),
        (
            {"type": "payload_value_in_set", "key": "k", "values": ["a"]},
            {"type": "payload_value_in_set", "key": "k", "values": ["a", "b"]},
            False,
        ),
        (
            {"type": "payload_value_matches", "key": "k", "regex": "^a"},
            {"type": "payload_value_equals", "key": "k", "value": "abc"},
            True,
        ),
        (
            {"type": "payload_value_matches", "key": "k", "regex": "^a"},
            {"type": "payload_value_matches", "key": "k", "regex": "^ab"},
            False,
        ),
        (
            {"type": "file_size_greater_than", "path": "a", "min_bytes": 5},
            {"type": "file_size_greater_than", "path": "a", "min_bytes": 4},
            False,
        ),
    ],
)
def test_stricter_means_provably_stricter(old, new, expected):
    """Unsure is no: two different regexes are never compared."""
    assert stricter(old, new) is expected


def step(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": "shell", "command": f"make {name}", **more}


CHECKED = step("a", validation=[EXISTS])


@pytest.mark.parametrize(
    "steps",
    [
        (step("a", validation=[EXISTS], on_failure="b"), step("b")),
        (step("a", validation=[EXISTS], on_validation_fail="b"), step("b")),
        (step("x", on_success="b"), CHECKED, step("b")),
        (
            step("a", validation=[EXISTS], on_failure="f", on_success="b"),
            step("f", on_success="b"),
            step("b"),
        ),
        (
            step("x", validation_routing=[{"when": EXISTS, "on_match": "done"}]),
            CHECKED,
            step("b"),
        ),
    ],
)
def test_no_run_may_end_well_past_a_check(steps):
    """However it is led round: a step that no run could avoid stays unavoidable."""
    found = objections(workflow(CHECKED, step("b")), workflow(*steps), task=TASK)

    assert any("could end well without step `a`" in what for what in found)


def test_a_fallback_that_holds_the_same_checks_is_no_way_round():
    """Another way to the same result may stand beside the first, under the same rules."""
    child = workflow(
        step("a", validation=[EXISTS], on_failure="f", on_success="b"),
        step("f", validation=[EXISTS], on_success="b"),
        step("b"),
    )

    assert objections(workflow(CHECKED, step("b")), child, task=TASK) == ()


def test_a_step_without_checks_has_no_fallback():
    """Its exit code is its only check, and nothing else can hold that up."""
    child = workflow(
        step("a", on_failure="f", on_success="b"), step("f", on_success="b"), step("b")
    )

    assert objections(workflow(step("a"), step("b")), child, task=TASK)


def test_going_back_is_no_way_round():
    """A failure that leads to an earlier step meets the check again."""
    parent = workflow(step("x"), CHECKED)
    child = workflow(step("x"), step("a", validation=[EXISTS], on_failure="x"))

    assert objections(parent, child, task=TASK) == ()


def test_steps_that_stand_for_another_keep_its_checks_together():
    """Split or merged, the rules and reports of the old step are all there, or it is refused."""
    before = step("a", validation=[EXISTS], expect_payload=True, payload_keys=["n"])
    parts = (step("a"), step("b", validation=[EXISTS], expect_payload=True, payload_keys=["n"]))
    loose = (step("a"), step("b", expect_payload=True))
    heirs = {"a": ("a", "b")}

    assert objections(workflow(before), workflow(*parts), task=TASK, heirs=heirs) == ()
    found = objections(workflow(before), workflow(*loose), task=TASK, heirs=heirs)
    assert len(found) == 2  # the rule and the key
    merged = {"b": ("a",)}
    assert objections(workflow(*parts), workflow(before), task=TASK, heirs=merged) == ()
    assert objections(workflow(*parts), workflow(step("a")), task=TASK, heirs=merged)


def test_tools_that_reach_out_come_by_a_person_only():
    """What leaves the folder cannot be taken up, not even as an offer to an agent."""
    call = step("n", kind="capability", capability="http_request")
    offer = step("n", kind="agent", capabilities=["http_request"])

    for new in (call, offer):
        child = workflow(CHECKED, new)
        found = objections(
            workflow(CHECKED), child, task=TASK, reaches_out=lambda name: name == "http_request"
        )
        assert any("reaches beyond the folder" in what for what in found)
