"""Files that an agent names: judged by its run's rules before they are opened, and regular ones."""

from __future__ import annotations

import os
import stat

from openry.errors import NotAllowedError, UsageError
from openry.sandbox.real import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openry.models.command import RunContext
    from openry.policy import Policy

#: What every sandbox shows of the system.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


def check_reading(path: str, context: RunContext, policy: Policy | None, *, confined: bool) -> str:
    """The real place of `path`, which the run may read; nothing is looked at in there.

    Args:
        path: Absolute.
        confined: Whether a sandbox is round the run's commands, which see no other places then.

    Raises:
        NotAllowedError: It may not.
    """
    real = os.path.realpath(path)
    sandbox = context.sandbox
    given = (context.workspace, *sandbox.read, *sandbox.write)
    roots = [os.path.realpath(root) for root in given if root]
    if confined and not any(is_within(real, root) for root in (*roots, *_SYSTEM)):
        where = ", ".join(f"`{root}`" for root in roots)
        raise NotAllowedError(f"`{path}` is outside what this step may read", "files", where)
    if policy is not None and real != os.path.realpath(context.workspace or "/"):
        import shlex

        base = context.workspace or os.path.dirname(real)
        verdict = policy.decide(f"< {shlex.quote(real)}", cwd=base, workspace=base)
        if not verdict.allowed:
            raise NotAllowedError(verdict.reason, verdict.rule, verdict.instead)
    return real


def read_regular(real: str, limit: int, what: str) -> bytes:
    """At most `limit` + 1 bytes of the regular file at `real`, a path without links.

    Each folder on the way is opened by itself and no link is followed: who swaps one in between
    changes nothing. A pipe or a device is not waited for.

    Raises:
        UsageError: There is no such file, or it is not a regular one.
    """
    try:
        fd = open_without_links(real)
    except OSError as error:
        raise UsageError(f"{what} `{real}`: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError(f"{what} `{real}` is no regular file")
        return _all_of(fd, limit + 1)
    finally:
        os.close(fd)


def open_without_links(real: str) -> int:
    """A descriptor of what is at `real`; each folder on the way is opened by itself."""
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    *above, name = real.strip("/").split("/")
    try:
        for part in above:
            inner = os.open(
                part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
            )
            os.close(folder)
            folder = inner
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _all_of(fd: int, most: int) -> bytes:
    found = b""
    while len(found) < most and (part := os.read(fd, most - len(found))):
        found += part
    return found
