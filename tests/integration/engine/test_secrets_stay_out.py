"""A secret planted in every place that can hold one is in no file of OPENRY_HOME, and no prompt."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from openry.errors import UsageError
from openry.secretstore import SecretStore

#: Named like a secret, named like nothing but kept by us, and known by its shape alone.
BY_NAME = "Zx9-plain-by-its-name"
STORED = "Qw7 kept by a person"
SHAPED = "ghp_" + "aB3x" * 9
SECRETS = (BY_NAME, STORED, SHAPED)
HALVES = [(secret[: len(secret) // 2], secret[len(secret) // 2 :]) for secret in SECRETS]


@pytest.fixture
def plants(monkeypatch, config):
    monkeypatch.setenv("SERVICE_API_KEY", BY_NAME)
    SecretStore(config.home, keyring=None).set("KEPT", STORED)


def leaks(home: Path) -> list[tuple[str, str]]:
    """Files that hold a secret, the store itself left out; compressed ones are looked into."""
    found = []
    for path in home.rglob("*"):
        if not path.is_file() or path.name == "secrets.json":
            continue
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for secret in SECRETS:
            forms = {secret.encode(), json.dumps(secret).encode(), secret.encode("utf-16-le")}
            found += [(path.name, secret)] if any(form in data for form in forms) else []
    return found


def test_a_secret_is_in_no_file_whatever_a_workflow_does_with_it(bench, config, plants):
    """Arguments, output split over reads, errors, payloads, tool calls, prompts, reasons."""
    split = "; ".join(
        f"printf %s '{first}'; sleep 0.2; printf '%s\\n' '{second}'" for first, second in HALVES
    )
    everything = " ".join(SECRETS)
    payload = json.dumps({"said": everything, "deep": {everything: [everything]}})
    seen = []

    def agent(request):
        seen.append([message.text for message in request.messages])
        if len(seen) == 1:
            return json.dumps({"action": "run", "command": f"echo {everything} >&2; {split}"})
        report = {"action": "report", "status": "completed", "payload": {"n": everything}}
        return json.dumps(report)

    bench.script(agent, agent)
    text = """
    name: leaky
    sub_steps:
      - id: stored
        kind: shell
        secrets: [KEPT, SERVICE_API_KEY]
        command: 'echo "$KEPT $SERVICE_API_KEY"; echo "$KEPT" >&2'
      - {id: printed, kind: shell, command: sh split.sh}
      - id: flooded
        kind: shell
        command: 'for i in 1 2 3 4 5 6 7 8 9 10; do cat flood.txt flood.txt; done'
      - id: told
        kind: shell
        command: cat payload.json
        payload_keys: [said, deep]
        validation:
          - {type: payload_value_equals, key: said, value: other}
        on_validation_fail: called
      - id: called
        kind: capability
        capability: count_matching_lines
        args: {path: leak.txt, needle: "{{ payload.said | default('x') }}"}
      - id: asked
        description: Say {{ payload }}
      - id: failing
        kind: shell
        command: cat leak.txt >&2; exit 3
    """
    for name, content in {
        "leak.txt": f"{everything}\n",
        "flood.txt": f"{everything}\n" * 20_000,
        "payload.json": payload,
        "split.sh": split,
    }.items():
        (bench.workspace / name).write_text(content)

    outcome = bench.run(text)

    assert outcome.steps[-1].id == "failing", outcome
    assert outcome.steps[-1].state == "failed"
    assert leaks(config.home) == []
    told = json.dumps(seen, ensure_ascii=False)
    assert [secret for secret in SECRETS if secret in told] == []
    assert any("***SERVICE_API_KEY***" in text for text in seen[-1])
    shown = repr(outcome)
    assert [secret for secret in SECRETS if secret in shown] == []


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_never_stored_as_an_input_or_in_a_plan(bench, config, plants, secret):
    """Both would be kept as they are: refused before anything runs, with the way round."""
    asks = (
        "{name: x, inputs: {word: {type: string}}, sub_steps: [{id: a, kind: shell, command: ls}]}"
    )
    written = f"{{name: x, sub_steps: [{{id: a, kind: shell, command: echo '{secret}'}}]}}"

    with pytest.raises(UsageError, match=r"input `word` holds a secret.*under `secrets:`") as told:
        bench.submit(asks, inputs={"word": f"Bearer {secret}"})
    with pytest.raises(UsageError, match=r"\(`\w+`\) is written into the workflow") as also:
        bench.submit(written)

    assert secret not in f"{told.value} {also.value}"
    assert leaks(config.home) == []
