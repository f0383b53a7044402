"""Lines in order, by the program `sort`: it sorts files larger than memory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from openry.capability.builtin.failure import ToolFailure
from openry.capability.builtin.lines import lines


def sort_lines(
    path: str, numeric: bool, reverse: bool, unique: bool, ignore_case: bool
) -> Iterator[bytes]:
    """Equal lines keep their order; all lines get the first one's line end.

    With `unique`, equal lines go in a pass of its own: `sort -n -u` would also drop lines that only
    begin with the same number.
    """
    case = ("-f",) if ignore_case else ()
    stages = [("sort", "-s", "-u", *case)] if unique else []
    stages.append(("sort", "-s", *case, *("-n",) * numeric, *("-r",) * reverse))
    return _through(stages, path)


def _through(stages: list[tuple[str, ...]], path: str) -> Iterator[bytes]:
    source = lines(path)
    first = next(source, None)
    if first is None:
        return
    end = first[1]
    processes: list[subprocess.Popen[bytes]] = []
    for argv in stages:
        stdin = processes[-1].stdout if processes else subprocess.PIPE
        processes.append(_started(argv, stdin))
    feed, result = processes[0].stdin, processes[-1].stdout
    assert feed is not None
    assert result is not None
    with feed:
        feed.write(first[0] + b"\n")
        feed.writelines(body + b"\n" for body, _ in source)
    with result:
        for raw in result:
            yield raw[:-1] + end
    if any(process.wait() for process in processes):
        raise ToolFailure("resource", "`sort` could not finish; is there space for its files?")


def _started(argv: tuple[str, ...], stdin: object) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, env=environment)  # type: ignore[call-overload,no-any-return]
