"""`for_each`: one run per item, in any number at a time, and one payload in the items' order."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter

import pytest

from openry.errors import BadFileError
from openry.orchestrator.loader import load

NUMBERS = """
    name: numbers
    sub_steps:
      - {{id: list, kind: shell, command: 'echo "{{\\"n\\": [3, 1, 2]}}"'}}
      - id: each
        kind: shell
        for_each: {{items: '{{{{ payload.n }}}}', as: n{more}}}
        command: '{command}'
        {keys}
      - {{id: after, kind: shell, command: 'echo {{{{ payload["items"] | length }}}} > after'}}
    """


def report(**payload):
    return json.dumps({"action": "report", "status": "completed", "payload": payload})


def numbers(command="echo {{ n }}", more="", keys=""):
    return NUMBERS.format(command=command, more=more, keys=keys)


def test_each_item_has_a_run_and_the_payload_keeps_their_order(bench):
    """Items of a template; what each run ended with stands in the items' order."""
    instance_id = bench.submit(numbers("sleep 0.{{ n }}; echo {{ n }}", more=", max_parallel: 3"))
    outcome = bench.engine.run(instance_id)
    assert outcome.ok, outcome.reason
    said = [each["_stdout"] for each in outcome.step("each").payload["items"]]
    assert said == ["3\n", "1\n", "2\n"]
    assert bench.read("after") == "3\n"
    runs = [run for run in bench.runs(instance_id) if run.step_id == "each"]
    assert [(run.item, run.status) for run in runs] == [(i, "done") for i in ("", "0", "1", "2")]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ("'*.txt'", ["a b.txt", "c.txt"]),
        ("[1, two, {three: 3}]", [1, "two", {"three": 3}]),
        ('\'{{ ["x", "y"] }}\'', ["x", "y"]),
        ("['{{ run.attempt }}', z]", [1, "z"]),
        ("'none/*'", []),
    ],
)
def test_items_are_a_list_a_template_or_a_glob(bench, items, expected):
    """Files come as sorted paths, data as it is; no items is no failure."""
    for name in ("c.txt", "a b.txt", "other"):
        (bench.workspace / name).write_text("")
    outcome = bench.run(
        f"""
        name: x
        sub_steps:
          - {{id: a, kind: shell, for_each: {{items: {items}}}, command: 'echo {{{{ item }}}}',
             validation: [{{type: payload_has_key, key: _stdout}}]}}
        """
    )
    assert outcome.ok, outcome.reason
    assert [each.item for each in outcome.step("a").items] == expected
    assert len(outcome.step("a").payload["items"]) == len(expected)


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("'{{ 5 }}'", "must give a list, got `5`"),
        ("'{{ \"a\\nb\" }}'", "add `.splitlines()`"),
        ("'../*'", "leaves the workspace"),
        ("'{{ range(10001) | list }}'", "10000 are the most"),
    ],
)
def test_what_is_no_list_fails_the_step_with_a_sentence(bench, items, said):
    """Nothing of it runs."""
    outcome = bench.run(
        "name: x\nsub_steps:\n"
        f"  - {{id: a, kind: shell, for_each: {{items: {items}}}, command: touch x}}"
    )
    assert outcome.state == "failed"
    assert said in outcome.reason
    assert not (bench.workspace / "x").exists()


def test_no_more_items_run_at_once_than_may(bench):
    """`max_parallel: 2` of six: two at a time are seen (the first ones meet), never three."""
    outcome = bench.run(
        """
        name: x
        sub_steps:
          - id: a
            kind: shell
            for_each: {items: [1, 2, 3, 4, 5, 6], max_parallel: 2}
            command: |
              mkdir in.{{ item }}; touch here.{{ item }}
              test {{ item }} -gt 2 || until [ -e here.1 -a -e here.2 ]; do sleep 0.01; done
              ls -d in.* | wc -l >> seen; rmdir in.{{ item }}
        """
    )
    assert outcome.ok, outcome.reason
    seen = set(bench.read("seen").split())
    assert "2" in seen and seen <= {"1", "2"}


