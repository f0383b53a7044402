"""Every error raised on purpose, each with a `code` that callers match on.

The message is for whoever must mend it: lower case, no full stop, their words in backticks,
the place and the likely fix.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself would cost the forwarder 5 ms
if TYPE_CHECKING:
    from typing import ClassVar


class OpenRYError(Exception):
    """The root. `exit_status` is what a command line returns when nothing else handled it."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 2


class UsageError(OpenRYError):
    """A call or a setting that cannot be carried out as given."""

    code = "usage"


class BadFileError(OpenRYError):
    """A file a person wrote does not say what it must. `problems` holds all of them at once."""

    code = "bad_file"

    def __init__(self, message: str, problems: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join(problems) if problems else message)
        self.problems = problems or (message,)


class BadArgumentsError(OpenRYError):
    """Arguments of a capability that do not fit its parameters; every problem at once."""

    code = "bad_arguments"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class TemplateError(OpenRYError):
    """A template that cannot be rendered. Nothing was run with what it would have given."""

    code = "template"


class NotFoundError(OpenRYError):
    """A name that nothing has. The message offers the nearest one."""

    code = "not_found"


class NotAllowedError(OpenRYError):
    """The rules of a run do not allow it; nothing was started or read.

    `rule` is the one that decided, `instead` what is allowed.
    """

    code = "not_allowed"
    exit_status = 126

    def __init__(self, reason: str, rule: str, instead: str = "") -> None:
        hint = f"; try: {instead}" if instead else ""
        super().__init__(f"not allowed: {reason}{hint}")
        self.rule = rule


class WireError(OpenRYError):
    """What came over a run's socket is no message of ours, or ended too early."""

    code = "wire"
    exit_status = 74


class StorageError(OpenRYError):
    """The ledger could not be read or written. Before a run, nothing was started."""

    code = "storage"
    exit_status = 74


class DamagedLedgerError(StorageError):
    """SQLite says that the ledger's file is not what it wrote."""

    code = "ledger_damaged"


class LedgerTooNewError(StorageError):
    """The ledger was written by a newer OpenRY."""

    code = "ledger_too_new"
    exit_status = 2


class SandboxError(OpenRYError):
    """The sandbox cannot be built here; nothing was run unconfined instead."""

    code = "sandbox_unavailable"
    exit_status = 125


class SnapshotError(OpenRYError):
    """A tree could not be recorded or put back; the workspace is as it was."""

    code = "snapshot"


class StaleError(OpenRYError):
    """A compare-and-set found another state than expected: someone else was first."""

    code = "stale"


class WorkspaceChangedError(OpenRYError):
    """Somebody changed a file of the folder while the loop worked on its copy of it."""

    code = "workspace_changed"
    exit_status = 4


class ModelError(OpenRYError):
    """A model could not be asked or did not answer usefully. `text` keeps what it said.

    Codes: `unknown_model`, `no_weights`, `no_key`, `no_network`, `empty_answer`, `bad_answer`,
    `no_credit`, `rate_limited`, `overloaded`, `context_length`, `cut`, `unpriced`, `not_recorded`,
    `provider`, `stopped` (somebody wanted it).
    `retry_after_s` is how long the provider asked to be left alone; None when it did not say.
    """

    def __init__(
        self, code: str, message: str, text: str = "", *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # one class, many codes: callers match on the code
        self.text = text
        self.retry_after_s = retry_after_s


class BudgetError(OpenRYError):
    """A budget would be exceeded by the next call; the call was not made.

    `limit` says which: `tokens`, `usd`, `seconds`, `calls`, or empty when it is not a model's.
    """

    code = "budget"
    exit_status = 3

    def __init__(self, message: str, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class HostRefusedError(OpenRYError):
    """A connection that a sandbox's proxy does not make. `status` is its answer in HTTP."""

    code = "host_refused"

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
