"""Who may answer for a person: somebody at a terminal, or a script that shows the operator's token.

The token is a file of OPENRY_HOME that no step can see: it is in no environment, and the folder is
hidden in every sandbox.
"""

from __future__ import annotations

import os
import secrets
import stat
from hmac import compare_digest
from pathlib import Path

from openry.config import Config
from openry.errors import StorageError, UsageError
from openry.files import make_private_folder

NAME = "operator.token"
_LONGEST = 4096


def require_operator(config: Config, given: Path | None, *, interactive: bool) -> None:
    """Go on only for the operator.

    Args:
        given: A file that should hold the operator's token.
        interactive: A person is at the terminal.

    Raises:
        UsageError: It is neither; the sentence says where the token is.
    """
    if given is not None:
        token = operator_token(config)  # first: the file that is given may be the one it makes
        if not compare_digest(_read(given).encode(), token.encode()):
            raise UsageError(f"`{given}` does not hold the operator's token")
        return
    if not interactive:
        operator_token(config)
        place = config.home / NAME
        raise UsageError(
            f"only a person at a terminal may answer this, or a script with --token-file {place}"
        )


def operator_token(config: Config) -> str:
    """The token, made at its first use."""
    place = config.home / NAME
    if not place.exists():
        _make(place)
    return _read(place)


def _make(place: Path) -> None:
    """Whole or not at all; who makes it at the same moment makes the only one."""
    draft = place.with_name(f".{NAME}.{secrets.token_hex(4)}")
    try:
        make_private_folder(place.parent)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
        try:
            place.hardlink_to(draft)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise StorageError(f"`{place}` cannot be made: {error.strerror}") from error


def _read(place: Path) -> str:
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"`{place}`: {error.strerror}") from error
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"`{place}` is no regular file")
        if about.st_mode & 0o077:
            raise UsageError(f"others may read `{place}`; run: chmod 600 {place}")
        return os.read(fd, _LONGEST).decode("utf-8", "replace").strip()
    finally:
        os.close(fd)
