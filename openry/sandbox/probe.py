"""Does the sandbox hold? Acts that must fail inside, each of which must succeed outside.

Any surprise, also a control run that fails, means that the sandbox is not to be believed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from openry.errors import SandboxError
from openry.models.command import SandboxSpec
from openry.sandbox.inlet import PORT
from openry.sandbox.launcher import Launch, launcher

_SYSTEM_FILE = "/usr/.openry-probe"
#: Without programs, which take longer to start than to act.
_SCRIPT = f"""
exec 2>/dev/null
read -r line <"$1/secret" && echo read
echo x >"$1/$5" && [ -s "$1/$5" ] && echo write
: >{_SYSTEM_FILE} && echo system
: >>/proc/sys/kernel/core_pattern && echo settings
exec 3<>"/dev/tcp/127.0.0.1/$2" && echo connect
[ -n "$4" ] && exec 4<>/dev/tcp/127.0.0.1/{PORT} &&
    printf 'CONNECT localhost:%s HTTP/1.1\r\n\r\n' "$2" >&4 &&
    read -r -t 9 answer <&4 && [[ $answer == *' 200 '* ]] && echo proxy
kill -0 "$3" && echo processes
echo x >.openry && echo protected
echo x >made && echo workspace
"""
#: What each act means, when it succeeds inside.
_MEANT = {
    "read": "a file outside could be read",
    "write": "a file outside could be written",
    "system": "/usr could be written",
    "settings": "a setting of the kernel could be written",
    "connect": "a server on this host could be reached",
    "proxy": "a server on this host could be reached through the proxy",
    "processes": "a process outside could be seen",
    "protected": "a protected name could be made",
}
#: Only root may do them outside; for others they are refused everywhere.
_ROOTS = ("system", "settings")
_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Act:
    """One act: whether it was done outside, as a control, and inside."""

    name: str
    outside: bool
    inside: bool

    @property
    def surprise(self) -> str:
        """What is wrong; empty when all is as it should be."""
        if self.name == "workspace":
            return "" if self.outside and self.inside else "the workspace could not be written"
        if self.inside:
            return _MEANT[self.name]
        if not self.outside and not (self.name in _ROOTS and os.geteuid() != 0):
            return f"the probe itself failed: `{self.name}` did not work outside the sandbox"
        return ""


def probe(spec: SandboxSpec) -> tuple[Act, ...]:
    """Try every act outside and inside a sandbox of this kind.

    Raises:
        SandboxError: It could not be built.
    """
    with (
        tempfile.TemporaryDirectory(prefix="openry-probe-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        outside = Path(folder, "outside")
        outside.mkdir()
        (outside / "secret").write_text("x\n")
        asks = "yes" if spec.hosts and not spec.network else ""
        words = (str(outside), str(server.getsockname()[1]), str(os.getpid()), asks)
        free, confined = (_Trial(one, Path(folder)) for one in ("free", "confined"))
        try:  # both at once, and first the one that takes longer
            confined.start(spec, words)
            free.start(SandboxSpec(), words)
            control, inside = free.done(), confined.done()
        finally:
            free.close()
            confined.close()
        if "system" in control | inside:
            Path(_SYSTEM_FILE).unlink(missing_ok=True)
        # What is written to a folder that only looks like it is no act.
        effects = {"write": outside / "confined", "protected": confined.workspace / ".openry"}
        inside -= {name for name, path in effects.items() if not path.exists()}
        inside |= {name for name, path in effects.items() if path.exists()}
    if "connect" in control:
        control.add("proxy")  # there is none outside, and nobody who would have to be kept from it
    skipped = {"connect"} if spec.network else set()
    skipped |= set() if asks else {"proxy"}
    return tuple(
        Act(name, name in control, name in inside)
        for name in (*_MEANT, "workspace")
        if name not in skipped
    )


class _Trial:
    """One run of all the acts, in a workspace of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.workspace = folder / f"workspace-{name}"
        self.workspace.mkdir()
        self._name = name
        self._launch: Launch | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, spec: SandboxSpec, words: Sequence[str]) -> None:
        place = str(self.workspace)
        argv = (_bash(), "-c", _SCRIPT, "probe", *words, self._name)
        if spec.backend != "none":
            spec = replace(spec, write=(place,), read=(), only_named=False, protect=())
        self._launch = launch = launcher(spec, place, bare=True).launch(argv, place, "")
        try:
            self._process = subprocess.Popen(
                launch.argv,
                cwd=place,  # where a sandbox that is none would act
                pass_fds=launch.pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"PATH": os.defpath},
            )
        except OSError as error:
            said = f"`{launch.argv[0]}` cannot be started: {error.strerror}"
            raise SandboxError(said) from error

    def done(self) -> set[str]:
        """The names of the acts that succeeded.

        Raises:
            SandboxError: It was never begun, or does not end.
        """
        assert self._process is not None
        try:
            out, err = self._process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise SandboxError(f"the probe did not end within {_TIMEOUT_S} s") from None
        if not out:
            said = err.decode("utf-8", "replace").strip().splitlines()
            raise SandboxError(
                said[-1].removeprefix("bwrap: ") if said else "the probe said nothing"
            )
        if self._launch and self._launch.guard:
            self._launch.guard.settle(f"{self.workspace}-away")
        return set(out.decode().split())

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
        if launch := self._launch:
            for fd in (*launch.pass_fds, *((launch.status_fd,) if launch.status_fd >= 0 else ())):
                os.close(fd)
            for held in (launch.helper, launch.guard):
                if held:
                    held.close()
            if launch.group:
                launch.group.remove()


def _bash() -> str:
    """`/dev/tcp` is bash's own."""
    for path in ("/bin/bash", "/usr/bin/bash"):
        if os.access(path, os.X_OK):
            return path
    raise SandboxError("the probe needs bash; install it, or use the sandbox `none`")
