"""Actions of one reply: what may be done at the same time, and what comes of it."""

from __future__ import annotations

import json
import threading
from itertools import count, pairwise

import pytest

from openry.agent.schedule import Together, carry_out
from openry.agent.task import AgentEnding, Mode
from openry.agent.touches import ANYTHING, Touch, conflict, of_call, of_line, waits
from openry.capability import load_registry
from openry.llm import ChatReply, ScriptedModel, ToolCall
from tests.meeting import meeting_pack

HANG_GUARD_S = 60.0


def calls(*actions: tuple[str, dict]) -> ChatReply:
    """One reply with several tool calls, named c0, c1, …"""
    made = [
        ToolCall(f"c{at}", name, json.dumps(arguments))
        for at, (name, arguments) in enumerate(actions)
    ]
    return ChatReply("", tuple(made), "tool_calls")


def lines(*texts: str) -> ChatReply:
    return calls(*(("openry", {"command": text}) for text in texts))


DONE = lines("openry --status completed")


def free(desk, **more):
    return desk.task("count", mode=Mode.FREE, parallel_actions=4, **more)


def answers(model) -> list[str]:
    return [each.text for each in model.requests[-1].messages if each.role == "tool"]


# --- what conflicts -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").write_text("a\n")
    (tmp_path / "b").write_text("b\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x").write_text("x\n")
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other", "free"),
    [
        ("sort a > a.out", "sort b > b.out", True),
        ("cat a", "wc -l a", True),
        ("cat a > d/one", "cat b > d/two", True),
        ("ls", "cat *", True),
        ("cat a", "echo more >> a", False),
        ("echo 1 > c", "echo 2 > c", False),
        ("ls", "touch c", False),
        ("cat *", "touch c", False),
        ("[ -e c ] && echo yes", "touch c", False),
        ("test -e c", "touch c", False),
        ("grep -r x", "echo x > c", False),
        ("grep x a", "echo x > c", True),
        ("cat d/x", "rm -r d", False),
        ("cp -r d e", "echo y > d/x", False),
        ("mkdir -p new/one", "echo y > new/two", False),
        ("rmdir -p d/new", "mkdir d/other", False),
        ("mv a c", "cat c", False),
        ("cd d && cat x", "echo y > d/x", False),
        ("sed -i.bak s/a/b/ a", "cat a.bak", False),
        ("python3 count.py", "cat a", False),
        ("cat $unknown", "cat a", False),
        ("curl http://example.com", "cat a", False),
        ("cat ../c", "cat a", False),
        ("ln -s a l", "cat b", False),
        ("echo 1 > C", "echo 2 > c", False),
    ],
)
def test_what_two_lines_touch_says_whether_they_may_change_places(folder, one, other, free):
    """Both ways round; what cannot be told conflicts with everything."""
    touches = [of_line(text, folder) for text in (one, other)]
    assert [len(each) for each in waits(touches)] == [0, 0 if free else 1]
    assert conflict(*touches) is conflict(*touches[::-1])


def test_what_links_lead_to_is_not_told(folder):
    """A file with two names, a link, and a folder that holds one conflict with everything."""
    (folder / "hard").hardlink_to(folder / "a")
    (folder / "d/link").symlink_to("../b")
    for text in ("cat hard", "cat a", "cat d/link", "cp -r d e"):
        assert of_line(text, folder) == ANYTHING, text
    assert of_line("cat d/x", folder) != ANYTHING
    for text in ("cp -r [a-c] e", "mv d/* e", "cp b c"):
        assert of_line(text, folder) == ANYTHING, text


def test_what_lies_below_a_folder_that_is_moved_waits_for_all(folder):
    """After `rm -r d` the name d/x may lead elsewhere, so nothing is said of it before."""
    touches = [of_line(text, folder) for text in ("rm -r d", "cat b", "cat d/x", "cat a")]
    assert waits(touches) == [frozenset(), frozenset(), {0, 1}, {2}]


def test_a_call_touches_what_its_arguments_name(folder):
    """Files, and for the web its host; what asks a person or names no host waits for all."""
    registry = load_registry()

    def touch(name, **given):
        return of_call(registry.get(name), given, folder)

    root = str(folder.resolve()).casefold()
    assert touch("sort_lines", path="a", output="c") == Touch(
        frozenset({f"{root}/a", f"{root}/c"}), frozenset({f"{root}/c"})
    )
    assert touch("find_files", pattern="*.x").reads == {root}
    one = touch("http_request", url="http://example.com/1")
    posted = touch("http_request", url="http://example.com/2", method="POST")
    assert not conflict(one, one) and conflict(one, posted) and conflict(posted, posted)
    assert touch("sort_lines", file="a") == ANYTHING
    writes = registry.get("current_time").model_copy(update={"side_effects": "writes"})
    assert of_call(writes, {"zone": "UTC"}, folder) == ANYTHING
    assert touch("fetch_mail", host="mail.example.com", user="u") == ANYTHING


# --- the order ------------------------------------------------------------------------------


def test_results_stand_as_they_were_asked_for():
    """Whichever ends first; no more than two are under way."""
    second_ended, under_way, most = threading.Event(), [], []

    def deed(number):
        def work():
            under_way.append(number)
            most.append(len(under_way))
            if number == 0:
                assert second_ended.wait(HANG_GUARD_S)
            if number == 1:
                second_ended.set()
            under_way.remove(number)
            return number

        return work

    assert carry_out([deed(n) for n in range(5)], [frozenset()] * 5, 2) == [0, 1, 2, 3, 4]
    assert max(most) == 2


