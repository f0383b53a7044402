"""Kill -9 at every transition of a composition with everything in it, then go on to the same end.

The engine dies at each boundary: before and after each commit, before and after each start and each
end of a process. It is followed by another one, or has one beside it that takes over. The program
of an outside agent dies at each of its words, and so does what runs a command for it.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from dataclasses import replace
from textwrap import dedent

import pytest

from openry.ledger.consistency import inconsistencies
from openry.ledger.runs import runs_of
from openry.llm import ChatReply
from openry.llm.base import ChatRequest
from openry.orchestrator.engine import Engine
from openry.orchestrator.loader import load
from openry.orchestrator.room import Times
from tests.integration.engine.dying import dying_at, in_child, wait

#: Who is dead is known by its process; a lease that ran out would only be that of a slow one.
QUICK = Times(interval_s=0.2, watch_s=0.02, beat_s=0.2, self_kill_s=60, lease_s=120, grace_s=0.5)

COMPOSITION = """
    name: mixed
    big_steps:
      - {ref: collect, on_failure: mend}
      - {ref: mend, inputs: {who: ann}}
    """
#: Every kind of step: one is retried, one routed past, one reads too much, the last one fails.
COLLECT = """
    name: collect
    sub_steps:
      - {id: first, kind: shell, command: 'echo first >> marks; echo "{\\"n\\": 1}"'}
      - id: act
        description: leave your mark
        payload_keys: [n]
        inherit_payload: true
        validation: [{type: file_contains, path: marks, contains: act}]
      - id: read
        description: which word is in big.txt?
        max_output_tokens: 400
        payload_keys: [word]
      - id: outside
        description: leave your mark
        agent: {adapter: speaking}
        command_policy: permissive
        payload_keys: [m]
        on_failure: retry
      - id: each
        kind: shell
        for_each: {items: [1, 2, 3], max_parallel: 2, on_item_failure: skip}
        command: 'echo each{{ item }} >> marks; test {{ item }} != 2'
      - id: again
        kind: shell
        command: 'echo again >> marks; test -e second || { touch second; exit 1; }'
        on_failure: retry
        max_sub_step_retries: 1
      - {id: sort, kind: capability, capability: sort_lines, args: {path: marks, output: sorted}}
      - id: choose
        kind: shell
        command: 'echo choose >> marks; echo "{\\"go\\": \\"past\\"}"'
        validation: [{type: command, run: 'grep -q choose marks'}]
        validation_routing:
          - {when: {type: payload_value_equals, key: go, value: past}, on_match: fail}
      - {id: passed, kind: shell, command: 'echo passed >> marks'}
      - {id: fail, kind: shell, command: 'echo fail >> marks; exit 3'}
    """
MEND = """
    name: mend
    inputs: {who: {}}
    sub_steps:
      - {id: ask, kind: approval, prompt: go on}
      - id: last
        kind: shell
        command: 'echo last >> marks; echo "{\\"by\\": \\"{{ payload.by }} {{ inputs.who }}\\"}"'
    """
DONE = {"first", "act", "read", "outside", "each", "again", "sort", "choose", "ask", "last"}
MARKS = {"first", "act", "outside", "each1", "each2", "each3", "again", "choose", "fail", "last"}
#: An agent program that dies, once, at the word that `../dies` names; or whose hand does: the thin
#: client before its command, or while that runs.
SPEAKING = """
    word() { [ "$(cat ../dies 2>/dev/null)" != $1 ] || ! mkdir ../died 2>/dev/null || kill -9 $$; }
    hand() {
        openry "$@" & client=$!
        echo $client > ../client
        [ "$(cat ../dies 2>/dev/null)" != hand ] || ! mkdir ../died 2>/dev/null || kill -9 $client
        wait $client
    }
    cut='[ "$(cat ../dies 2>/dev/null)" != cut ] || ! mkdir ../died || kill -9 $(cat ../client)'
    word start
    hand -c "echo outside >> marks; $cut" || exit 7
    word acted
    hand --status completed --payload '{"m": 3}' || exit 8
    word reported
"""
WORDS = ("start", "hand", "cut", "acted", "reported")


class Agent:
    """A built-in agent's model without memory: what it says follows from what it is asked."""

    name, tool_calling, context_tokens = "scripted", False, 8192

    def complete(self, request: ChatRequest) -> ChatReply:
        asked, begun = request.prompt_text(), any(m.role == "assistant" for m in request.messages)
        if "which word" not in asked:
            did = {"action": "run", "command": "echo act >> marks"}
            said = {"action": "report", "status": "completed", "payload": {"n": 2}}
        else:
            did = {"action": "run", "command": "seq 3000"}
            said = {"action": "report", "status": "overflow", "payload": {}}
            if "You were interrupted" in asked:
                begun, said = True, {**said, "status": "completed", "payload": {"word": "x"}}
        return ChatReply(json.dumps(said if begun else did))


# --- the composition, and what must be true of it at its end --------------------------------------


