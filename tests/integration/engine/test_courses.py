"""Where an instance goes after each step: routes, retries, big steps, people."""

from __future__ import annotations

import pytest

from openry.errors import BadFileError, NotFoundError, UsageError
from openry.orchestrator.loader import load


def states(outcome):
    return [(step.id, step.state) for step in outcome.steps]


# --- validation and retries -------------------------------------------------------------------


def test_validation_fails_a_step_that_said_it_was_done(bench):
    """Exit 0 is not enough: the rule is recorded with what was expected and what was there."""
    outcome = bench.run(
        """
        name: liar
        sub_steps:
          - id: a
            kind: shell
            command: echo 3 > n.txt
            on_validation_fail: abort
            validation: [{type: file_contains, path: n.txt, regex: '^4$'}]
        """
    )
    assert (outcome.state, states(outcome)) == ("failed", [("a", "failed")])
    (rule,) = outcome.step("a").rules
    assert (rule.passed, rule.rule) == (False, "file_contains path=n.txt regex='^4$'")
    assert rule.rule in outcome.reason


@pytest.mark.sandbox
def test_a_command_rule_sees_the_workspace_but_cannot_change_it(bench):
    """A check that tidies up would be no check: in the sandbox the workspace is read-only to it."""
    outcome = bench.run(
        """
        name: look
        sandbox: auto
        sub_steps:
          - id: a
            kind: shell
            command: echo x > n.txt
            on_validation_fail: abort
            validation: [{type: command, run: 'grep -q x n.txt'}, {type: command, run: 'rm n.txt'}]
        """
    )
    first, second = outcome.step("a").rules
    assert first.passed and not second.passed
    assert bench.read("n.txt") == "x\n"


def test_retries_stop_at_the_limit(bench):
    """`max_sub_step_retries` counts retries after the first attempt; then the step is dropped."""
    instance_id = bench.submit(
        """
        name: stubborn
        sub_steps:
          - id: a
            kind: shell
            command: echo x >> n.txt
            max_sub_step_retries: 2
            validation: [{type: file_exists, path: never}]
        """
    )
    outcome = bench.engine.run(instance_id)
    assert (outcome.state, outcome.step("a").state) == ("failed", "dropped")
    assert bench.read("n.txt") == "x\n" * 3
    runs = bench.runs(instance_id)
    assert [run.attempt for run in runs] == [1, 2, 3]
    assert [run.previous_run_id for run in runs] == [None, runs[0].run_id, runs[1].run_id]
    assert [run.sub_step_retry_count for run in runs] == [0, 1, 2]


def test_a_retry_that_succeeds_goes_on(bench):
    """The third try passes, and the step after it runs once."""
    outcome = bench.run(
        """
        name: third
        sub_steps:
          - {id: a, kind: shell, command: 'echo x >> n; test $(wc -l < n) = 3', on_failure: retry}
          - {id: b, kind: shell, command: 'echo done >> d'}
        """
    )
    assert outcome.ok
    assert (outcome.step("a").attempts, bench.read("d")) == (3, "done\n")


def test_backoff_waits_before_a_retry(bench):
    """`retry_backoff_seconds` is waited out, and no longer than needed."""
    instance_id = bench.submit(
        """
        name: patient
        sub_steps:
          - id: a
            kind: shell
            command: 'test -e flag || { touch flag; exit 1; }'
            on_failure: retry
            retry_backoff_seconds: 0.4
        """
    )
    assert bench.engine.run(instance_id).ok
    first, second = bench.runs(instance_id)
    waited = float(second.started_at[17:-1]) - float(first.ended_at[17:-1])
    assert 0.4 <= waited % 60 < 2.0


def test_a_big_step_is_retried_from_its_start_on_a_restored_workspace(bench):
    """What the failed attempt left behind is gone when the big step begins again."""
    (bench.workspace / "input.txt").write_text("first")
    counter = bench.workspace.parent / "counter"
    instance_id = bench.submit(
        f"""
        name: whole
        max_retries: 2
        sub_steps:
          - id: a
            kind: shell
            command: test ! -e litter && echo hm > input.txt && touch litter
          - {{id: b, kind: shell, command: 'echo x >> {counter}; test $(wc -l < {counter}) = 3'}}
        """
    )
    outcome = bench.engine.run(instance_id)
    assert outcome.ok, outcome.reason
    runs = bench.runs(instance_id)
    assert [run.step_id for run in runs] == ["a", "b", "a", "b", "a", "b"]
    assert [run.big_step_retry_count for run in runs] == [0, 0, 1, 1, 2, 2]
    assert bench.read("litter") == ""


