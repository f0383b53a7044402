"""From a name to the file that is meant: a path, else OPENRY_HOME, a project, what is shipped."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

from openry.config import Config
from openry.data import data_root
from openry.errors import NotFoundError
from openry.orchestrator.loader import Loaded, load
from openry.orchestrator.plan import Resolve
from openry.project import places, untrusted_hint
from openry.texts import did_you_mean

_SUFFIXES = (".yaml", ".yml")
_FOLDERS = ("compositions", "workflows", "overflow_workflows", "overflow")


def find_file(name: str, config: Config, *, beside: Collection[str] = ()) -> Path:
    """The file of a workflow or composition.

    Args:
        beside: Names that were looked among before; one of them may have been meant.

    Raises:
        NotFoundError: With the nearest name, or where was looked.
    """
    if is_path(name):
        path = Path(name).expanduser()
        if path.is_file():
            return path
        what = "is a folder, not a workflow file" if path.is_dir() else "does not exist"
        if path.exists() and not path.is_dir():
            raise NotFoundError(f"`{name}` is no regular file")
        raise NotFoundError(f"`{name}` {what}{_near_file(path)}")
    known = names(config)
    if name in known:
        return known[name]
    for folder in _FOLDERS:
        if hint := untrusted_hint(folder, name, config.home):
            raise NotFoundError(f"there is no workflow `{name}` ({hint})")
    hint = did_you_mean(name, (*beside, *known), 0.5)
    hint = hint or f"looked in {config.home} and what is shipped"
    raise NotFoundError(f"there is no workflow `{name}` ({hint})")


def names(config: Config) -> dict[str, Path]:
    """Every workflow and composition that can be named, the first place that has it."""
    found: dict[str, Path] = {}
    own = [place for folder in _FOLDERS for place in places(folder, config.home)]
    own.sort(key=lambda place: place.parent != config.home)
    shipped = [data_root() / folder for folder in _FOLDERS]
    for place in (*own, *shipped):
        for path in _files(place):
            found.setdefault(path.stem, path)
    return found


def resolver(loaded: Loaded, config: Config) -> Resolve:
    """How the big steps of `loaded` are found: beside it first, then by name."""

    def resolve(ref: str) -> Loaded:
        folders = _beside(loaded)
        for folder in folders:
            for suffix in _SUFFIXES:
                if (folder / f"{ref}{suffix}").is_file():
                    return load(folder / f"{ref}{suffix}")
        beside = [path.stem for folder in folders for path in _files(folder)]
        return load(find_file(ref, config, beside=beside))

    return resolve


def _beside(loaded: Loaded) -> tuple[Path, ...]:
    if loaded.path is None:
        return ()
    here = loaded.path.parent
    return here, here.parent / "workflows", here / "workflows"


def is_path(name: str) -> bool:
    """Whether `name` says where the file is."""
    return "/" in name or name.endswith(_SUFFIXES) or name.startswith((".", "~"))


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.suffix in _SUFFIXES and not path.stem.endswith(".test"):
                yield path


def _near_file(path: Path) -> str:
    try:
        beside = [each.name for each in path.parent.iterdir()]
    except OSError:
        return ""
    near = get_close_matches(path.name, beside, 1, 0.6)
    return f" (did you mean `{path.with_name(near[0])}`?)" if near else ""