def test_what_goes_wrong_ends_it_after_those_under_way():
    """The mistake is raised; what has not begun is not begun."""
    begun = []

    def wrong():
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        carry_out([wrong, lambda: begun.append(1)], [frozenset(), frozenset({0})], 4)
    assert begun == []


def test_the_workspace_is_looked_at_when_nobody_works_in_it():
    """What is done after each action waits for those at the same time, and none is forgotten."""
    numbers = count(1)
    together = Together(lambda: next(numbers))
    together()
    with together:
        for _ in range(3):
            together()
        assert next(numbers) == 2
    assert next(numbers) == 6
    Together(None)()


# --- the agent ------------------------------------------------------------------------------


def test_two_actions_are_under_way_at_the_same_time(desk, tmp_path):
    """Each waits for the other's file, so neither would end alone."""
    desk.registry = load_registry([meeting_pack(tmp_path)])
    both = calls(
        ("meet", {"output": "a", "others": ["b"]}), ("meet", {"output": "b", "others": ["a"]})
    )
    end = calls(("report", {"status": "completed"}))
    model = ScriptedModel([both, end], tool_calling=True)

    outcome = desk.run(desk.task("meet", offered=("meet",), parallel_actions=2), model)

    assert outcome.ending is AgentEnding.COMPLETED and outcome.tool_calls == 2
    assert [json.loads(text)["success"] for text in answers(model)] == [True, True]
    rows = desk.commands()
    assert all(row.exit_code == 0 for row in rows)
    assert max(row.started_at for row in rows) <= min(row.ended_at for row in rows)


def test_one_after_the_other_is_the_default(desk):
    """Without the key nothing overlaps: each row begins when the one before it has ended."""
    model = ScriptedModel([lines("cat /dev/null", "echo 1", "echo 2"), DONE], tool_calling=True)

    desk.run(desk.task("count", mode=Mode.FREE), model)

    rows = desk.commands()
    assert [row.command for row in rows] == ["cat /dev/null", "echo 1", "echo 2"]
    assert all(one.ended_at <= two.started_at for one, two in pairwise(rows))


def test_answers_come_in_the_order_asked(desk):
    """Actions that need each other see what came before; each answer stands under its call."""
    (desk.workspace / "a").write_text("3\n1\n2\n")
    asked = lines("sort a > s", "cat s", "wc -l < a", "head -1 s > first", "cat first", "ls")
    model = ScriptedModel([asked, DONE], tool_calling=True)

    outcome = desk.run(free(desk), model)

    assert outcome.ending is AgentEnding.COMPLETED and outcome.tool_calls == 6
    said = [json.loads(text)["stdout"].split() for text in answers(model)]
    assert said == [[], ["1", "2", "3"], ["3"], [], ["1"], ["a", "first", "s"]]
    ids = [m.tool_call_id for m in model.requests[-1].messages if m.role == "tool"]
    assert ids == [f"c{at}" for at in range(6)]
    assert desk.row().tool_calls == 6 == len(desk.commands())


def test_nothing_is_run_after_a_report_in_the_same_reply(desk):
    """What stands before it is done first, what stands after it is not."""
    asked = lines("touch one", "touch two", "openry --status completed", "touch three")
    model = ScriptedModel([asked], tool_calling=True)

    assert desk.run(free(desk), model).ending is AgentEnding.COMPLETED
    assert sorted(path.name for path in desk.workspace.iterdir()) == ["one", "two"]


def test_the_last_calls_of_a_limit_are_those_asked_for_last(make_desk):
    """Three are allowed: the fourth is braked, whichever would have been quicker."""
    desk = make_desk(max_tool_calls=3)
    asked = lines("echo 1", "echo 2", "echo 3", "echo 4")
    model = ScriptedModel([asked, lines("openry --status cancelled")], tool_calling=True)

    outcome = desk.run(free(desk, max_tool_calls=3), model)

    assert outcome.ending is AgentEnding.CANCELLED
    said = [json.loads(text) for text in answers(model)]
    assert [each["stdout"].strip() for each in said[:3]] == ["1", "2", "3"]
    assert "immediate stop" in said[3]["stdout"]


def test_the_same_failure_over_and_over_ends_the_work(desk):
    """Also where the same action stands several times in one reply."""
    model = ScriptedModel([lines(*["cat nothing"] * 3)], tool_calling=True)

    outcome = desk.run(free(desk), model)

    assert (outcome.ending, outcome.reason.partition(":")[0]) == (AgentEnding.STOPPED, "looped")


def test_a_model_without_tool_calling_may_ask_for_several(desk):
    """Its grammar and its prompt offer a list, which is answered one by one."""
    (desk.workspace / "a").write_text("x\n")
    some = [{"action": "run", "command": text} for text in ("wc -l < a", "sort a > b")]
    end = json.dumps({"action": "report", "status": "completed"})
    model = ScriptedModel([json.dumps({"actions": some}), end])

    outcome = desk.run(free(desk), model)

    assert outcome.ending is AgentEnding.COMPLETED and outcome.tool_calls == 2
    assert '{"actions": [{…}, {…}]}' in model.requests[0].messages[0].text
    many = next(
        each["properties"]["actions"]
        for each in model.requests[0].schema["anyOf"]
        if "actions" in each["properties"]
    )
    assert (many["minItems"], many["maxItems"]) == (2, 4)
    alone = ScriptedModel([json.dumps({"actions": some}), end])
    desk.run(desk.task("x", mode=Mode.FREE), alone)
    assert "has no `action`" in alone.requests[1].messages[-1].text
    assert "actions" not in json.dumps(alone.requests[0].schema)
    assert "same time" not in alone.requests[0].messages[0].text