def test_items_are_retried_one_by_one_and_validated_one_by_one(bench):
    """Only the item that failed its rule runs again, and is told why."""
    instance_id = bench.submit(
        numbers(
            "echo {{ n }} >> log; test {{ n }} != 1 || echo {{ last_failure | length }} >> told;"
            " touch done.{{ n }};"
            " test $(grep -c {{ n }} log) -gt 1 || test {{ n }} != 1 || rm done.1",
            keys="validation: [{type: file_exists, path: 'done.{{ n }}'}]",
        )
    )
    outcome = bench.engine.run(instance_id)
    assert outcome.ok, outcome.reason
    assert Counter(bench.read("log").split()) == {"3": 1, "1": 2, "2": 1}
    first, second = bench.read("told").split()
    assert first == "0" and int(second) > 10
    retried = [run for run in bench.runs(instance_id) if run.item == "1"]
    assert [(run.attempt, run.status) for run in retried] == [(1, "failed"), (2, "done")]
    assert outcome.step("each").items[1].attempts == 2


def test_a_failed_item_ends_the_step_and_those_beside_it(bench):
    """`abort`: what is under way is braked, nothing more begins, the reason names the item."""
    instance_id = bench.submit(
        numbers(
            "echo {{ n }} >> log; test {{ n }} != 1 && sleep 3000;"
            " until grep -q 3 log; do sleep 0.02; done; exit 7",
            more=", max_parallel: 2",
        )
    )
    outcome = bench.engine.run(instance_id)
    assert (outcome.state, outcome.reason) == ("failed", "item 2 (`1`): exit 7")
    assert sorted(bench.read("log").split()) == ["1", "3"]
    states = {run.item: run.status for run in bench.runs(instance_id) if run.step_id == "each"}
    assert states == {"": "failed", "0": "failed", "1": "failed"}


def test_a_failed_item_may_be_skipped(bench):
    """`skip`: the others go on, and null stands in its place."""
    outcome = bench.run(
        numbers(
            "test {{ n }} != 1 && echo {{ n }}",
            more=", on_item_failure: skip",
            keys="on_failure: retry\n        max_sub_step_retries: 1",
        )
    )
    assert outcome.ok, outcome.reason
    items = outcome.step("each").payload["items"]
    assert [each and each["_stdout"] for each in items] == ["3\n", None, "2\n"]
    assert [(each.state, each.attempts) for each in outcome.step("each").items] == [
        ("done", 1),
        ("dropped", 2),
        ("done", 1),
    ]


def test_routes_of_the_step_are_taken_for_all_items_together(bench):
    """A failed item leads where the step's route says; conditions see `items`."""
    text = """
        name: x
        sub_steps:
          - id: a
            kind: shell
            for_each: {{items: [1, 2]}}
            command: 'test {{{{ item }}}} != {bad}'
            on_failure: mend
            validation_routing:
              - {{when: {{type: payload_has_key, key: items.1._stdout}}, on_match: good}}
          - {{id: mend, kind: shell, command: 'echo {{{{ last_failure }}}} > w', on_success: done}}
          - {{id: good, kind: shell, command: 'touch good'}}
        """
    outcome = bench.run(text.format(bad=9))
    assert [step.id for step in outcome.steps] == ["a", "good"]
    outcome = bench.run(text.format(bad=2))
    assert [step.id for step in outcome.steps] == ["a", "mend"]
    assert bench.read("w") == "- item 2 (`2`): exit 1\n"


def test_retries_of_a_spent_item_are_not_multiplied_by_the_step(bench):
    """`on_failure: retry` is about items; when one is spent, the step is dropped."""
    outcome = bench.run(
        """
        name: x
        sub_steps:
          - {id: a, kind: shell, for_each: {items: [1]}, command: 'echo >> log; exit 1',
             on_failure: retry, max_sub_step_retries: 2, on_dropped: b}
          - {id: b, kind: shell, command: 'touch b'}
        """
    )
    assert outcome.ok
    assert bench.read("log") == "\n" * 3
    assert (outcome.step("a").state, outcome.step("b").state) == ("dropped", "done")


