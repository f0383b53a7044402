"""Outputs that are kept in files."""

from __future__ import annotations

from openry.models.value import value


@value
class Kept:
    """One stream of a command in a file.

    Attributes:
        stream: `stdout` or `stderr`.
        tokens: Estimated; 0 when nobody counted.
        digest: SHA-256 of what is in the file.
    """

    stream: str
    path: str
    bytes: int
    lines: int
    tokens: int
    digest: str


@value
class StoredOutput:
    """A kept output as the ledger knows it."""

    command_id: int
    stream: str
    path: str
    bytes: int
    lines: int
    tokens: int
    digest: str
    at: str
    instance_id: str
    run_id: str
    step_id: str
    command: str

    @property
    def name(self) -> str:
        """By which it is asked for.

        Standard error has the plain name as well where there is nothing of standard output.
        """
        return f"out-{self.command_id}" + (".stderr" if self.stream == "stderr" else "")
