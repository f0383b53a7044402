"""A sandbox is believed once it was tried here. On the forwarder's path: a look at one file."""

from __future__ import annotations

import os

from openry import __version__
from openry.errors import SandboxError
from openry.sandbox.launcher import launcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from openry.models.command import SandboxSpec
    from openry.sandbox.launcher import Launcher


def trusted_launcher(
    spec: SandboxSpec, workspace: str, *, hide: Sequence[str], home: str
) -> Launcher:
    """The launcher for `spec`, tried on this machine since its last start.

    `auto` is bubblewrap; where that does not work, landlock.

    Raises:
        SandboxError: It does not hold, or cannot be built; the sentence says which.
    """
    try:
        made = launcher(spec, workspace, hide=hide)
        _ensure(spec, workspace, made, home)
    except SandboxError as error:
        if spec.backend != "auto" or spec.refused:
            raise
        from dataclasses import replace

        try:
            other = replace(spec, backend="landlock")
            return trusted_launcher(other, workspace, hide=hide, home=home)
        except SandboxError as second:
            raise SandboxError(f"{error}; nor landlock: {second}") from error
    return made


def _ensure(spec: SandboxSpec, workspace: str, made: Launcher, home: str) -> None:
    """Probe this kind of sandbox, unless that was done since the machine started."""
    if made.backend == "none":
        return
    boot = _boot_id()
    mark = f"{home}/sandbox/probed-{_kind(spec, workspace, made)}-{boot}"
    if os.path.exists(mark):
        return
    from openry.sandbox.probe import probe

    surprises = [act.surprise for act in probe(spec) if act.surprise]
    if surprises:
        raise SandboxError(f"it does not hold here: {'; '.join(surprises)}; see openry probe")
    folder = os.path.dirname(mark)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        for name in os.listdir(folder):
            if name.startswith("probed-") and not name.endswith(boot):
                os.unlink(f"{folder}/{name}")
        os.close(os.open(mark, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError:  # then it is probed again next time
        return


def _kind(spec: SandboxSpec, workspace: str, made: Launcher) -> str:
    """A hash of all that makes this sandbox what it is; the same policy elsewhere has the same."""
    import hashlib

    settings = repr(spec).replace(workspace, ".") if workspace else repr(spec)
    text = f"{made.identity} {settings} {os.geteuid()} {__version__}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"
