"""What the built-in agent does with a model's replies, whole, half or senseless."""

from __future__ import annotations

import json

import pytest

from openry.agent.task import AgentEnding, Block, Mode
from openry.errors import BudgetError, ModelError
from openry.llm import ChatReply, ScriptedModel, ToolCall

DONE = '{"action": "report", "status": "completed"}'


def act(**action: object) -> str:
    return json.dumps(action)


def run(command: str) -> str:
    return act(action="run", command=command)


def tool(name: str, **arguments: object) -> ChatReply:
    call = ToolCall("c1", name, json.dumps(arguments))
    return ChatReply("", (call,), "tool_calls")


def free(desk, text="count", **more):
    return desk.task(text, mode=Mode.FREE, **more)


# --- acting ---------------------------------------------------------------------------------


def test_a_model_without_tool_calling_runs_a_command_and_reports(desk):
    """One JSON object a turn is enough to run a command, read its answer and report."""
    (desk.workspace / "a.txt").write_text("x\ny\n")
    model = ScriptedModel(
        [run("wc -l < a.txt"), act(action="report", status="completed", payload={"n": 2})]
    )

    outcome = desk.run(free(desk, payload_keys=("n",)), model)

    assert (outcome.ending, outcome.payload, outcome.tool_calls) == (
        AgentEnding.COMPLETED,
        {"n": 2},
        1,
    )
    answer = json.loads(model.requests[1].messages[-1].text)
    assert list(answer) == ["exit_code", "stdout", "stderr", "duration_ms"]
    assert (answer["exit_code"], answer["stdout"].strip()) == (0, "2")
    assert (desk.row().status, desk.row().payload) == ("completed", {"n": 2})


def test_a_tool_calling_model_has_one_tool_in_mode_free(desk):
    """`openry` runs a command line, and the same tool reports."""
    said = "openry --status completed --payload '{\"n\": 1}'"
    model = ScriptedModel(
        [tool("openry", command="echo hi"), tool("openry", command=said)], tool_calling=True
    )

    outcome = desk.run(free(desk), model)

    assert outcome.ending is AgentEnding.COMPLETED
    assert [t["function"]["name"] for t in model.requests[0].tools] == ["openry"]
    assert model.requests[0].schema is None
    answer = model.requests[1].messages[-1]
    assert (answer.role, answer.tool_call_id) == ("tool", "c1")
    assert desk.row().payload == {"n": 1}


def test_a_free_agent_may_call_what_the_step_names(desk):
    """In mode free capabilities are described, and called through the one tool."""
    (desk.workspace / "a.txt").write_text("b\na\n")
    call = 'openry --call sort_lines --args \'{"path": "a.txt", "output": "s.txt"}\''
    end = tool("openry", command="openry --status completed")
    model = ScriptedModel([tool("openry", command=call), end], tool_calling=True)

    outcome = desk.run(free(desk, offered=("sort_lines",)), model)

    assert outcome.ending is AgentEnding.COMPLETED
    assert (desk.workspace / "s.txt").read_text() == "a\nb\n"
    assert "- sort_lines:" in model.requests[0].messages[0].text


def test_in_mode_capabilities_only_what_is_offered_can_be_called(desk):
    """A command, and a capability that was not offered, are told so and not run."""
    (desk.workspace / "app.log").write_text("ERROR a\nINFO b\n")
    wrong = act(action="delete", arguments={"path": "app.log"})
    right = act(
        action="filter_lines",
        arguments={"path": "app.log", "needle": "ERROR", "output": "errors.txt"},
    )
    model = ScriptedModel([run("rm app.log"), wrong, right, DONE])

    outcome = desk.run(
        desk.task("Save 'ERROR' lines of app.log to errors.txt", offered=("filter_lines",)), model
    )

    assert outcome.ending is AgentEnding.COMPLETED
    assert (desk.workspace / "errors.txt").read_text() == "ERROR a\n"
    assert (desk.workspace / "app.log").exists()
    assert len(desk.commands()) == 1
    assert "not offered" in model.requests[2].messages[-1].text


def test_arguments_are_enumerations_of_what_is_there(desk):
    """A small model can only name what exists in the task or the folder, and must first act."""
    (desk.workspace / "app.log").write_text("x\n")
    take = act(
        action="first_lines", arguments={"path": "app.log", "count": 3, "output": "head.txt"}
    )
    model = ScriptedModel([take, DONE])

    desk.run(
        desk.task("Save the first 3 lines of app.log to head.txt", offered=("first_lines",)), model
    )

    (call,) = model.requests[0].schema["anyOf"]
    properties = call["properties"]["arguments"]["properties"]
    assert call["properties"]["action"] == {"const": "first_lines"}
    assert properties["path"]["enum"] == ["app.log"]
    assert properties["output"]["enum"][0] == "head.txt"
    assert 3 in properties["count"]["enum"]
    _, report = model.requests[1].schema["anyOf"]
    assert report["properties"]["status"] == {"enum": ["completed", "failed"]}


