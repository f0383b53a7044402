"""Standard output, in UTF-8 whatever the locale says."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def write(text: str) -> None:
    """Write all of `text`; nobody reading any more is no error, a full disk ends the program."""
    view = memoryview(text.encode("utf-8", "replace"))
    try:
        while view:
            view = view[os.write(1, view) :]
    except BrokenPipeError:
        return
    except OSError as error:
        raise SystemExit(f"openry: standard output cannot be written: {error.strerror}") from None


def write_json(item: object) -> None:
    import json

    write(json.dumps(item, ensure_ascii=False, indent=2, default=str) + "\n")


def write_table(rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell; the last one as long as it likes."""
    lines = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line[:-1], widths[:-1], strict=True)]
        write("  ".join([*cells, line[-1]]).rstrip() + "\n")