# --- routes -------------------------------------------------------------------------------------


def test_routes_lead_where_they_say(bench):
    """Failure, success and validation each have their own way."""
    outcome = bench.run(
        """
        name: routes
        sub_steps:
          - {id: a, kind: shell, command: 'exit 1', on_failure: mend}
          - {id: skipped, kind: shell, command: 'touch skipped'}
          - {id: mend, kind: shell, command: 'echo no', on_success: check}
          - {id: also_skipped, kind: shell, command: 'touch skipped'}
          - id: check
            kind: shell
            command: echo bad
            validation: [{type: payload_value_matches, key: _stdout, regex: good}]
            on_validation_fail: last
          - {id: last, kind: shell, command: 'echo end', on_success: done}
          - {id: never, kind: shell, command: 'touch skipped'}
        """
    )
    assert outcome.ok, outcome.reason
    assert [step.id for step in outcome.steps] == ["a", "mend", "check", "last"]
    assert not (bench.workspace / "skipped").exists()


def test_a_step_on_a_failure_route_knows_what_failed(bench):
    """`last_failure` holds the reason that led there, also when another step failed."""
    outcome = bench.run(
        """
        name: routes
        sub_steps:
          - {id: a, kind: shell, command: 'echo no disk >&2; exit 1', on_failure: mend}
          - {id: mend, kind: shell, command: 'echo {{ last_failure }} > why'}
        """
    )
    assert outcome.ok, outcome.reason
    assert bench.read("why") == "- exit 1: no disk\n"


def test_conditional_routes_are_decided_by_rules(bench):
    """`validation_routing` is asked in order; the first decision wins."""
    text = """
        name: fork
        inputs: {{n: {{type: int}}}}
        sub_steps:
          - id: a
            kind: shell
            command: 'echo "{{\\"n\\": {{{{ inputs.n }}}}}}"'
            validation_routing:
              - when: {{type: payload_value_less_than, key: n, threshold: 10}}
                on_match: small
              - when_any: [{{type: payload_value_equals, key: n, value: 99}}]
                on_match: abort
              - when: {{type: payload_has_key, key: n}}
                on_mismatch: abort
                on_match: large
          - {{id: small, kind: shell, command: 'echo small', on_success: done}}
          - {{id: large, kind: shell, command: 'echo large'}}
        """.format()
    ways = {n: [s.id for s in bench.run(text, inputs={"n": n}).steps][1:] for n in (3, 30, 99)}
    assert ways == {3: ["small"], 30: ["large"], 99: []}


# --- compositions ---------------------------------------------------------------------------------


@pytest.fixture
def composed(tmp_path):
    """Writes workflow files side by side and loads the composition."""

    def make(big_steps, **workflows):
        for name, steps in workflows.items():
            (tmp_path / f"{name}.yaml").write_text(f"name: {name}\nsub_steps:\n{steps}")
        (tmp_path / "all.yaml").write_text(f"name: all\nbig_steps:\n{big_steps}")
        return load(tmp_path / "all.yaml")

    return make


def shell(name, command, **more):
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return f"  - {{id: {name}, kind: shell, command: '{command}'{extra}}}\n"


def test_big_steps_run_in_order_and_hand_on_their_payload(bench, composed):
    """The payload of the last sub step is what the next big step inherits."""
    loaded = composed(
        "  - one\n  - two\n",
        one=shell("a", 'echo "{\\"n\\": 5}"'),
        two=shell("a", "echo got {{ payload.n }}"),
    )
    outcome = bench.engine.run(bench.engine.submit(loaded, workspace=bench.workspace))
    assert outcome.ok, outcome.reason
    assert [(step.big_step, step.id, step.state) for step in outcome.steps] == [
        ("one", "a", "done"),
        ("two", "a", "done"),
    ]
    assert outcome.payload["_stdout"] == "got 5\n"


def test_a_failed_big_step_takes_its_failure_route(bench, composed):
    """`on_failure` of a big step leads on; `when` skips one that does not apply."""
    loaded = composed(
        "  - {ref: one, on_failure: rescue}\n"
        "  - {ref: two, on_success: done}\n"
        "  - {ref: rescue, when: {type: file_exists, path: broken}}\n"
        "  - {ref: two, when: {type: file_exists, path: nowhere}}\n",
        one=shell("a", "touch broken; exit 1"),
        two=shell("a", "touch two"),
        rescue=shell("a", "touch rescued"),
    )
    outcome = bench.engine.run(bench.engine.submit(loaded, workspace=bench.workspace))
    assert outcome.ok, outcome.reason
    assert [step.big_step for step in outcome.steps] == ["one", "rescue"]
    assert not (bench.workspace / "two").exists()


