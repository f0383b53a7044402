"""Adapters: what each shipped one starts, with what environment and which prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from openry.agent.adapters import (
    adapter_named,
    expanded,
    installed_adapters,
    places_of,
    read_adapter,
)
from openry.agent.outside import prompt_text, sandbox_around
from openry.agent.task import AgentTask, Block
from openry.errors import BadFileError, NotFoundError, UsageError
from openry.models import SandboxSpec

VALUES = {
    "prompt": "THE {model} PROMPT",
    "prompt_file": "/run/openry/prompt.md",
    "model": "m1",
    "workspace": "/ws",
    "max_turns": "7",
    "run_id": "run-1",
}
#: Arguments after the program; how the prompt goes; hosts; variables set; keys passed on.
GOLDEN = {
    "claude-code": (
        ["--print", "--bare", "--output-format", "text", "--tools", "Bash",
         "--allowed-tools", "Bash(openry *)", "--no-session-persistence", "--strict-mcp-config",
         "--model", "m1"],
        "stdin",
        ("api.anthropic.com",),
        {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
        "ANTHROPIC_API_KEY",
    ),
    "codex-cli": (
        ["exec", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config",
         "--color", "never", "--dangerously-bypass-approvals-and-sandbox", "-C", "/ws", "-",
         "--model", "m1"],
        "stdin",
        ("api.openai.com",),
        {},
        "OPENAI_API_KEY",
    ),
    "gemini-cli": (
        ["--approval-mode", "yolo", "--skip-trust", "--output-format", "text",
         "--extensions", "none", "--prompt", "Do the task above.", "--model", "m1"],
        "stdin",
        ("generativelanguage.googleapis.com",),
        {"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        "GEMINI_API_KEY",
    ),
    "mini-swe-agent": (
        ["--yolo", "--exit-immediately", "--task", "THE {model} PROMPT", "--model", "m1"],
        "argument",
        ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"),
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_CONFIGURED": "true",
         "MSWEA_SILENT_STARTUP": "1"},
        "OPENAI_API_KEY",
    ),
    "openclaw": (
        ["agent", "--local", "--session-id", "run-1", "--message-file", "/run/openry/prompt.md",
         "--model", "m1"],
        "file",
        ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"),
        {},
        "OPENAI_API_KEY",
    ),
    "echo-agent": ([], "stdin", (), {}, ""),
}  # fmt: skip
PROMPT = """\
You do one task in the folder /ws. Run every command by `openry`, the only program there is for it:

  openry -c 'COMMAND LINE'

It answers with one line of JSON: `exit_code`, `stdout`, `stderr`, `duration_ms`. A command line with quotes of its own can be given on standard input:

  openry -c - <<'END'
  COMMAND LINE
  END

How it works:
- Every command starts in that folder: `cd` does not last until the next one.
- A command reads no standard input and cannot ask you anything.
- Look at what a command answered before you run the next one. If the same command failed twice, try something else.
- If an answer says `User requested immediate stop`, run nothing more, call `openry --status cancelled` and end.
- You may run at most 10 commands.
- When the task is done and you have looked at the result, call `openry --status completed --payload '{…}'`. If it cannot be done, call `openry --status failed`. Then end. Without that call the work does not count. What you report is checked.
- The payload of `completed` must have these keys: n.

Be brief.

notes.md:
mind the gap

The step before handed over: {"file": "a.txt"}

What was done before was not accepted:
file_exists: made.txt is missing

