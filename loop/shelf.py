"""Where finished workflows stand: NAME.yaml, and NAME.prov.json: whence each line came."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loop.journal import History
from loop.order import Order
from loop.provenance import provenance
from loop.rounds import Stop
from loop.values import Strength
from openry.errors import UsageError


def place_for(folder: Path, name: str, *, chosen: bool, text: str = "") -> Path:
    """Where workflow `name` is to be saved. A name of ours gives way, a chosen one does not.

    Raises:
        UsageError: The chosen name is taken by another workflow.
    """
    path = folder / f"{name}.yaml"
    if _is_free(path, text):
        return path
    if chosen:
        raise UsageError(
            f"{path} exists already: choose another name with `--name`, or move the file away"
        )
    numbered = (folder / f"{name}-{number}.yaml" for number in range(2, 10_000))
    return next(path for path in numbered if _is_free(path, text))


def is_as_written(path: Path, history: History) -> bool:
    """Whether a workflow file is as some round left it; one that is not there is."""
    if not path.is_file():
        return True
    return path.read_bytes() in {each.text.encode() for each in history.rounds}


def save(folder: Path, history: History, stop: Stop, strength: Strength, order: Order) -> Path:
    """Write the workflow that converged and its provenance; both appear whole."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = stop.round.text
    path = place_for(folder, history.session["name"], chosen=bool(order.name), text=text)
    about = {
        "acceptance_strength": "strong" if strength.strong else "weak",
        "weak_because": list(strength.weak_because),
    }
    write(path, text, provenance(history, stop.round, order, stop=stop.reason, strength=about))
    return path


def write(path: Path, text: str, prov: Mapping[str, Any]) -> None:
    """Write a workflow and its provenance; the notes first, so that no workflow is without."""
    _write(path.with_suffix(".prov.json"), json.dumps(prov, indent=2, ensure_ascii=False) + "\n")
    _write(path, text)


def best_of(folder: Path) -> Path:
    """The best workflow so far, where a session keeps its own things."""
    return folder / "best.yaml"


def keep_best(folder: Path, history: History) -> Path:
    """Write the best workflow so far."""
    assert history.current is not None
    path = best_of(folder)
    _write(path, history.current.text)
    return path


def _is_free(path: Path, text: str) -> bool:
    """Whether nothing is there, or the same."""
    return path.read_bytes() == text.encode() if path.is_file() else not path.exists()


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(path)
