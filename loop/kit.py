"""What a process loads once and every session shares: settings, ledger, tools, snapshots."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from loop.grounded import workflow_data
from loop.models import Models
from loop.order import STRUCTURED, Order
from loop.survey import survey
from loop.values import Candidate, Reading, Survey
from openry.capability import Registry, own_registry
from openry.config import Config
from openry.errors import ModelError, StorageError, UsageError
from openry.ledger.db import Ledger
from openry.ledger.fast import FastLedger
from openry.llm import Model, open_model
from openry.output.redact import Redactor
from openry.session.keeper import store_of
from openry.session.snapshot import SnapshotStore

if TYPE_CHECKING:
    from loop.reading import Reader

#: Gives a model by its name; takes what `openry.llm.open_model` takes.
OpenModel = Callable[..., Model]
#: A larger folder is most likely not the one that was meant.
MAX_FILES, MAX_BYTES = 20_000, 2 * 1024**3
#: Folders of OPENRY_HOME that a session writes to.
_WRITTEN = ("loops", "snapshots", "workflows")
#: Its owner may write to a folder. Asked beside `os.access`, which lets root pass: a copy of the
#: folder keeps its rights, and nothing could be written there by a command that is no root.
_OWNER = stat.S_IWUSR


class Kit:
    """Everything costly, made when first asked for. Close it when the process is done with it.

    Args:
        open_model: Another opener of models, for tests.
        cache: Where embeddings are kept between runs; by default in OPENRY_HOME.
    """

    def __init__(
        self, config: Config, *, open_model: OpenModel = open_model, cache: Path | None = None
    ) -> None:
        self.config = config
        self.open_model = open_model
        self.cache = cache or config.home / "cache"

    @cached_property
    def ledger(self) -> Ledger:
        home = self.config.home
        try:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise StorageError(
                f"`{home}` cannot be made: {why}; set OPENRY_HOME to a folder you may write"
            ) from error
        return Ledger(self.config.ledger)

    @cached_property
    def fast(self) -> FastLedger:
        return FastLedger(self.ledger.where)

    @cached_property
    def registry(self) -> Registry:
        return own_registry(self.config.home)

    @cached_property
    def store(self) -> SnapshotStore:
        return store_of(self.config)

    @cached_property
    def reader(self) -> Reader:
        """Reads tasks; the weights of its embeddings are loaded when a wording first needs them."""
        from loop.choosing import Chooser
        from loop.reading import Reader

        tools = self.registry.everyday()
        return Reader(tools, lambda: Chooser(tools, self.cache))

    def survey(self, folder: Path) -> Survey:
        return survey(folder)

    @cached_property
    def redact(self) -> Callable[[str], str]:
        """Takes secrets out of a text."""
        return Redactor.for_config(self.config, os.environ).text

    def models(self, order: Order, session_id: str) -> Models:
        """The models of one session, behind one budget and one cassette."""
        return Models(self, order, session_id)

    def read(self, order: Order, survey: Survey) -> Reading:
        """What plain code and embeddings make of the task.

        A planner that drafts freely can do without; then missing weights only cost suggestions.

        Raises:
            ModelError: `no_weights`, where the reading is needed.
        """
        try:
            return self.reader.read(order.task, survey)
        except ModelError:
            if order.strategy != STRUCTURED:
                raise
            return Reading(order.task, (), ())

    def workflow_data(self, candidate: Candidate, name: str, task: str) -> Mapping[str, Any]:
        """Plain data of a candidate's workflow."""
        return workflow_data(candidate, self.registry, name=name, task=task)

    @contextmanager
    def open_copy(self, snapshot: str, near: Path) -> Iterator[Path]:
        """A throw-away copy of a snapshot, in a folder of its own under `near`."""
        with new_folder(near) as folder:
            self.store.restore(snapshot, folder)
            yield folder

    def close(self) -> None:
        if "fast" in self.__dict__:
            self.fast.close()
        if "ledger" in self.__dict__:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def new_folder(near: Path) -> Iterator[Path]:
    """The name of a folder under `near` that is not there yet, and is gone afterwards.

    The first free name is taken: a command that prints its folder prints the same in a resumed
    session, so that a model's recorded answers still fit.
    """
    near.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = _free(near)
    try:
        yield place / "copy"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _free(near: Path) -> Path:
    for number in count():
        place = near / f"run-{number}"
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return place
    raise AssertionError("unreachable: numbers do not end")


def refuse_if_closed(home: Path) -> None:
    """Raises UsageError when what a session leaves behind cannot be written; before it begins."""
    for path in (home / name for name in _WRITTEN):
        there = next(one for one in (path, *path.parents) if one.exists())
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            raise UsageError(
                f"`{there}` cannot be written: change its rights, or set OPENRY_HOME elsewhere"
            )


def refuse_if_unfit(folder: Path, home: Path) -> None:
    """Raises UsageError when `folder` is too large for a task, is closed, or holds what is ours."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK) or not folder.stat().st_mode & _OWNER:
        raise UsageError(
            f"`{folder}` cannot be read and written, and results are put into it:"
            f" change its rights (`chmod u+rwx {folder}`), or work on a copy of it"
        )
    inside = home.resolve()
    if inside.is_relative_to(folder.resolve()) and ".openry" not in inside.parts:
        raise UsageError(
            f"`{folder}` holds OPENRY_HOME (`{home}`): give the folder of the task with `--dir`"
        )
    files = size = 0
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        files += 1
        size += path.stat().st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise UsageError(
                f"`{folder}` holds more than {MAX_FILES:,} files or 2 GiB:"
                " give the smaller folder of the task with `--dir`"
            )
