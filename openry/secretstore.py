"""Secrets that a person gave us to keep: in the system's keyring, else in a file of mode 0600.

On the forwarder's path: every stored value is taken out of every answer. Nothing is imported
unless there is a secret.
"""

from __future__ import annotations

import os

from openry.errors import BadFileError, NotFoundError, StorageError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Keyring(Protocol):
        """What we use of the `keyring` package."""

        def get_password(self, service: str, name: str) -> str | None: ...

        def set_password(self, service: str, name: str, value: str) -> None: ...

        def delete_password(self, service: str, name: str) -> None: ...


FILE = "secrets.json"
#: A shorter value stands in too many texts by chance to be taken out of all of them.
SHORTEST = 6
_SERVICE = "openry"
_LARGEST = 64 * 1024


class SecretStore:
    """The secrets of one OPENRY_HOME.

    Args:
        keyring: The system's; None keeps the values in the file. By default the `keyring` package,
            if it is installed and works here.
    """

    def __init__(self, home: str | os.PathLike[str], *, keyring: Keyring | str | None = "") -> None:
        self.path = os.path.join(home, FILE)
        self._given = keyring

    def names(self) -> dict[str, str]:
        """Where each one is kept: `file` or `keyring`."""
        return {name: "keyring" if text is None else "file" for name, text in self._read().items()}

    def values(self) -> dict[str, str]:
        """Every secret that can be read here and now."""
        kept = self._read() if os.path.exists(self.path) else {}
        found = {}
        for name, text in kept.items():
            said = text if text is not None else self._from_keyring(name)
            if said is not None:
                found[name] = said
        return found

    def set(self, name: str, text: str) -> str:
        """Keep `text` under `name`; says where: `file` or `keyring`.

        Raises:
            UsageError: The name or the value will not do.
            StorageError: It cannot be written.
        """
        check(name, text)
        kept = self._read()
        kept[name] = text
        if self._to_keyring(name, text):
            kept[name] = None
        self._write(kept)
        return "file" if kept[name] is not None else "keyring"

    def remove(self, name: str) -> None:
        """Forget it.

        Raises:
            NotFoundError: There is none of that name.
        """
        kept = self._read()
        if name not in kept:
            from openry.texts import did_you_mean

            hint = did_you_mean(name, kept) or "`openry secret list` shows all"
            raise NotFoundError(f"no secret is called `{name}` ({hint})")
        if kept.pop(name) is None:
            self._out_of_keyring(name)
        self._write(kept)

    # --- the file -----------------------------------------------------------------------------

    def _read(self) -> dict[str, str | None]:
        """Names and values; None for a value that the keyring has."""
        import json

        try:
            with open(self.path, encoding="utf-8") as file:
                data = json.load(file)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StorageError(f"`{self.path}` cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise BadFileError(_no_file_of_ours(self.path)) from error
        if not isinstance(data, dict) or not all(
            text is None or isinstance(text, str) for text in data.values()
        ):
            raise BadFileError(_no_file_of_ours(self.path))
        return data

    def _write(self, kept: Mapping[str, str | None]) -> None:
        import json
        from pathlib import Path

        from openry.files import write_private

        try:
            write_private(Path(self.path), json.dumps(kept, ensure_ascii=False, indent=1))
        except OSError as error:
            raise StorageError(f"`{self.path}` cannot be written: {error.strerror}") from error

    # --- the keyring --------------------------------------------------------------------------

    def _keyring(self) -> Keyring | None:
        if not isinstance(self._given, str):
            return self._given
        try:
            import keyring
        except ImportError:
            return None
        found: Keyring = keyring
        return found

    def _to_keyring(self, name: str, text: str) -> bool:
        """Whether the keyring has it now, and says so when asked."""
        keyring = self._keyring()
        if keyring is None:
            return False
        try:
            keyring.set_password(_SERVICE, name, text)
            return keyring.get_password(_SERVICE, name) == text
        except Exception:  # whatever its backend raises: it does not work here
            return False

    def _from_keyring(self, name: str) -> str | None:
        keyring = self._keyring()
        try:
            return keyring.get_password(_SERVICE, name) if keyring else None
        except Exception:  # locked, or no longer there
            return None

    def _out_of_keyring(self, name: str) -> None:
        keyring = self._keyring()
        try:
            if keyring:
                keyring.delete_password(_SERVICE, name)
        except Exception:  # gone already
            return


def check(name: str, text: str) -> None:
    """Whether a secret may be called and be like this.

    Raises:
        UsageError: It may not.
    """
    plain = name.replace("_", "a")
    if not (plain.isascii() and plain.isalnum()) or name[0].isdigit() or name.startswith("OPENRY_"):
        raise UsageError(
            f"`{name}` cannot be the name of a secret; take one like a variable's, e.g. `API_TOKEN`"
        )
    if len(text) < SHORTEST:
        raise UsageError(
            f"a secret must have at least {SHORTEST} characters, or it could not be taken out of"
            " answers"
        )
    if len(text) > _LARGEST or "\0" in text:
        raise UsageError("a secret is a text of at most 64 KiB without NUL characters")


def _no_file_of_ours(path: str) -> str:
    return f"{path}: holds no secrets that can be read; move it away and set them again"
