"""A benchmark's figures as one HTML page that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loop.report import markup, template


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of the page: a picture made here, a table, or both."""

    title: str
    words: str = ""
    picture: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


def page(title: str, about: str, parts: Sequence[Part]) -> str:
    """The page. It holds no script and loads nothing."""
    shown = [
        {
            "title": part.title,
            "words": part.words,
            "picture": markup(part.picture),
            "head": part.head,
            "rows": part.rows,
        }
        for part in parts
    ]
    return template("bench.html.j2").render(title=title, about=about, parts=shown)