Task: count it
"""  # noqa: E501


def test_every_shipped_adapter_is_in_the_golden_list(tmp_path: Path):
    """They load, and none is forgotten here."""
    assert {adapter.name for adapter in installed_adapters(tmp_path)} == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_started_is_as_written(name: str, tmp_path: Path):
    """Arguments one by one: a prompt is one of them, and nothing in it is filled in again."""
    arguments, prompt, hosts, env, key = GOLDEN[name]
    adapter = adapter_named(name, tmp_path)

    assert adapter.argv("/bin/it", VALUES) == ("/bin/it", *arguments)
    assert (adapter.prompt, adapter.needs.hosts, dict(adapter.env)) == (prompt, hosts, env)
    assert key == "" or key in adapter.pass_env
    without = adapter.argv("/bin/it", {**VALUES, "model": ""})
    assert "m1" not in without and "--model" not in without


def test_the_prompt_is_contract_then_task():
    """Word for word."""
    task = AgentTask(
        text="count it",
        workspace=Path("/ws"),
        blocks=(Block("notes.md", "mind the gap"),),
        payload={"file": "a.txt"},
        payload_keys=("n",),
        last_failure="file_exists: made.txt is missing",
        system="Be brief.",
    )

    assert prompt_text(task, ()) == PROMPT


def test_the_sandbox_is_the_steps_and_what_the_runtime_needs(tmp_path: Path):
    """The step's own lists stay; hosts, the program and the door are added, no network."""
    step = SandboxSpec("auto", write=("/ws",), read=("/data",), hosts=("example.com",))
    program = tmp_path / "tool"
    program.touch(0o755)

    around = sandbox_around(step, adapter_named("claude-code", tmp_path), str(program), "/door")

    assert (around.write, around.network, around.door) == (("/ws",), False, "/door")
    assert around.hosts == ("example.com", "api.anthropic.com")
    assert around.read[0] == "/data" and str(program) in around.read


def test_a_persons_folders_are_not_shown_for_a_programs_sake(tmp_path: Path, monkeypatch):
    """Of an environment its parts; of a home, a `~/.local` or what is above, the program alone."""
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = tmp_path / "env"
    for place in ("env/bin", "env/lib", "env/private", ".local/bin", ".local/share", "bin"):
        (tmp_path / place).mkdir(parents=True)
    for place in ("env/bin/tool", ".local/bin/tool", "bin/tool", "tool"):
        (tmp_path / place).touch(0o755)

    seen = places_of(str(environment / "bin" / "tool"))
    assert {str(environment / "bin"), str(environment / "lib")} <= set(seen)
    assert not any("private" in place for place in seen)
    assert not any("share" in place for place in places_of(str(tmp_path / ".local/bin/tool")))
    assert str(tmp_path) not in places_of(str(tmp_path / "tool"))
    assert str(tmp_path) not in places_of(str(tmp_path / "bin" / "tool"))


def test_a_home_is_expanded_and_what_is_not_there_left_out(tmp_path: Path, monkeypatch):
    """A sandbox cannot show what does not exist."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".tool").mkdir()

    assert expanded(["~/.tool", "~/.other"]) == (str(tmp_path / ".tool"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: a, description: d}", "`program`: Field required"),
        ("{name: b, description: d, program: p, install: i}", "the file's is `a`"),
        ("{name: a, description: d, program: p, install: i, comand: []}", "did you mean `command`"),
        ("{name: a, description: d, program: p, install: i, prompt: file}", "{prompt_file}"),
        (
            "{name: a, description: d, program: p, install: i, needs: {network: 3x}}",
            "needs.network",
        ),
        ("[]", "must hold one map"),
    ],
)
def test_a_bad_adapter_says_what_is_wrong(tmp_path: Path, text: str, said: str):
    """File, place and likely fix; nothing is started."""
    place = tmp_path / "a.yaml"
    place.write_text(text)

    with pytest.raises(BadFileError) as caught:
        read_adapter(place)
    assert said in str(caught.value) and str(place) in str(caught.value)


def test_an_unknown_name_offers_the_nearest(tmp_path: Path):
    """And a program that is not installed says how to get it."""
    with pytest.raises(NotFoundError, match="did you mean `claude-code`"):
        adapter_named("claude", tmp_path)
    adapter = adapter_named("openclaw", tmp_path).model_copy(update={"program": "no-such-thing"})
    with pytest.raises(UsageError, match="run: npm install -g openclaw"):
        adapter.find()


def test_a_person_may_add_adapters_but_a_shipped_name_stays(tmp_path: Path):
    """Those in OPENRY_HOME/agents are found; they cannot stand in for a shipped one."""
    folder = tmp_path / "agents"
    folder.mkdir()
    for name in ("mine", "claude-code"):
        text = f"{{name: {name}, description: my own, program: sh, install: i}}"
        (folder / f"{name}.yaml").write_text(text)

    assert adapter_named("mine", tmp_path).description == "my own"
    assert adapter_named("claude-code", tmp_path).description != "my own"
