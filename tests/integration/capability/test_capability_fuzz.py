"""Hostile arguments to every shipped tool: nothing they say is run, nothing outside is touched."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openry.capability import ToolDefinition, dry_run, invoke, load_registry, plan_text
from openry.capability.trial import lay_out
from openry.errors import BadArgumentsError
from openry.models import Command, CommandResult

REGISTRY = load_registry()
SECRET = "the-secret-outside-7351"
SETS = 5000


def hostile(canary: str, outside: str) -> list[str]:
    """Texts that mean something to a shell, a program, a pattern, a parser or an encoder."""
    return [
        f"$(touch {canary})", f"`touch {canary}`", f"; touch {canary} #", f"| touch {canary}",
        f"&& touch {canary}", f"x\ntouch {canary}\n", f"' ; touch {canary} ; '",
        f'" ; touch {canary} ; "', f"${{IFS}}touch {canary}", f"%0atouch {canary}",
        f"--output={canary}", f"-o{canary}", f"--upload-pack=touch {canary}",
        f"-exec touch {canary} ;", f"--checkpoint-action=exec=touch {canary}",
        f"ext::sh -c touch% {canary}", f"!touch {canary}", f"1e touch {canary}",
        f"s/x/touch {canary}/e", f"@{outside}/secret.txt", "-", "--", "-n", "-rf", "--help",
        "--version", "-e", "-f", "--", "-I", "*", "?", "[a-z]*", "{a,b}", "**/*", "~", "~root",
        ".", "..", "../..", "/", "//", "./", "../outside/secret.txt", f"{outside}/secret.txt",
        "link", "link/secret.txt", "linked.txt", "a/../../outside/secret.txt",
        "./../outside/secret.txt", "sub/../../outside", "/etc/passwd", "/dev/zero", "/dev/stdin",
        "/proc/self/environ", "/dev/full", "file:///etc/passwd", "http://127.0.0.1:1/",
        "http://localhost:1/\r\nX: 1", "ftp://x/", "http://[::1]:1/", "a\0b", "\0", "\ud800",
        "a\udfffb", "\udc80.txt", "\ufeff", "\u202egnp.txt", "\x1b]0;x\x07", "\r", "\n", "\t",
        " ", "", "'", '"', "''", "\\", "\\n", "\\0", "%s%n", "{}", "{path}", "{0}", "${HOME}",
        "(", ")", "[", "(?P<", "(a+)+$", "a{99999}", "\\1", "\\g<9>", "(?#", "[[:x:]]", "*" * 30,
        "x" * 5000, "x" * 300_000, "大" * 200, "🦊", "é", "NaN", "1e999", "-1", "0", "9" * 400,
        "true", "null", "[]", '{"a": 1}', "[[[[", "<xml>", "1; DROP TABLE book",
        "'; ATTACH 'x' AS y; --", "SELECT load_extension('x')", "1970-01-01", "9999-12-31",
        "0000-00-00", "HEAD", "--all", "@{-1}", ":/x", "HEAD:../x", "a@b\r\nBcc: c@d", "a@b",
        "evil.zip", "evil.tar", "box", "inbox.mbox",
    ]  # fmt: skip


ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 1.5, float("nan"), float("inf"),
    [], [""], [[]], ["a", ["b"]], {}, {"a": {}}, [None], ["x"] * 300,
    {"\r\n": "x"}, {"X": "a\r\nb"},
]  # fmt: skip


#: Nothing is ever sent to where the examples would send it.
NOWHERE: dict[str, Any] = {"url": "http://127.0.0.1:1/x", "host": "127.0.0.1", "port": 1}


@dataclass(frozen=True)
class Ground:
    """A workspace beside something that nobody may touch or read."""

    workspace: Path
    outside: Path
    canary: Path

    def lay(self) -> None:
        """The workspace as it is before each call: files, folders, and links that lead out."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        (self.workspace / "sub").mkdir(parents=True)
        (self.workspace / "x.txt").write_text("b,1\na,2\n")
        (self.workspace / "a.json").write_text('{"a": [1, {"b": "x"}]}')
        (self.workspace / "link").symlink_to(self.outside)
        (self.workspace / "linked.txt").symlink_to(self.outside / "secret.txt")

    def state(self) -> dict[str, tuple[Any, ...]]:
        """What lies outside, to the byte."""
        found = sorted([self.outside, *self.outside.rglob("*"), *self.outside.parent.iterdir()])
        return {
            str(path): (
                path.lstat().st_mode,
                hashlib.sha256(path.read_bytes()).digest() if path.is_file() else None,
            )
            for path in found
            if path not in (self.workspace, self.outside.parent / "home")
        }


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path / "ws", tmp_path / "outside", tmp_path / "outside" / "canary")
    made.outside.mkdir()
    (made.outside / "secret.txt").write_text(f"{SECRET}\n")
    return made


