"""Tables that programs print: columns by blanks, by tabs or by bars; with headings or without.

Where a column lies is seen from all lines at once: it ends where every line has a blank. So values
that stand to the right of their heading, and headings of two words, stay what they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

Rows = list[dict[str, str]] | list[list[str]]

#: Lines that only draw.
_RULE = re.compile(r"[\s|+:=_*─━═│┃║┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬-]+")
_BARS = str.maketrans("│┃║", "|||")
_TOTAL = re.compile(r"total \d+\S*")
#: What stands in rows and in no heading: amounts, times, modes of files, paths, versions.
_VALUE = re.compile(
    r"[-+]?[\d.,:/]*\d[\d.,:/]*([KMGTPEkmgtpe]?i?[Bb]?|%|s|ms|m|h|d|ns|us|\+)?"
    r"|[-dlcbps][rwxsStT-]{9}[.+@]?|\.?\.?/\S*|~/\S*"
)
_FILLER = "\0"
#: `ss` prints its headings a place beside their columns, or one into the other.
_SOCKETS = re.compile(
    r"(Netid\s+)?State\s+Recv-Q\s+Send-Q\s+Local Address:Port\s+Peer Address:Port\s*(Process)?$"
)


def table(text: str) -> Rows:
    """Rows under headings as objects; rows without headings as lists of cells.

    >>> table("NAME  AGE\\nAnn     3\\nBo     12\\n")
    [{'NAME': 'Ann', 'AGE': '3'}, {'NAME': 'Bo', 'AGE': '12'}]
    >>> table("4\\t./f.txt\\n8\\t./a b\\n")
    [['4', './f.txt'], ['8', './a b']]

    Raises:
        ValueError: It is no table.
    """
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if lines and _SOCKETS.match(lines[0]):
        return _sockets(lines)
    if any("|" in line.translate(_BARS) for line in lines[:3]):
        return _by_bars(lines)
    lines = [line for line in lines if not _RULE.fullmatch(line)]
    if lines and _TOTAL.fullmatch(lines[0]):
        lines = lines[1:]
    if len(lines) > 2 and _is_title(lines[0], lines[1]):
        lines = lines[1:]
    if not lines:
        raise ValueError("there are no rows")
    tabs = {line.count("\t") for line in lines}
    if len(tabs) == 1 and tabs != {0}:
        return _named([line.split("\t") for line in lines])
    lines = [line.expandtabs() for line in lines]
    if not _is_heading(lines[0].split()):
        return _cells(lines)
    if len(lines) < 2:
        raise ValueError("no heading with rows below")
    return _by_gutters(lines)


def sure_table(text: str) -> Rows:
    """As `table`, for a text of which nobody said that it is one.

    Raises:
        ValueError: It may as well be something else.
    """
    rows = table(text)
    if not rows or not isinstance(rows[0], dict):
        raise ValueError("no headings")
    names, bars = list(rows[0]), "|" in text.translate(_BARS)
    if len(names) < 2 or len(set(map(str.casefold, names))) < len(names):
        raise ValueError("only one column")
    heading = "".join(names)
    if not (heading.isupper() or bars or _has_amounts(rows, names[1:])):
        raise ValueError("neither capital headings nor a column of amounts")
    return rows


def _has_amounts(rows: Sequence[object], names: Iterable[str]) -> bool:
    cells = [[row[name] for row in rows if isinstance(row, dict)] for name in names]
    return any(all(cell and _VALUE.fullmatch(cell) for cell in column) for column in cells)


def _is_heading(cells: Sequence[str]) -> bool:
    return bool(cells) and not any(_VALUE.fullmatch(cell) for cell in cells)


def _is_title(first: str, second: str) -> bool:
    """A sentence above the headings has no gaps in it; headings have."""
    return not re.search(r"\S(\s{2,}|\t)\S", first) and bool(re.search(r"\S\s{2,}\S", second))


def _cells(lines: Sequence[str]) -> list[list[str]]:
    """Rows without headings: as many cells as the shortest row has, the last takes the rest."""
    count = min(len(line.split()) for line in lines)
    if count < 2:
        raise ValueError("only one column")
    return [line.split(None, count - 1) for line in lines]


def _named(rows: list[list[str]]) -> Rows:
    cells = [[cell.strip() for cell in row] for row in rows]
    if len(cells) < 2 or not _is_heading(cells[0]) or not all(cells[0]):
        return cells
    names = _unique(cells[0])
    return [dict(zip(names, row, strict=True)) for row in cells[1:]]


def _unique(names: Iterable[str]) -> list[str]:
    """A heading that stands twice gets a number: no cell is lost."""
    made: list[str] = []
    for name in names:
        number, new = 1, name
        while new in made:
            number += 1
            new = f"{name}_{number}"
        made.append(new)
    return made


def _sockets(lines: Sequence[str]) -> Rows:
    """What `ss` prints, word by word; an address of a Unix socket has two words."""
    names = [name for name in ("Netid", "State") if name in lines[0]]
    names += ["Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"]
    process = "Process" in lines[0]
    return [
        dict(zip([*names, "Process"] if process else names, row, strict=True))
        for row in (_socket(line, len(names) - 2, process) for line in lines[1:])
    ]


def _socket(line: str, before: int, process: bool) -> list[str]:
    words = line.split()
    row, rest = words[:before], words[before:]
    for _ in range(2):
        size = 2 if len(rest) > 1 and rest[1].isdecimal() else 1
        row.append(" ".join(rest[:size]))
        rest = rest[size:]
    if line[0].isspace() or not row[-1] or (rest and not process):
        raise ValueError("no line of `ss`")
    return [*row, " ".join(rest)] if process else row


# --- bars ---------------------------------------------------------------------------------


def _by_bars(lines: Sequence[str]) -> Rows:
    """As psql, mysql and Markdown draw them; what stands above or below the bars is left out."""
    drawn = [line.translate(_BARS).strip() for line in lines]
    framed = all(line[0] == line[-1] == "|" for line in drawn if "|" in line and not _rule(line))
    rows = [
        [cell.strip() for cell in (line[1:-1] if framed else line).split("|")]
        for line in drawn
        if "|" in line and not _rule(line)
    ]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        raise ValueError("the bars part the lines differently")
    if not any(_rule(line) for line in drawn):
        return rows if not _is_heading(rows[0]) else _named(rows)
    names = _unique(rows[0])
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def _rule(line: str) -> bool:
    """Whether a line only draws; a row of empty cells has no dash."""
    return bool(_RULE.fullmatch(line)) and any(sign in line for sign in "-=─━═")


# --- blanks -------------------------------------------------------------------------------


def _by_gutters(lines: Sequence[str]) -> list[dict[str, str]]:
    wide = [_spread(line) for line in lines]
    spans = _merged(wide, _occupied(wide))
    columns = [column for span in spans for column in _split(_column(wide, span))]
    if len(columns) < 2:
        raise ValueError("only one column")
    names = _unique(column[0] for column in columns)
    rows = zip(*(column[1:] for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


Span = tuple[int, int]


def _spread(line: str) -> str:
    """One sign for each place on a terminal: a wide letter takes two."""
    if line.isascii():
        return line
    wide = (sign + _FILLER * (unicodedata.east_asian_width(sign) in "WF") for sign in line)
    return "".join(wide)


def _occupied(lines: Sequence[str]) -> list[Span]:
    """Runs of places at which some line has no blank."""
    width = max(map(len, lines))
    used = [False] * (width + 1)
    for line in lines:
        for match in re.finditer(r"\S+", line):
            used[match.start() : match.end()] = [True] * (match.end() - match.start())
    spans, start = [], -1
    for place, here in enumerate(used):
        if here and start < 0:
            start = place
        elif not here and start >= 0:
            spans.append((start, place))
            start = -1
    return spans


def _merged(lines: Sequence[str], spans: Sequence[Span]) -> list[Span]:
    """Runs that are one column: words of one value, or of one heading over a column that is not
    as wide."""
    made: list[Span] = []
    for span in spans:
        if made and _is_one(lines, made[-1], span):
            made[-1] = (made[-1][0], span[1])
        else:
            made.append(span)
    return made


def _is_one(lines: Sequence[str], left: Span, right: Span) -> bool:
    heading, rows = lines[0], lines[1:]
    if not heading[slice(*right)].strip():
        return True
    before = heading[slice(*left)]
    gap = right[0] - left[1] + len(before) - len(before.rstrip())
    after = heading[slice(*right)]
    gap += len(after) - len(after.lstrip())
    empty = (not any(row[slice(*span)].strip() for row in rows) for span in (left, right))
    return bool(before.strip()) and gap == 1 and any(empty)


def _column(lines: Sequence[str], span: Span) -> list[str]:
    return [line[slice(*span)].replace(_FILLER, "").strip() for line in lines]


def _split(column: list[str]) -> list[list[str]]:
    """Columns that ran into each other: as many words in every row as in the heading."""
    words = [cell.split() for cell in column]
    if len({len(each) for each in words}) == 1 and len(words[0]) > 1:
        return [list(each) for each in zip(*words, strict=True)]
    return [column]
