"""What every command of `openry-orchestrator` shares: its settings, its words, its output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from openry.config import Config, load_config, make_home
from openry.errors import UsageError
from openry.files import must_be_file
from openry.orchestrator.show import SCHEMA_VERSION

NAME = "openry-orchestrator"
OK, FAILED, USAGE, WAITING, INTERRUPTED = 0, 1, 2, 3, 130
#: What moves a terminal's cursor back, or rings its bell, is left out of a text.
_BARE = dict.fromkeys((7, 8, 11, 12, 13))
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Instance, or the first letters of its id.")]


def settings(model: str = "") -> Config:
    config = load_config()
    make_home(config)
    return replace(config, model=model) if model else config


def person() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "person"


def pairs(given: Sequence[str]) -> dict[str, str]:
    """What was given as `--input key=value`."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f"`--input {text}` is not `key=value`")
        found[key] = value
    return found


def inputs_of(file: Path | None, given: Sequence[str]) -> dict[str, Any]:
    """Inputs of a file, YAML or JSON, with those of the command line over them."""
    return {**(_from_file(file) if file else {}), **pairs(given)}


def _from_file(file: Path) -> Mapping[str, Any]:
    from openry.orchestrator import yaml12

    try:
        must_be_file(file)
        text, problems = yaml12.decode(file.read_bytes(), str(file))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"`--input-file {file}` cannot be read: {why}") from None
    document = yaml12.compose(text, str(file)) if not problems else None
    problems = problems or (document.problems if document else ())
    if problems or document is None:
        raise UsageError("; ".join(map(str, problems)))
    data = yaml12.plain(document.data)
    if not isinstance(data, dict):
        raise UsageError(f"`--input-file {file}` holds no mapping of inputs")
    return data


def out(said: Any, as_json: bool = False) -> None:
    """To standard output: JSON on one line, text as it is, or what rich makes of the rest."""
    if not as_json and not isinstance(said, str):
        from rich.console import Console

        Console().print(said)
        return
    text = json.dumps(said, ensure_ascii=False, default=str) if as_json else said.translate(_BARE)
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def answer(said: Mapping[str, Any]) -> None:
    """One JSON object with the version of its shape."""
    out({"schema_version": SCHEMA_VERSION, **said}, True)