def test_agents_may_have_items_too(bench):
    """Each item is a task of its own, with its own limit of calls."""
    bench.script(*(report(said=word) for word in ("one", "two")))
    outcome = bench.run(
        """
        name: x
        sub_steps:
          - {id: a, for_each: {items: [one, two]}, description: 'say {{ item }}',
             payload_keys: [said]}
        """
    )
    assert outcome.ok, outcome.reason
    assert [each["said"] for each in outcome.step("a").payload["items"]] == ["one", "two"]


def test_an_inherited_payload_lies_under_the_items_once(bench):
    """`inherit_payload` is about the step's payload, not about each item's."""
    outcome = bench.run(numbers(keys="inherit_payload: true"))
    payload = outcome.step("each").payload
    assert payload["n"] == [3, 1, 2]
    assert set(payload["items"][0]) == {"_stdout"}


def test_a_cancelled_instance_ends_with_all_its_items(bench):
    """The items under way are ended; the others never begin; everything is settled."""
    instance_id = bench.submit(numbers("echo {{ n }} >> log; sleep 3000", more=", max_parallel: 2"))
    log = bench.workspace / "log"

    def cancel():
        while not log.exists() or len(log.read_text().split()) < 2:
            time.sleep(0.01)
        bench.engine.cancel(instance_id)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    assert bench.engine.run(instance_id).state == "cancelled"
    canceller.join()
    runs = [run for run in bench.runs(instance_id) if run.step_id == "each"]
    assert {run.status for run in runs} == {"cancelled"}
    assert all(run.settled for run in runs)


def test_the_big_steps_clock_ends_all_items(bench):
    """Nothing is retried then, and the reason is the clock."""
    outcome = bench.run(
        "timeout_minutes: 0.01\n"
        + "name: x\nsub_steps: [{id: a, kind: shell, for_each: {items: [1, 2], max_parallel: 2},"
        " command: sleep 3000, on_failure: retry}]"
    )
    assert outcome.state == "failed"
    assert "the big step's time is up" in outcome.reason


def test_an_approval_is_asked_once(bench):
    """`for_each` on an approval step is a mistake of the file."""
    with pytest.raises(BadFileError, match="no meaning on an approval step"):
        load("{name: x, sub_steps: [{id: a, kind: approval, for_each: {items: [1]}}]}").required()


def test_a_stopped_engine_puts_items_back_and_another_goes_on(bench, config):
    """Let go in the middle: no item is lost, none that was done is run again."""
    instance_id = bench.submit(numbers("echo {{ n }} >> log; test -e go || sleep 3000", more=""))
    log = bench.workspace / "log"
    bench.engine.run(instance_id, should_stop=log.exists)
    (bench.workspace / "go").touch()
    outcome = bench.engine.run(instance_id)
    assert outcome.ok, outcome.reason
    assert bench.read("log").split() == ["3", "3", "1", "2"]


def test_a_killed_engine_runs_no_completed_item_again(bench, config, tmp_path):
    """kill -9 in the middle of eight items, twice: each completed one has left one mark."""
    from openry.orchestrator.engine import Engine

    instance_id = bench.submit(
        numbers("sleep 0.05; echo {{ n }} >> log", more=", max_parallel: 3").replace(
            "[3, 1, 2]", str(list(range(1, 25)))
        )
    )
    log = bench.workspace / "log"
    for wanted in (5, 12):
        pid = os.fork()
        if pid == 0:
            try:
                Engine(config, times=bench.engine.room.times).run(instance_id)
            finally:
                os._exit(0)
        while not log.exists() or len(log.read_text().split()) < wanted:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        done = {run.item for run in bench.runs(instance_id) if run.item and run.status == "done"}
        before = Counter(log.read_text().split())
    outcome = bench.engine.run(instance_id)
    assert outcome.ok, outcome.reason
    after = Counter(log.read_text().split())
    assert set(after) == {str(n) for n in range(1, 25)}
    for item in done:
        number = str(int(item) + 1)
        assert after[number] == before[number], "a completed item ran again"
    assert len(outcome.step("each").payload["items"]) == 24
    assert all(run.settled for run in bench.runs(instance_id))
