"""`openry init`: OPENRY_HOME with its folders and a config.yaml to fill in. Safe to repeat."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from openry.cli.output import write, write_json
from openry.cli.parser import Parser
from openry.config import Config, load_config
from openry.data import data_root
from openry.errors import StorageError
from openry.files import make_private_folder, write_private
from openry.ledger.migrate import upgrade
from openry.ledger.place import shown, sqlite_path

FOLDERS = ("compositions", "workflows", "policies", "capabilities", "agents", "overflow")


def main(words: Sequence[str]) -> int:
    parser = Parser("openry init", description=__doc__)
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args(words)
    config = load_config()
    done = make(config)
    if given.json:
        write_json([{"what": what, "path": path} for what, path in done])
    else:
        write("".join(f"{what:<9} {path}\n" for what, path in done))
    return 0


def make(config: Config) -> list[tuple[str, str]]:
    """Make what is missing; for each thing whether it was `made`, `kept`, or `closed` to others.

    Raises:
        StorageError: It cannot be made.
    """
    home = config.home
    try:
        done = [_folder(place) for place in (home, *(home / name for name in FOLDERS))]
        done.append(_file(home / "config.yaml", (data_root() / "templates/config.yaml")))
    except OSError as error:
        raise StorageError(
            f"`{error.filename or home}` cannot be made: {error.strerror};"
            " set OPENRY_HOME to a folder you may write"
        ) from error
    done.append(_ledger(config.ledger))
    return done


def _folder(place: Path) -> tuple[str, str]:
    what = "kept" if place.is_dir() else "made"
    make_private_folder(place)
    if place.stat().st_mode & 0o077:
        place.chmod(0o700)
        what = "closed"
    return what, str(place)


def _file(place: Path, template: Path) -> tuple[str, str]:
    if place.exists():
        return "kept", str(place)
    write_private(place, template.read_text("utf-8"))
    return "made", str(place)


def _ledger(where: str) -> tuple[str, str]:
    path = sqlite_path(where)
    what = "kept" if path is None or os.path.exists(path) else "made"
    upgrade(where)
    return what, shown(where)