def sets(
    dice: random.Random, texts: list[str]
) -> Iterator[tuple[ToolDefinition, Any, dict[str, Any]]]:
    """Calls without end: an example's arguments, one to all replaced, some left out or new."""
    tools = list(REGISTRY)
    while True:
        dice.shuffle(tools)
        for tool in tools:
            example = dice.choice(tool.examples)
            args = example.arguments | {k: v for k, v in NOWHERE.items() if k in tool.parameters}
            names = list(tool.parameters)
            for name in dice.sample(names, dice.randint(1, len(names))):
                args[name] = _value(dice, tool, name, texts)
            if dice.random() < 0.1:
                args.pop(dice.choice(names), None)
            if dice.random() < 0.05:
                args[dice.choice(texts)[:40]] = dice.choice(texts)
            yield tool, example, args


def _value(dice: random.Random, tool: ToolDefinition, name: str, texts: list[str]) -> Any:
    parameter = tool.parameters[name]
    if dice.random() < 0.15:
        return dice.choice(ODD)
    if parameter.enum and dice.random() < 0.5:
        return dice.choice(parameter.enum)
    if "array" in parameter.types:
        return [dice.choice(texts) for _ in range(dice.randint(1, 3))]
    if "object" in parameter.types:
        return {dice.choice(texts)[:60]: dice.choice(texts)}
    if "boolean" in parameter.types:
        return dice.random() < 0.5
    if {"integer", "number"} & set(parameter.types) and dice.random() < 0.7:
        return dice.choice([0, 1, -1, 2, 10, 10**6, 2**63])
    return dice.choice(texts)


@pytest.mark.parametrize("count", [150, pytest.param(SETS, marks=pytest.mark.long)])
def test_hostile_arguments_are_arguments(ground: Ground, runner, monkeypatch, count: int):
    """No canary, no traceback, no byte outside read or written; every failure has its class."""
    monkeypatch.setenv("HOME", str(ground.outside))
    dice = random.Random(7351)
    before = ground.state()
    run, seen = runner(ground.workspace), []

    def watched(command: Command) -> CommandResult:
        seen.append(run(command))
        return seen[-1]

    calls = sets(dice, hostile(str(ground.canary), str(ground.outside)))
    refused = 0
    for tool, example, args in (next(calls) for _ in range(count)):
        ground.lay()
        try:
            lay_out(REGISTRY.entry(tool.name), example, ground.workspace)
            result = invoke(tool, args, watched, ground.workspace, confirm=lambda _: True,
                            sleep=lambda _: None)  # fmt: skip
        except BadArgumentsError as error:
            refused += 1
            assert error.problems, (tool.name, args)
            continue
        told = result.to_json().encode("utf-8", "surrogatepass")
        where = (tool.name, args, told[:600])
        assert json.loads(told)["success"] is result.success, where
        assert b"Traceback" not in told, where
        assert "Traceback" not in seen[-1].stderr if seen else True, where
        assert SECRET.encode() not in told, where
        assert result.success or (result.error and result.error.error_class != "internal"), where
        assert not any(SECRET.encode() in each.read_bytes() for each in written(ground)), where
        assert ground.state() == before, where
    assert 0.1 < refused / count < 0.9


def written(ground: Ground) -> Iterator[Path]:
    """The files in the workspace; links are not gone through."""
    for folder, _, names in os.walk(ground.workspace):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink() and path.is_file() and path.stat().st_size < 10_000_000:
                yield path


@pytest.mark.parametrize("count", [300, pytest.param(SETS, marks=pytest.mark.long)])
def test_what_is_shown_of_hostile_arguments_is_plain(ground: Ground, count: int):
    """A dry run and the question to a person start nothing, and hide nothing in odd signs."""
    dice = random.Random(1357)
    ground.lay()
    before = ground.state()
    calls = sets(dice, hostile(str(ground.canary), str(ground.outside)))
    for tool, _, args in (next(calls) for _ in range(count)):
        try:
            plan = dry_run(tool, args, ground.workspace)
            question = plan_text(tool, args)
        except BadArgumentsError:
            continue
        assert question.isprintable(), (tool.name, args)
        root = ground.workspace.resolve()
        for path in (*plan.reads, *plan.writes):
            assert (ground.workspace / path).resolve().is_relative_to(root), (tool.name, path)
    assert ground.state() == before