def test_a_missing_big_step_is_refused_before_anything_runs(bench, composed):
    """A `ref` to nowhere names the nearest workflow."""
    loaded = composed("  - one\n  - shell_chian\n", one=shell("a", "true"))
    with pytest.raises((NotFoundError, BadFileError), match="shell_chian"):
        bench.engine.submit(loaded, workspace=bench.workspace)


def test_no_more_instances_of_a_name_run_than_may(bench, tmp_path):
    """`max_parallel_instances: 1` makes the second wait until the first has ended."""
    (tmp_path / "one.yaml").write_text(
        "name: one\nsub_steps:\n" + shell("a", "echo in >> log; sleep 0.2; echo out >> log")
    )
    (tmp_path / "all.yaml").write_text(
        "name: all\nconcurrency: {max_parallel_instances: 1}\nbig_steps: [one]\n"
    )
    loaded = load(tmp_path / "all.yaml")
    for _ in range(3):
        bench.engine.submit(loaded, workspace=bench.workspace)
    bench.engine.serve(once=True)
    assert bench.read("log") == "in\nout\n" * 3


# --- inputs -------------------------------------------------------------------------------------


def test_wrong_inputs_are_all_told_before_anything_runs(bench):
    """Missing, unknown and mistyped inputs come as one sentence."""
    text = """
        name: x
        inputs:
          count: {type: int}
          where: {choices: [here, there]}
          must: {}
        sub_steps: [{id: a, kind: shell, command: "true"}]
        """
    with pytest.raises(UsageError) as caught:
        bench.submit(text, inputs={"count": "many", "where": "nowhere", "cuont": "1"})
    for words in ("`cuont` (did you mean `count`?)", "whole number", "`must` is missing", "one of"):
        assert words in str(caught.value)
    assert bench.engine.instances() == ()


@pytest.mark.parametrize("policy", ["nobody", "{allow: 5}"])
def test_a_policy_that_cannot_be_read_is_refused_not_passed_over(bench, policy):
    """A policy that nobody enforces would be worse than none: the start says so."""
    key = f"command_policy: {policy}"
    with pytest.raises(UsageError, match="its `command_policy` cannot be read"):
        bench.submit(f"{{name: x, sub_steps: [{{id: a, kind: shell, command: echo, {key}}}]}}")


# --- people -------------------------------------------------------------------------------------

ASKING = """
    name: asking
    sub_steps:
      - {id: plan, kind: shell, command: 'echo "{\\"n\\": 3}"'}
      - {id: ask, kind: approval, prompt: 'delete {{ payload.n }} files?'}
      - {id: act, kind: shell, command: 'echo {{ payload.approved }} > acted'}
    """


def test_an_approval_waits_for_a_person(bench):
    """The instance is suspended, and goes on with the answer as payload."""
    instance_id = bench.submit(ASKING)
    assert bench.engine.run(instance_id).state == "suspended"
    (asked,) = bench.engine.approvals(instance_id)
    assert asked.question == "delete 3 files?"

    assert bench.engine.answer(instance_id, approve=True, by="ann") == 1
    outcome = bench.engine.run(instance_id)

    assert outcome.ok, outcome.reason
    assert bench.read("acted") == "true\n"
    assert outcome.step("ask").payload == {"approved": True, "by": "ann", "comment": ""}


def test_a_rejection_fails_the_step_with_who_and_why(bench):
    """No is an answer: nothing behind it runs."""
    instance_id = bench.submit(ASKING)
    bench.engine.run(instance_id)
    bench.engine.answer(instance_id, approve=False, by="ann", comment="too many")
    outcome = bench.engine.run(instance_id)
    assert (outcome.state, outcome.reason) == ("failed", "rejected by ann: too many")
    assert not (bench.workspace / "acted").exists()


def test_an_unanswered_approval_expires(bench):
    """After `expires_minutes` the step fails, and the failure route is taken."""
    instance_id = bench.submit(
        ASKING.replace("kind: approval,", "kind: approval, expires_minutes: 0.005,")
    )
    bench.engine.run(instance_id)
    bench.engine.serve(should_stop=lambda: bench.engine.outcome(instance_id).final)
    assert bench.engine.outcome(instance_id).reason == "nobody answered in time"


