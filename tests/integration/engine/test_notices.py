"""`notify`: who is told of an instance that ended or waits, once, and what became of it."""

from __future__ import annotations

import http.server
import json
import sys
from pathlib import Path

import pytest

from openry.errors import BadFileError
from openry.ledger.schema import notices
from openry.orchestrator.loader import load
from tests.web import serving

TOLD = """
    name: told
    notify: {{on: {on}, {how}}}
    sub_steps:
      - {{id: a, kind: {kind}}}
    """
SAY = 'command: \'printf "%s\\n" "$NOTICE" >> told\''


def told(bench):
    file = bench.workspace / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize(
    ("on", "kind", "expected"),
    [
        ("[failed, needs_human]", "shell, command: exit 7", ["failed"]),
        ("failed", "shell, command: 'true'", []),
        ("[completed]", "shell, command: 'true'", ["completed"]),
        ("[needs_human]", "approval", ["needs_human"]),
        ("[failed]", "approval", []),
    ],
)
@pytest.mark.parametrize("serving", [True, False])
def test_somebody_is_told_of_what_they_asked_for(bench, on, kind, expected, serving):
    """Once, with instance, step and reason; whoever runs it, and not again later."""
    instance_id = bench.submit(TOLD.format(on=on, how=SAY, kind=kind))
    for _ in range(2):
        if serving:
            bench.engine.serve(once=True)
        else:
            bench.engine.run(instance_id)
    found = told(bench)
    assert [each["about"] for each in found] == expected
    for each in found:
        assert (each["instance"], each["workflow"]) == (instance_id, "told")
    if expected == ["failed"]:
        assert found[0]["reason"] == "exit 7"


def test_a_web_address_is_told(bench):
    """With JSON; an answer that is no yes is noted."""
    heard = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path == "/yes" else 503)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Quiet."""

    with serving(Page) as port:
        for path in ("yes", "no"):
            how = f"webhook: 'http://127.0.0.1:{port}/{path}'"
            bench.run(TOLD.format(on="completed", how=how, kind="shell, command: 'true'"))
    assert [each["about"] for each in heard] == ["completed", "completed"], _rows(bench)
    rows = _rows(bench)
    assert rows[0] == ("sent", "")
    assert rows[1][0] == "failed" and rows[1][1].endswith("answered 503")


def _rows(bench):
    with bench.engine.ledger.read() as connection:
        found = connection.execute(notices.select()).mappings().all()
    return [(row["state"], row["reason"]) for row in found]


@pytest.mark.sandbox
def test_nobody_outside_is_told_from_a_closed_sandbox(bench):
    """A notice goes no further than the workflow's own commands may."""
    text = TOLD.format(
        on="completed", how="webhook: 'http://example.test/x'", kind="shell, command: 'true'"
    )
    instance_id = bench.submit("sandbox: auto\n" + "\n".join(x[4:] for x in text.splitlines()))
    assert bench.engine.run(instance_id).ok
    events = [event for event in bench.events(instance_id) if event.kind == "notice"]
    assert "not among the hosts that the sandbox allows" in events[0].reason


def test_a_notice_may_ask_the_orchestrator_and_a_step_may_not(bench):
    """A notice belongs to no run, although runs of its engine are alive above it."""
    home, program = bench.engine.config.home, Path(sys.executable).with_name("openry-orchestrator")
    ask = f"OPENRY_HOME={home} {program} status $NOTICE_INSTANCE --json"
    busy = bench.submit(
        f"""
        name: busy
        command_policy: permissive
        sub_steps:
          - id: a
            kind: shell
            command: |
              NOTICE_TOKEN=guessed NOTICE_INSTANCE= {ask} 2> refused
              for i in $(seq 300); do test -s told -o -s trouble && break; sleep 0.05; done
        """
    )
    bench.submit(
        f"""
        name: quick
        command_policy: permissive
        notify: {{on: completed, command: '{ask} > told 2> trouble'}}
        sub_steps:
          - id: a
            kind: shell
            command: 'for i in $(seq 300); do test -s refused && break; sleep 0.05; done'
        """
    )
    bench.engine.serve(once=True)
    assert bench.engine.outcome(busy).ok
    assert "is not available inside a run: this is below" in bench.read("refused")
    assert bench.read("trouble") == ""
    assert json.loads(bench.read("told"))["state"] == "completed"


def test_a_command_that_fails_hurts_nobody(bench):
    """The instance ends as it would; what went wrong is an event."""
    how = "command: 'echo no mail >&2; exit 1'"
    instance_id = bench.submit(TOLD.format(on="completed", how=how, kind="shell, command: 'true'"))
    assert bench.engine.run(instance_id).ok
    events = [event for event in bench.events(instance_id) if event.kind == "notice"]
    assert [event.reason for event in events] == ["no mail"]


@pytest.mark.parametrize(
    ("notify", "said"),
    [
        ("{on: failed}", "exactly one of `command`, `webhook`"),
        ("{on: faild, command: x}", "did you mean `failed`"),
        ("{on: [], command: x}", "must not be empty"),
        ("mail", "must be a mapping"),
    ],
)
def test_mistakes_are_told_when_it_is_loaded(notify, said):
    """With the nearest word."""
    with pytest.raises(BadFileError, match=said):
        load(
            f"{{name: x, notify: {notify}, sub_steps: [{{id: a, kind: shell, command: echo}}]}}"
        ).required()


def test_a_retry_climbs_the_ladder_of_models(bench):
    """The step's own model first, then each of `model_ladder`; the last one stays."""
    from openry.llm import ScriptedModel

    nonsense = json.dumps({"action": "report", "status": "failed", "payload": {}})
    good = json.dumps({"action": "report", "status": "completed", "payload": {}})
    bench.models["small"] = ScriptedModel([nonsense])
    bench.models["middle"] = ScriptedModel([nonsense])
    bench.models["large"] = ScriptedModel([nonsense, good])
    outcome = bench.run(
        """
        name: x
        sub_steps:
          - {id: a, description: try, agent: small, model_ladder: [middle, large],
             on_failure: retry}
        """
    )
    assert outcome.ok, outcome.reason
    assert [len(bench.models[name].requests) for name in ("small", "middle", "large")] == [1, 1, 2]