def test_wrong_arguments_come_back_with_what_fits(desk):
    """All problems of a call are told at once, with the schema; nothing is run."""
    bad = act(action="first_lines", arguments={"file": "a.txt", "count": -1})
    model = ScriptedModel([bad, act(action="report", status="failed")])

    outcome = desk.run(desk.task("x", offered=("first_lines",)), model)

    told = model.requests[1].messages[-1].text
    assert "bad arguments" in told and "`path`" in told and '"properties"' in told
    assert desk.commands() == ()
    assert outcome.ending is AgentEnding.FAILED


def test_a_missing_payload_key_is_told_before_it_is_reported(desk):
    """A report that would fail validation can be mended in the same conversation."""
    model = ScriptedModel([DONE, act(action="report", status="completed", payload={"total": 4})])

    outcome = desk.run(free(desk, payload_keys=("total",)), model)

    assert outcome.payload == {"total": 4}
    assert "lacks `total`" in model.requests[1].messages[-1].text


# --- replies that are none --------------------------------------------------------------------


def test_a_reply_without_action_is_told_once_how_to_act(desk):
    """The first one is answered with an example; a second in a row ends the work."""
    model = ScriptedModel(["I will now count the lines.", "Sure! Here we go."])

    outcome = desk.run(free(desk), model)

    assert outcome.ending is AgentEnding.STOPPED
    assert outcome.reason.startswith("no_action")
    assert '{"action": "run"' in model.requests[1].messages[-1].text


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("-inf")])
@pytest.mark.parametrize("where", ["key", "value"])
def test_a_payload_that_json_cannot_hold_is_never_stored(desk, value, where):
    """The model is told, and reports again; a name it gives of half a character ended the step."""
    payload = {"a": [value]} if where == "value" else {str(value): 1, "n": value}
    report = act(action="report", status="completed", payload=payload)
    model = ScriptedModel([run("true"), report, run("openry output show 'out-\ud800'"), DONE])

    outcome = desk.run(free(desk), model)

    assert outcome.ending is AgentEnding.COMPLETED, outcome
    told = [request.messages[-1].text for request in model.requests]
    assert "`payload` holds what JSON cannot" in told[2]
    assert "holds a NUL or half a character" in told[3]
    assert outcome.payload == {}


@pytest.mark.parametrize("calls_tools", [True, False])
def test_an_action_after_the_telling_off_clears_it(desk, calls_tools):
    """Two replies without action count only when nothing was done between them."""
    good = tool("openry", command="true") if calls_tools else run("true")
    end = tool("openry", command="openry --status completed") if calls_tools else DONE
    model = ScriptedModel(["hm", good, "hm", good, end], tool_calling=calls_tools)

    assert desk.run(free(desk), model).ending is AgentEnding.COMPLETED


def test_half_a_tool_call_is_never_run(desk):
    """A reply that was cut is asked for once more; nothing of it reaches a shell."""
    half = ChatReply("", (ToolCall("c", "openry", '{"command": "touch x'),), "length")
    whole = ChatReply("", (ToolCall("c", "openry", '{"command": "touch x"}'),), "length")
    model = ScriptedModel([half, whole], tool_calling=True)

    outcome = desk.run(free(desk), model)

    assert (outcome.ending, outcome.reason[:3]) == (AgentEnding.STOPPED, "cut")
    assert desk.commands() == ()


def test_a_broken_stream_is_asked_again_once(desk):
    """A transport error inside a reply costs one more try, then the step fails with its name."""
    model = ScriptedModel([ModelError("cut", "the answer broke off", '{"action": "run"'), DONE])
    assert desk.run(free(desk), model).ending is AgentEnding.COMPLETED


def test_a_model_that_cannot_be_asked_is_an_outcome(desk):
    """No key, no network: the reason names it, and no exception reaches the engine."""
    outcome = desk.run(free(desk), ScriptedModel([ModelError("no_key", "set OPENAI_API_KEY")]))
    assert (outcome.ending, outcome.reason) == (AgentEnding.FAILED, "no_key: set OPENAI_API_KEY")


# --- caps -------------------------------------------------------------------------------------


def test_the_same_failure_three_times_ends_the_work(desk):
    """A runaway is stopped by its third identical pair of call and error."""
    model = ScriptedModel([run("cat missing.txt")] * 9)

    outcome = desk.run(free(desk, max_turns=9), model)

    assert (outcome.ending, outcome.reason[:6]) == (AgentEnding.STOPPED, "looped")
    assert len(model.requests) == 3