def test_a_failed_instance_can_be_taken_up_again(bench):
    """`retry` goes on at the step that failed, or from another; what was done stays done."""
    instance_id = bench.submit(
        """
        name: fixable
        sub_steps:
          - {id: a, kind: shell, command: 'echo a >> log'}
          - {id: b, kind: shell, command: 'echo b >> log; test -e fixed'}
          - {id: c, kind: shell, command: 'echo c >> log'}
        """
    )
    assert bench.engine.run(instance_id).state == "failed"
    (bench.workspace / "fixed").touch()

    bench.engine.retry(instance_id)
    assert bench.engine.run(instance_id).ok
    assert bench.read("log") == "a\nb\nb\nc\n"
    with pytest.raises(UsageError, match="only a failed or cancelled one"):
        bench.engine.retry(instance_id)


def test_one_step_alone_is_run_once_and_validated(bench):
    """A replayed step gets the payload it would have inherited, and no retries."""
    loaded = load(
        "name: w\nmax_retries: 3\nsub_steps:\n"
        "  - {id: a, kind: shell, command: 'exit 1'}\n"
        "  - {id: b, kind: shell, command: 'echo {{ payload.n }} {{ steps.a.payload.m }} >> log',\n"
        "     validation: [{type: file_contains, path: log, contains: '9 9'}]}\n"
    )
    step = bench.engine.run_step(
        loaded, "b", workspace=bench.workspace, payload={"n": 7}, steps={"a": {"m": 8}}
    )
    assert (step.id, step.state, step.attempts) == ("b", "failed", 1)
    assert bench.read("log") == "7 8\n"
    assert [rule.passed for rule in step.rules] == [False]


def test_the_plan_is_frozen(bench, tmp_path):
    """Editing the file after the start changes nothing of the instance."""
    file = tmp_path / "w.yaml"
    file.write_text("name: w\nsub_steps:\n" + shell("a", "echo old > out"))
    instance_id = bench.engine.submit(load(file), workspace=bench.workspace)
    file.write_text("name: w\nsub_steps:\n" + shell("a", "echo new > out"))
    assert bench.engine.run(instance_id).ok
    assert bench.read("out") == "old\n"


def test_a_route_in_circles_ends(bench, monkeypatch):
    """Two steps that send each other on for ever are stopped and told so."""
    from openry.orchestrator import routing

    monkeypatch.setattr(routing, "MAX_RUNS", 6)
    outcome = bench.run(
        """
        name: circles
        sub_steps:
          - {id: a, kind: shell, command: 'exit 1', on_failure: b}
          - {id: b, kind: shell, command: 'exit 1', on_failure: a}
        """
    )
    assert outcome.state == "failed" and "circles" in outcome.reason


def test_only_what_a_command_follows_at_once_does_not_wait_for_the_disk(bench, monkeypatch):
    """That command's own row does: whatever is told, done or waited for comes after it."""
    waited, write = [], bench.engine.room.write

    def noted(*, durable=True):
        waited.append(durable)
        return write(durable=durable)

    instance_id = bench.submit(
        """
        name: disk
        sub_steps:
          - {id: a, kind: shell, command: 'true'}
          - {id: b, kind: shell, command: 'true'}
          - {id: c, kind: approval, description: 'well?'}
        """
    )
    monkeypatch.setattr(bench.engine.room, "write", noted)

    assert bench.engine.run(instance_id).state == "suspended"
    assert waited.count(False) == 1, "only as `a` ended, as `b` follows"


def test_every_transition_has_its_event(bench):
    """The journal tells the whole life of a run, in order, each event once."""
    instance_id = bench.submit("{name: x, sub_steps: [{id: a, kind: shell, command: 'true'}]}")
    told = []
    bench.engine.run(instance_id, on_event=told.append)
    lives = [(e.kind, e.old, e.new) for e in bench.events(instance_id)]
    assert lives == [
        ("instance", "", "queued"),
        ("instance", "queued", "running"),
        ("transition", "", "queued"),
        ("transition", "queued", "in_progress"),
        ("transition", "in_progress", "completed"),
        ("transition", "completed", "validated"),
        ("transition", "validated", "done"),
        ("instance", "running", "completed"),
        ("head", "", ""),
    ]
    assert [(e.kind, e.old, e.new) for e in told] == lives
