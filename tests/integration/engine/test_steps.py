"""What each kind of step does, and what becomes of what it said."""

from __future__ import annotations

import json

import pytest


def states(outcome):
    return [(step.id, step.state) for step in outcome.steps]


# --- shell ------------------------------------------------------------------------------------


def test_a_shell_step_hands_its_output_on(bench):
    """Standard output is `_stdout`, and a JSON object in it gives its keys."""
    outcome = bench.run(
        """
        name: chain
        sub_steps:
          - {id: say, kind: shell, command: 'echo "{\\"n\\": 2}"'}
          - id: use
            kind: shell
            command: 'echo "got {{ payload.n }} of {{ steps.say.payload.n }}"'
        """
    )
    assert outcome.ok, outcome
    assert outcome.step("say").payload == {"n": 2, "_stdout": '{"n": 2}\n'}
    assert outcome.step("use").payload == {"_stdout": "got 2 of 2\n"}
    assert states(outcome) == [("say", "done"), ("use", "done")]


def test_payload_keys_pick_from_what_a_command_printed(bench):
    """Only the named keys are taken, and a missing one is named as the failure."""
    text = """
        name: pick
        sub_steps:
          - {{id: a, kind: shell, command: 'echo "{{\\"x\\": 1, \\"y\\": 2}}"', payload_keys: [{}],
             on_validation_fail: abort}}
        """
    good = bench.run(text.format("x"))
    bad = bench.run(text.format("z"))
    assert good.step("a").payload == {"x": 1, "_stdout": '{"x": 1, "y": 2}\n'}
    assert (bad.state, bad.reason) == ("failed", bad.step("a").reason)
    assert "the payload has no `z`" in bad.reason


def test_an_inherited_payload_lies_under_the_new_one(bench):
    """With `inherit_payload` keys of the step before stay, and own ones win."""
    outcome = bench.run(
        """
        name: inherit
        sub_steps:
          - {id: a, kind: shell, command: 'echo "{\\"k\\": 1, \\"both\\": 1}"'}
          - {id: b, kind: shell, command: 'echo "{\\"both\\": 2}"', inherit_payload: true}
          - {id: c, kind: shell, command: 'echo {{ payload.k }} {{ payload.both }}'}
        """
    )
    assert outcome.step("c").payload["_stdout"] == "1 2\n"


def test_payload_from_brings_back_an_earlier_payload(bench):
    """`payload_from` lays another step's latest payload over the inherited one."""
    outcome = bench.run(
        """
        name: earlier
        sub_steps:
          - {id: a, kind: shell, command: 'echo "{\\"k\\": 1}"'}
          - {id: b, kind: shell, command: 'echo "{\\"l\\": 2}"'}
          - {id: c, kind: shell, command: 'echo ${payload.k} ${payload.l}', payload_from: a}
        """
    )
    assert outcome.step("c").payload["_stdout"] == "1 2\n"


def test_an_undefined_name_fails_the_step_before_it_runs(bench):
    """A typo in a template is named with the nearest key, and nothing is deleted by it."""
    keep = bench.workspace / "keep"
    keep.mkdir()
    (keep / "f").touch()
    outcome = bench.run(
        """
        name: careless
        sub_steps:
          - {id: a, kind: shell, command: 'echo "{\\"dir_name\\": \\"keep\\"}"'}
          - {id: b, kind: shell, command: 'rm -rf "$OPENRY_WORKSPACE"/{{ payload.dir_nmae }}/*'}
        """
    )
    assert outcome.state == "failed"
    assert "`payload.dir_nmae` is not defined (did you mean `dir_name`?)" in outcome.reason
    assert outcome.step("b").commands == ()
    assert (keep / "f").exists()


def test_a_failing_command_says_its_exit_code_and_last_words(bench):
    """The reason a person reads is the command's own."""
    outcome = bench.run(
        """
        name: bad
        sub_steps: [{id: a, kind: shell, command: 'echo hm >&2; echo no such thing >&2; exit 3'}]
        """
    )
    assert outcome.reason == "exit 3: no such thing"