def test_the_same_answer_four_times_in_a_row_ends_the_work(desk):
    """Success without progress is a loop as well; other commands between are none."""
    outcome = desk.run(free(desk), ScriptedModel([run("echo a")] * 9))
    assert (outcome.reason[:6], outcome.tool_calls) == ("looped", 4)


def test_turns_are_capped(desk):
    """`max_turns` replies and no more are asked for."""
    model = ScriptedModel([run(f"echo {n}") for n in range(9)])
    outcome = desk.run(free(desk, max_turns=3), model)
    assert (outcome.reason, outcome.turns) == ("max_turns", 3)


def test_the_budget_ends_the_work_before_the_call(desk):
    """A budget that is used up is a reason, not an exception."""
    outcome = desk.run(free(desk), ScriptedModel([BudgetError("100 of 100 tokens are used")]))
    assert outcome.reason == "budget: 100 of 100 tokens are used"


def test_after_the_deadline_no_turn_begins(desk):
    """Wall time is looked at before each turn."""
    clock = iter([0.0, 5.0, 11.0])
    model = ScriptedModel([run("echo 1"), run("echo 2"), run("echo 3")])
    outcome = desk.run(free(desk, deadline_s=10.0), model, now=lambda: next(clock))
    assert (outcome.reason, outcome.turns) == ("timeout", 2)


def test_the_call_limit_brakes_and_leaves_time_to_report(make_desk):
    """The call after the last one runs nothing; two turns are left to say how it went."""
    desk = make_desk(max_tool_calls=1)
    end = act(action="report", status="cancelled")
    model = ScriptedModel([run("echo 1"), run("touch two"), end])

    outcome = desk.run(free(desk, max_tool_calls=1), model)

    assert "User requested immediate stop" in model.requests[2].messages[-1].text
    assert not (desk.workspace / "two").exists()
    assert outcome.ending is AgentEnding.CANCELLED


def test_who_ignores_the_brake_is_stopped(make_desk):
    """After the brake only so many turns are paid for."""
    desk = make_desk(max_tool_calls=1)
    outcome = desk.run(free(desk), ScriptedModel([run(f"echo {n}") for n in range(9)]))
    assert (outcome.ending, outcome.reason, outcome.turns) == (AgentEnding.STOPPED, "braked", 4)


def test_should_stop_ends_it_between_turns(desk):
    """The engine's hard brake is seen before the next reply is paid for."""
    outcome = desk.run(free(desk), ScriptedModel([]), should_stop=lambda: True)
    assert (outcome.ending, outcome.turns) == (AgentEnding.STOPPED, 0)


# --- prompts ------------------------------------------------------------------------------------


def test_the_prompt_tells_contract_task_payload_and_last_failure(desk):
    """What a model must know to do better this time stands in its first two messages."""
    (desk.workspace / "a.txt").write_text("x")
    task = free(
        desk,
        "Count the lines",
        payload={"file": "a.txt"},
        payload_keys=("n",),
        blocks=(Block("House rules", "be brief"),),
        last_failure="- `payload_has_key key=n`: the payload has no `n`",
        max_tool_calls=7,
    )
    model = ScriptedModel([act(action="report", status="failed")])

    desk.run(task, model)

    contract, first = (message.text for message in model.requests[0].messages)
    for words in ("at most 7", "these keys: n", "does not last", "User requested immediate stop"):
        assert words in contract
    for words in ("Task: Count the lines", "a.txt", '{"file": "a.txt"}', "no `n`", "be brief"):
        assert words in first


def test_secrets_never_reach_the_model(desk):
    """A secret in the task, in a payload or in an answer is replaced before it is said."""
    secret = "hunter2-hunter2"
    model = ScriptedModel([run("echo hunter2-hunter2"), DONE])

    desk.run(
        free(desk, f"use {secret}", payload={"k": secret}), model, redact=desk.hand.redactor.text
    )

    said = "".join(request.prompt_text() for request in model.requests)
    assert secret not in said
    assert "***SERVICE_TOKEN***" in said


def test_old_answers_are_folded_when_the_window_is_small(desk):
    """A long conversation keeps contract, task and the last turns whole."""
    big = "head -c 4000 /dev/zero | tr '\\0' x; echo"
    script = [run(f"{big} {n}") for n in range(6)]
    model = ScriptedModel([*script, DONE], context_tokens=8000)

    outcome = desk.run(free(desk, "keep me"), model)

    last = model.requests[-1].messages
    assert outcome.ending is AgentEnding.COMPLETED
    assert "keep me" in last[1].text
    assert last[3].text.startswith("exit 0: xxx") and len(last[3].text) < 200
    assert len(last[-1].text) > 4000