class Course:
    """One start of the composition, in folders of its own."""

    def __init__(self, config, place):
        self.config = replace(config, model="scripted", agent_sandbox="none")
        place.mkdir()
        agents = config.home / "agents"
        agents.mkdir(exist_ok=True)
        made = {"name": "speaking", "description": "d", "program": "/bin/sh", "install": "none"}
        made |= {"command": ["-c", dedent(SPEAKING)], "needs": {"programs": ["cat", "mkdir"]}}
        (agents / "speaking.yaml").write_text(json.dumps(made))
        for name, text in {"collect": COLLECT, "mend": MEND, "mixed": COMPOSITION}.items():
            (place / f"{name}.yaml").write_text(dedent(text))
        self.place, self.workspace = place, place / "workspace"
        self.workspace.mkdir()
        loaded = load(place / "mixed.yaml")
        assert not loaded.errors, loaded.errors
        with self.engine() as engine:
            self.instance_id = engine.submit(loaded, workspace=self.workspace)

    def engine(self):
        return Engine(self.config, open_model=lambda name: Agent(), times=QUICK, slots=4)

    def go(self):
        """To the end, with a person at hand."""
        with self.engine() as engine:
            while not engine.run(self.instance_id).final:
                engine.answer(self.instance_id, approve=True, by="ann")

    def runs(self):
        with self.engine() as engine, engine.ledger.read() as connection:
            return runs_of(connection, self.instance_id)

    def marks(self):
        file = self.workspace / "marks"
        return Counter(file.read_text().split() if file.exists() else [])

    def before(self):
        """What was recorded as done, and the marks of it."""
        done = {_turn(run): run.run_id for run in self.runs() if run.status == "done"}
        return done, self.marks()

    def check(self, before, point):
        """The same end as if nobody had died; what was done is done once; nothing contradicts."""
        done_before, marks_before = before
        with self.engine() as engine:
            outcome = engine.outcome(self.instance_id)
            with engine.ledger.read() as connection:
                assert list(inconsistencies(connection)) == [], point
        assert outcome.ok, (point, outcome.reason)
        states = {step.id: step.state for step in outcome.steps}
        expected = dict.fromkeys(DONE, "done") | {"fail": "failed"}
        assert {name: each for name, each in states.items() if name != "passed"} == expected, point
        assert states.get("passed") in (None, "skipped", "pending"), point
        payloads = {step.id: dict(step.payload) for step in outcome.steps}
        assert (payloads["act"]["n"], payloads["outside"]["m"]) == (2, 3), point
        assert payloads["read"]["word"] == "x", point
        items = payloads["each"]["items"]
        assert [each is None for each in items] == [False, True, False], point
        assert payloads["last"]["by"] == "ann ann", point
        after = self.marks()
        assert set(after) == MARKS, point
        done = Counter(_turn(run) for run in self.runs() if run.status == "done")
        assert set(done.values()) == {1}, point
        kept = {_turn(run): run.run_id for run in self.runs() if run.status == "done"}
        for turn, run_id in done_before.items():
            assert kept[turn] == run_id, (point, turn, "ran again after its end")
            mark = f"{turn[1]}{int(turn[2]) + 1}" if turn[2] else turn[1]
            assert after[mark] == marks_before[mark], (point, turn, "left its mark again")


def _turn(run):
    return run.big_step, run.step_id, run.item


def boundaries(config, place):
    course = Course(config, place)
    with dying_at(0) as seen:
        course.go()
        found = seen()
    course.check(({}, Counter()), 0)
    return found


def die(course, point):
    def work():
        with dying_at(point):
            course.go()

    return in_child(work)


def killed_and_followed(config, place, point):
    """The engine dies at `point`; another is started after it."""
    course = Course(config, place)
    assert wait(die(course, point)) in (0, signal.SIGKILL)
    time.sleep(0.05)  # what the dead engine had started may still write its mark
    before = course.before()
    course.go()
    course.check(before, point)


def killed_beside_another(config, place, point):
    """The engine dies at `point` while another patrols the same instance, and takes over."""
    course = Course(config, place)
    other = in_child(course.go)
    assert wait(die(course, point)) in (0, signal.SIGKILL)
    assert wait(other) == 0
    course.check(({}, Counter()), point)


def killed_agent(config, place, word):
    """The agent's program, or what runs a command for it, dies; its engine goes on."""
    course = Course(config, place)
    (place / "dies").write_text(word)
    course.go()
    assert (place / "died").exists(), "it lived"
    course.check(({}, Counter()), word)


def all_troubles(kill, config, tmp_path, points):
    """What was not kept at some of the points."""
    troubles = []
    for point in points:
        try:
            kill(config, tmp_path / f"{kill.__name__}-{point}", point)
        except AssertionError as error:
            troubles.append(f"{point}: {error}")
    return troubles


def test_whoever_dies_the_end_is_the_same(config, tmp_path):
    """A seeded sample of the points of the engine, alone and beside another, and of its agents."""
    points = boundaries(config, tmp_path / "whole")
    assert points > 200
    pick = random.Random(23).sample(range(1, points + 1), 5)
    assert all_troubles(killed_and_followed, config, tmp_path, pick[:4]) == []
    assert all_troubles(killed_beside_another, config, tmp_path, pick[4:]) == []
    assert all_troubles(killed_agent, config, tmp_path, ("cut",)) == []


@pytest.mark.long
def test_an_engine_killed_anywhere_is_followed(config, tmp_path):
    """At every boundary, one after the other."""
    points = range(1, boundaries(config, tmp_path / "whole") + 1)
    assert all_troubles(killed_and_followed, config, tmp_path, points) == []


@pytest.mark.long
def test_an_engine_killed_anywhere_is_taken_over(config, tmp_path):
    """At every boundary, while another engine patrols the same instance."""
    points = range(1, boundaries(config, tmp_path / "whole") + 1)
    assert all_troubles(killed_beside_another, config, tmp_path, points) == []


@pytest.mark.long
def test_an_agent_killed_anywhere_is_tried_again(config, tmp_path):
    """At every word of its program, and at each turn of its hand."""
    assert all_troubles(killed_agent, config, tmp_path, WORDS) == []