def test_a_slow_command_is_stopped_and_says_timeout(bench):
    """`timeout_seconds` ends the command's whole tree and fails the step with that reason."""
    outcome = bench.run(
        """
        name: slow
        sub_steps: [{id: a, kind: shell, command: 'sleep 60 & sleep 60', timeout_seconds: 0.3}]
        """
    )
    assert outcome.reason.startswith("timeout: stopped after 0.3 s")


def test_each_attempt_has_its_idempotency_key(bench):
    """The key differs between attempts, and the workspace is named to the command."""
    outcome = bench.run(
        """
        name: keys
        sub_steps:
          - id: a
            kind: shell
            command: |
              echo "$OPENRY_IDEMPOTENCY_KEY $OPENRY_WORKSPACE" >> keys
              test $(wc -l < keys) = 2
            on_failure: retry
        """
    )
    assert outcome.ok
    first, second = (line.split() for line in bench.read("keys").splitlines())
    assert first[0] != second[0]
    assert first[1] == str(bench.workspace)


def test_named_secrets_reach_only_their_step_and_no_row(bench, monkeypatch):
    """A secret's value is in that step's environment, and nowhere in the ledger."""
    monkeypatch.setenv("MY_PIN", "1234567890")
    outcome = bench.run(
        """
        name: secret
        sub_steps:
          - {id: a, kind: shell, command: 'echo "[$MY_PIN]"'}
          - id: b
            kind: shell
            command: 'echo "[$MY_PIN]"; test ${#MY_PIN} = 10'
            secrets: [MY_PIN]
        """
    )
    assert outcome.ok, outcome.reason
    assert outcome.step("a").payload["_stdout"] == "[]\n"
    assert "1234567890" not in json.dumps(outcome.step("b").payload)


# --- capability -------------------------------------------------------------------------------


def test_a_capability_step_puts_its_result_into_the_payload(bench):
    """`data` is what the tool found; its files are in the workspace."""
    (bench.workspace / "a.txt").write_text("b\na\nc\n")
    outcome = bench.run(
        """
        name: sort
        sub_steps:
          - {id: sort, kind: capability, capability: sort_lines, args: {path: a.txt, output: s.txt}}
          - id: count
            kind: capability
            capability: count_lines
            args: {path: "{{ payload.output }}"}
        """
    )
    assert outcome.ok, outcome.reason
    assert bench.read("s.txt") == "a\nb\nc\n"
    assert outcome.step("sort").payload["output"] == "s.txt"
    assert outcome.step("count").payload["data"] == 3


def test_a_capability_says_what_is_wrong_with_its_arguments(bench):
    """All problems at once, as the step's reason; nothing is run."""
    outcome = bench.run(
        """
        name: wrong
        sub_steps:
          - {id: a, kind: capability, capability: first_lines, args: {path: nope.txt, cuont: 1}}
        """
    )
    assert outcome.state == "failed"
    assert "did you mean `count`?" in outcome.reason


def test_an_unknown_capability_offers_the_nearest(bench):
    """A misspelt capability is named in the reason."""
    outcome = bench.run(
        "{name: x, sub_steps: [{id: a, kind: capability, capability: sort_line, args: {path: a}}]}"
    )
    assert "did you mean `sort_lines`?" in outcome.reason


# --- agent ------------------------------------------------------------------------------------


def report(**payload):
    return json.dumps({"action": "report", "status": "completed", "payload": payload})


def run(command):
    return json.dumps({"action": "run", "command": command})


def test_an_agent_step_acts_through_the_hand(bench):
    """What the agent ran is in the ledger under its step, and what it reported is the payload."""
    model = bench.script(run("printf 'a\\nb\\n' > out.txt"), report(lines=2))
    outcome = bench.run(
        """
        name: agent
        sub_steps:
          - id: write
            description: Write two lines to out.txt
            payload_keys: [lines]
            validation:
              - {type: file_exists, path: out.txt}
              - {type: payload_value_equals, key: lines, value: 2}
        """
    )
    assert outcome.ok, outcome.reason
    assert model.left == 0
    assert outcome.payload == {"lines": 2}
    assert [c.command for c in outcome.step("write").commands] == ["printf 'a\\nb\\n' > out.txt"]
    assert all(rule.passed for rule in outcome.step("write").rules)
    assert outcome.step("write").tokens > 0


