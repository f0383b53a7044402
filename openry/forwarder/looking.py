"""`openry output` for a run: its instance's outputs, the files its step may read, a row each."""

from __future__ import annotations

import os

from openry.clock import monotonic
from openry.errors import NotAllowedError, OpenRYError
from openry.forwarder.files import OutputFile
from openry.forwarder.hand import REFUSED, Hand, turned_away
from openry.forwarder.outputs import Shelf, look
from openry.forwarder.reading import open_without_links
from openry.ledger.outputs import find_output, keep_outputs, outputs_of
from openry.models.command import CommandResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO


class RunShelf(Shelf):
    """What the agent of a run may open and write: as its commands may, without links."""

    def __init__(self, hand: Hand, folder: str) -> None:
        context, ledger = hand.context, hand.ledger
        whose = context.instance_id
        super().__init__(
            lambda name: find_output(ledger, name, instance_id=whose),
            lambda: outputs_of(ledger, instance_id=whose),
            text=hand.redactor.text,
            max_tokens=hand.max_tokens,
            single_digits=context.single_digits,
        )
        self._hand = hand
        self._folder = folder or context.workspace

    def open_file(self, name: str) -> BinaryIO:
        return open(open_without_links(self._hand.check_reading(self._full(name))), "rb")

    def write_file(self, path: str, data: bytes) -> None:
        context = self._hand.context
        roots = context.sandbox.write or (context.workspace,)
        file = OutputFile(self._full(path), self._folder, roots)
        written = False
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file.fd, view) :]
            written = True
        finally:
            file.close(keep=written)

    def _full(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._folder, path))


def look_for_run(hand: Hand, words: Sequence[str], folder: str = "") -> CommandResult:
    """Answer `openry output WORDS` of a run's agent. It is recorded, and counts as a call.

    Args:
        folder: What files are named from; the workspace when empty.

    Raises:
        StorageError: The ledger could not be written; nothing was looked at.
    """
    import shlex

    text = hand.redactor.text(shlex.join(("openry", "output", *words)))
    begun = hand.ledger.begin(hand.context, text, cwd=folder)
    if begun.command_id is None:
        return turned_away(begun)
    result = _looked(hand, words, folder)
    hand.ledger.finish(begun.command_id, result)
    if hand.context.max_step_output_tokens:
        from openry.output.tokens import estimate_tokens

        keep_outputs(
            hand.ledger, hand.context, begun.command_id, (), estimate_tokens(result.stdout)
        )
    return result


def _looked(hand: Hand, words: Sequence[str], folder: str) -> CommandResult:
    said: list[str] = []
    started = monotonic()
    status, trouble = 0, ""
    try:
        status = look(words, RunShelf(hand, folder), said.append)
    except NotAllowedError as error:
        status, trouble = REFUSED, str(error)
    except OpenRYError as error:
        status, trouble = error.exit_status, str(error)
    stdout = "".join(said)
    stderr = f"openry: {hand.redactor.text(trouble)}\n" if trouble else ""
    return CommandResult(
        status, stdout, stderr, monotonic() - started, stdout_bytes=len(stdout.encode())
    )
