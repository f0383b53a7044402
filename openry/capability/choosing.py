"""Which capability a fragment of a task asks for: embeddings of the examples, and cues.

A kernel ridge regression, solved once in closed form, learns from the shipped example wordings
what each tool is asked with. It sees a sentence embedding and the tools' cues that the text
matches. Names and quoted words are hidden from both, but not whether a table, JSON or plain text
is named: without that, a quarter more of the examples were mistaken when each was left out in turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openry.capability.definition import ToolDefinition
from openry.llm.embed import open_embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.floating[Any]]

#: How much the cues weigh beside the embedding, how fast likeness falls off, and how strongly the
#: fit is held back. Chosen by leaving out each example in turn.
_CUE_WEIGHT = 0.7
_SHARPNESS = 2.0
_RIDGE = 0.5
_QUOTED = re.compile(r"['\"“「`‘]([^'\"”」`’]{1,60})['\"”」`’]")
_URL = re.compile(r"https?://[^\s，。、'\"“”]*[\w/]", re.ASCII)
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b(?:[ T]\d{2}:\d{2}(?::\d{2})?)?", re.ASCII)
_FILE = re.compile(r"(?<![\w./-])(?:[\w\-]+/)*[\w\-]+\.(?P<ending>[A-Za-z]\w{0,6})\b", re.ASCII)
#: The kinds of files that tell tools apart, by ending; any other is a `file`.
_KINDS = {
    ending: kind
    for kind, endings in {
        "table": "csv tsv",
        "json": "json jsonl",
        "archive": "zip tar gz tgz",
        "mail": "eml mbox",
        "database": "db sqlite",
    }.items()
    for ending in endings.split()
}


def file_kind(path: str) -> str:
    """`table`, `json`, `archive`, `mail`, `database` or `file`, by the ending; else `folder`.

    >>> file_kind("a/b.tar.gz"), file_kind("notes.txt"), file_kind("docs")
    ('archive', 'file', 'folder')
    """
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return _KINDS.get(ending.lower(), "file") if dot and stem else "folder"


def masked(text: str) -> str:
    """`text` as the encoder sees it: what is named is not what is asked, only its kind counts.

    >>> masked("put 'red' lines of a.txt  into b.csv")
    "put 'word' lines of the file into the table"
    """
    text = _ADDRESS.sub("the mail address", _URL.sub("the web address", text))
    text = _DATE.sub("the date", _QUOTED.sub("'word'", text))
    text = _FILE.sub(lambda match: f"the {file_kind(match[0])}", text)
    return re.sub(r"\s+", " ", text).strip()


def veiled(text: str) -> str:
    """`text` as cues see it: quoted words and the names of files hidden, their endings kept.

    >>> veiled("put the 'first' lines of sorted.txt into count.csv")
    "put the 'word' lines of x.txt into x.csv"
    """
    return _FILE.sub(lambda match: f"x.{match['ending']}", _QUOTED.sub("'word'", text))


class Chooser:
    """Scores every tool for a text. Built once; embeddings are kept in `cache` between runs."""

    def __init__(self, tools: Sequence[ToolDefinition], cache: Path | None = None) -> None:
        import numpy as np

        self.names = tuple(tool.name for tool in tools)
        self._cues = [[_compiled(cue) for cue in tool.cues] for tool in tools]
        self._seen: dict[str, Matrix] = {}
        self._unexplained: dict[tuple[str, str], int] = {}
        self._own = {
            tool.name: [*self._cues[i], *map(_compiled, _parameter_cues(tool))]
            for i, tool in enumerate(tools)
        }
        self.examples = [example.request for tool in tools for example in tool.examples]
        owners = [i for i, tool in enumerate(tools) for _ in tool.examples]
        self._requests = [
            (request.casefold(), owner)
            for request, owner in zip(self.examples, owners, strict=True)
        ]
        self._clear: dict[str, frozenset[str]] = {}
        rows = _cached(list(map(masked, self.examples)), cache)
        self._examples = self._features(list(map(veiled, self.examples)), rows)
        gram = self._likeness(self._examples) + _RIDGE * np.eye(len(self.examples))
        self._weights = np.linalg.solve(gram, np.eye(len(tools))[owners])

    def scores(self, texts: Sequence[str]) -> Matrix:
        """One row per text, one column per tool of `names`; about 0 to 1, higher fits better."""
        import numpy as np

        new = list(dict.fromkeys(text for text in texts if text not in self._seen))
        if new:
            likeness = self._likeness(self._rows(new))
            self._seen.update(zip(new, likeness @ self._weights, strict=True))
        return np.array([self._seen[text] for text in texts])

    def left_out(self) -> tuple[tuple[str, str], ...]:
        """For each example: its tool, and the tool it would be given without having been learned.

        The closed form of leaving one out; it tells how well wordings carry over.
        """
        import numpy as np

        gram = self._likeness(self._examples) + _RIDGE * np.eye(len(self._examples))
        owners = [owner for _, owner in self._requests]
        inverse = np.linalg.inv(gram)
        held = np.eye(len(self.names))[owners] - self._weights / np.diag(inverse)[:, None]
        guessed = held.argmax(axis=1)
        return tuple((self.names[o], self.names[g]) for o, g in zip(owners, guessed, strict=True))

    def _likeness(self, rows: Matrix) -> Matrix:
        """How like each row is to each example: 1 when equal, less the wider the angle."""
        import numpy as np

        return np.asarray(np.exp(_SHARPNESS * (rows @ self._examples.T - 1)), dtype=np.float64)

    def nearest(self, text: str, name: str, most: int = 3) -> tuple[tuple[str, float], ...]:
        """The examples of a tool that speak most for it, each with what it adds to the score."""
        column = self.names.index(name)
        adds = self._likeness(self._rows([text]))[0] * self._weights[:, column]
        own = [i for i, (_, owner) in enumerate(self._requests) if owner == column]
        best = sorted(own, key=lambda i: -adds[i])[:most]
        return tuple((self.examples[i], float(adds[i])) for i in best)

    def cue_words(self, text: str, name: str) -> tuple[str, ...]:
        """The words of `text` that a tool's cues match."""
        cues = self._cues[self.names.index(name)]
        found = (match.group() for cue in cues for match in cue.finditer(veiled(text)))
        return tuple(dict.fromkeys(filter(None, found)))

    def unexplained(self, text: str, name: str) -> int:
        """How many places of `text` speak clearly for another tool than `name`; 3 at most."""
        key = (text, name)
        if key not in self._unexplained:
            self._unexplained[key] = min(3, self._count_unexplained(veiled(text), name))
        return self._unexplained[key]

    def _count_unexplained(self, text: str, name: str) -> int:
        explained = [m.span() for cue in self._own[name] for m in cue.finditer(text)]
        count, reached = 0, -1
        for start, end in self._wordings(text):
            owners = self._owners(text[start:end])
            if start < reached or not owners or name in owners:
                continue
            if not any(start < e and end > s for s, e in explained):
                count, reached = count + 1, end
        return count

    def _wordings(self, text: str) -> list[tuple[int, int]]:
        """Places of at most 25 characters that some tool's cue matches, in order."""
        found = {m.span() for cues in self._cues for cue in cues for m in cue.finditer(text)}
        return sorted((start, end) for start, end in found if 0 < end - start <= 25)

    def _owners(self, wording: str) -> frozenset[str]:
        """The tools a wording speaks for; empty when the examples use it for others as well."""
        wording = wording.casefold()
        if wording not in self._clear:
            matching = {
                i for i, cues in enumerate(self._cues) if any(c.search(wording) for c in cues)
            }
            used = [owner for request, owner in self._requests if wording in request]
            clear = len(used) > 1 and sum(o in matching for o in used) >= 0.75 * len(used)
            self._clear[wording] = (
                frozenset(self.names[i] for i in matching) if clear else frozenset()
            )
        return self._clear[wording]

    def _rows(self, texts: Sequence[str]) -> Matrix:
        return self._features(list(map(veiled, texts)), _embed(list(map(masked, texts))))

    def _features(self, texts: Sequence[str], rows: Matrix) -> Matrix:
        import numpy as np

        matched = [[any(cue.search(text) for cue in cues) for cues in self._cues] for text in texts]
        cues = np.array(matched, dtype=float)
        cues /= np.maximum(1, np.linalg.norm(cues, axis=1, keepdims=True))
        scale = (1 + _CUE_WEIGHT**2) ** -0.5
        return np.asarray(np.hstack([rows, _CUE_WEIGHT * cues]) * scale, dtype=np.float64)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _parameter_cues(tool: ToolDefinition) -> list[str]:
    return [c for p in tool.parameters.values() for cues in p.cues.values() for c in cues]


def _embed(texts: Sequence[str]) -> Matrix:
    """Sentence embeddings. The multilingual encoder alone: beside it the English one, four times
    as slow, changed the first choice in two of 140 trial tasks, once for the better."""
    return open_embedder("multilingual").embed(texts)


def _cached(texts: Sequence[str], cache: Path | None) -> Matrix:
    """Embeddings of `texts`, from the cache file when it was made from the same texts."""
    import numpy as np

    if cache is None:
        return _embed(texts)
    key = hashlib.sha256("\0".join(("multilingual", *texts)).encode()).hexdigest()[:16]
    file = cache / f"embeddings-{key}.npy"
    try:
        return np.asarray(np.load(file))
    except (OSError, ValueError):
        rows = _embed(texts).astype(np.float32)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{hashlib.sha256(str(id(rows)).encode()).hexdigest()[:8]}.npy")
        np.save(part, rows)
        part.replace(file)
    except OSError:
        pass  # a cache that cannot be written only costs time
    return rows