def test_the_next_prompt_holds_what_failed(bench):
    """Rule, expectation and the last commands of the attempt before are in the retry's prompt."""
    model = bench.script(run("echo 3 > n.txt"), report(), run("echo 4 > n.txt"), report())
    outcome = bench.run(
        """
        name: again
        sub_steps:
          - id: write
            description: Write the number
            validation: [{type: file_contains, path: n.txt, regex: '^4$'}]
        """
    )
    assert outcome.ok, outcome.reason
    prompt = model.requests[2].messages[1].text
    assert "was not accepted" in prompt
    assert "file_contains path=n.txt" in prompt and "`echo 3 > n.txt`: exit 0" in prompt
    assert outcome.step("write").attempts == 2


def test_an_agent_is_offered_what_the_step_names(bench):
    """A step with `capabilities` is in mode capabilities."""
    (bench.workspace / "a.txt").write_text("b\na\n")
    call = {"action": "sort_lines", "arguments": {"path": "a.txt", "output": "s.txt"}}
    model = bench.script(json.dumps(call), json.dumps({"action": "report", "status": "completed"}))
    outcome = bench.run(
        """
        name: offered
        sub_steps: [{id: a, description: Sort a.txt into s.txt, capabilities: [sort_lines]}]
        """
    )
    assert outcome.ok, outcome.reason
    names = [each["properties"]["action"] for each in model.requests[1].schema["anyOf"]]
    assert names == [{"const": "sort_lines"}, {"const": "report"}]


def test_the_call_after_the_last_one_fails_the_step(bench):
    """`max_tool_calls` commands run, and the step fails with that reason whatever is said."""
    bench.script(run("echo 1 >> n"), run("echo 2 >> n"), run("echo 3 >> n"), report())
    outcome = bench.run("{name: x, sub_steps: [{id: a, description: Count, max_tool_calls: 2}]}")
    assert outcome.state == "failed"
    assert outcome.reason.startswith("max_tool_calls")
    assert bench.read("n") == "1\n2\n"


def test_an_agent_that_gives_up_fails_its_step(bench):
    """`--status failed` is a failure, with the reason the agent gave."""
    said = {"action": "report", "status": "failed", "payload": {"reason": "no such file"}}
    bench.script(json.dumps(said))
    outcome = bench.run("{name: x, sub_steps: [{id: a, description: Do}]}")
    assert (outcome.state, outcome.reason) == ("failed", "no such file")


@pytest.mark.parametrize("calls", [True, False])
def test_an_agent_that_says_nothing_useful_fails_its_step(bench, calls):
    """Prose instead of action is a failed step, with the reason."""
    bench.script("I have done it.", "Really.", tool_calling=calls)
    outcome = bench.run("{name: x, sub_steps: [{id: a, description: Do, max_sub_step_retries: 0}]}")
    assert outcome.reason.startswith("no_action")


def test_prompt_blocks_stand_before_the_task(bench):
    """Text and files of the workspace are read into the prompt."""
    (bench.workspace / "rules.md").write_text("be kind")
    model = bench.script(report())
    outcome = bench.run(
        """
        name: blocks
        sub_steps:
          - id: a
            description: Greet {{ inputs.who }}
            prompt_blocks:
              - {type: text, content: "Today is {{ inputs.day }}", label: Date}
              - {type: file, path: rules.md}
        inputs: {who: {}, day: {default: Monday}}
        """,
        inputs={"who": "Ann"},
    )
    assert outcome.ok, outcome.reason
    prompt = model.requests[0].messages[1].text
    assert (
        prompt.index("Date:\nToday is Monday") < prompt.index("be kind") < prompt.index("Greet Ann")
    )
