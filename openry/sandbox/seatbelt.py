"""Backend `seatbelt`, for macOS: a profile for `sandbox-exec`. Written, and untried there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from openry.errors import SandboxError
from openry.models.command import SandboxSpec
from openry.sandbox.launcher import Launch, limited
from openry.sandbox.protect import ALWAYS

PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library",
    "/private/etc",
    "/private/var/db",
    "/opt",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
_NEEDED = (
    "(version 1)",
    "(deny default)",
    "(allow process-exec process-fork sysctl-read)",
    "(allow signal (target same-sandbox))",
    "(allow file-read-metadata)",
)


class Seatbelt:
    """One profile, used for as many commands as wanted."""

    backend = "seatbelt"
    confines_processes = False
    gives: Sequence[str] = ("fs_read", "fs_write", "net")

    def __init__(self, spec: SandboxSpec, workspace: str, *, hide: Sequence[str] = ()) -> None:
        if not os.access(PROGRAM, os.X_OK):
            raise SandboxError(f"`{PROGRAM}` is not there; it belongs to macOS")
        if spec.hosts and not spec.network:
            raise SandboxError("seatbelt cannot open single hosts; allow the network, or none")
        self.identity = "seatbelt"
        self.env: Mapping[str, str] = {}
        self._spec, self._workspace, self._hide = spec, workspace, tuple(hide)

    def launch(self, argv: Sequence[str], cwd: str, tmp: str) -> Launch:
        text = profile(self._spec, self._workspace, hide=self._hide, tmp=tmp)
        return Launch((PROGRAM, "-p", text, *limited(argv, self._spec)), cwd)


def profile(spec: SandboxSpec, workspace: str, *, hide: Sequence[str] = (), tmp: str = "") -> str:
    """The profile in Apple's language; of two rules that apply the later one wins.

    >>> print(profile(SandboxSpec(write=("/w",)), "/w").splitlines()[-1])
    (deny file-write* (subpath "/w/.vscode"))
    """
    from openry.sandbox.prefixes import interpreter_places

    write = [os.path.realpath(place) for place in (*spec.write, *([tmp] if tmp else []))]
    named = spec.read if spec.only_named else (workspace, *spec.read)
    read = [os.path.realpath(place) for place in named if place]
    lines = [*_NEEDED]
    lines += [_rule("allow", "file-read*", place) for place in (*_SYSTEM, *interpreter_places())]
    lines += [_rule("allow", "file-read*", place) for place in (*read, *write)]
    lines += [_rule("allow", "file-read* file-write*", place) for place in _DEVICES]
    lines += ["(allow network*)" if spec.network else "(deny network*)"]
    lines += [_rule("allow", "file-write*", place) for place in write]
    lines += [_rule("deny", "file-read* file-write*", os.path.realpath(one)) for one in hide]
    folders = sorted(map(os.path.realpath, spec.write))
    closed = [os.path.join(place, name) for place in folders for name in (*ALWAYS, *spec.protect)]
    # A folder above must not be renamed, or another could take its place.
    above = sorted({os.path.dirname(place) for place in closed} - set(folders))
    lines += [_rule("deny", "file-write-unlink", place, "literal") for place in above]
    lines += [_rule("deny", "file-write*", place) for place in closed]
    return "\n".join(lines)


def _rule(verdict: str, what: str, place: str, how: str = "subpath") -> str:
    quoted = place.replace("\\", "\\\\").replace('"', '\\"')
    return f'({verdict} {what} ({how} "{quoted}"))'
