"""`openry log --changes STEP`: what a step changed; `openry log export`: every row as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from openry.cli.moments import time_since
from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import load_config, make_home
from openry.errors import StorageError, UsageError
from openry.ledger.db import Ledger
from openry.ledger.query import export
from openry.session.changes import StepChanges, changes_of
from openry.session.snapshot import SnapshotStore
from openry.session.tree import show
from openry.texts import one_line

_SHOWN_CHARS = 200


def main(words: Sequence[str]) -> int:
    parser = Parser("openry log", description="What a step changed: files, payload, commands.")
    parser.add_argument("--changes", required=True, metavar="STEP", help="the step's name")
    parser.add_argument("--instance", default="", metavar="ID", help="default: the newest with it")
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    config = load_config()
    make_home(config)
    store = SnapshotStore(config.home / "snapshots")
    with Ledger(config.ledger) as ledger, ledger.read() as connection:
        found = changes_of(connection, store, given.changes, given.instance)
    if given.json:
        about = asdict(found)
        about["payload"] = {
            key: {"before": old, "after": new} for key, (old, new) in found.payload.items()
        }
        write_json(about)
    else:
        write(_told(found))
    return 0


def _told(found: StepChanges) -> str:
    lines = [f"step {found.step_id} of instance {found.instance_id}, run {found.run_id}", "files:"]
    for one in found.files or ():
        lines.append(f"  {one.kind} {show(one.path)}")
        lines += [f"    {line}" for line in one.diff.splitlines()]
    if not found.files:
        lines.append(f"  {found.note or 'none'}")
    lines.append("payload:")
    for key, (old, new) in found.payload.items():
        lines.append(f"  {key}: {_short(old)} -> {_short(new)}")
    if not found.payload:
        lines.append("  unchanged")
    lines.append("commands:")
    for command in found.commands:
        code = "-" if command.exit_code is None else command.exit_code
        lines.append(
            f"  #{command.seq} {command.ending} {code}  {one_line(command.command, _SHOWN_CHARS)}"
        )
    if not found.commands:
        lines.append("  none")
    return "\n".join(lines) + "\n"


def _short(item: Any) -> str:
    if item is None:
        return "(none)"
    return one_line(json.dumps(item, ensure_ascii=False, default=str), _SHOWN_CHARS)


def export_rows(words: Sequence[str]) -> int:
    parser = Parser("openry log export", description="Every row as a line of JSON.")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: -")
    parser.add_argument("--since", default="", metavar="1h", help="at most this old, or a date")
    given = parser.parse_args(words[1:])
    since = time_since(given.since) if given.since else ""
    config = load_config()
    make_home(config)
    if given.file != "-" and os.path.exists(given.file):
        raise UsageError(f"`{given.file}` exists; choose another name, or remove it first")
    with Ledger(config.ledger) as ledger, ledger.read() as connection:
        lines = (
            json.dumps(row, ensure_ascii=False, default=str) + "\n"
            for row in export(connection, since=since)
        )
        if given.file == "-":
            for line in lines:
                write(line)
            return 0
        try:
            descriptor = os.open(given.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise StorageError(f"`{given.file}` cannot be written: {error.strerror}") from error
    return 0
