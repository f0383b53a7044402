"""`python -m bench.choosing [--model N]`: how often a request leads to the right tool.

The requests of `choosing.tsv` are of two halves: `d` may be looked at while tools are described;
`h` was written in one go beforehand and is only ever run. Those name files of the folder in
`choosing_files.yaml` and state the arguments they mean. Prints Markdown tables, by strategy, with
95 % intervals (Wilson).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from loop.binding import Scene, fill, without_remarks
from loop.mentions import find_mentions
from loop.survey import survey
from openry.agent.evidence import gather
from openry.agent.offer import narrowed
from openry.agent.ranking import lacks, meant
from openry.capability import Example, Registry, ToolDefinition, complete, load_registry
from openry.capability.choosing import Chooser, veiled
from openry.config import load_config
from openry.errors import BadArgumentsError
from openry.llm.base import ChatRequest, Message
from openry.llm.embed import open_embedder
from openry.llm.local import LocalModel, open_local

_FILE = Path(__file__).with_suffix(".tsv")
_FOLDER = Path(__file__).with_name("choosing_files.yaml")
#: Of a 95 % interval.
_Z = 1.959964
#: How many candidates the small model is asked about.
_SHORTLIST = 3


@dataclass(frozen=True, slots=True)
class Request:
    """One line of the file; `arguments` is None where the line states none."""

    tool: str
    kept_out: bool
    text: str
    arguments: Mapping[str, Any] | None = None

    @property
    def is_chinese(self) -> bool:
        return re.search(r"[\u4e00-\u9fff]", self.text) is not None

    @property
    def contrasts(self) -> bool:
        """Whether it says what is not meant, which is what its nearest neighbour does."""
        return re.search(r"(?i)\b(not|don't|without|rather|instead)\b|不", self.text) is not None


#: For each request the tools, best first; None where a strategy was not asked.
Ranking = list[list[str] | None]


def read_requests(file: Path = _FILE) -> tuple[Request, ...]:
    rows = (line.split("\t") for line in file.read_text("utf-8").splitlines())
    return tuple(
        Request(tool, half == "h", text, json.loads(given) if given else None)
        for tool, half, text, given in rows
    )


@contextmanager
def folder_of_requests() -> Iterator[Path]:
    """The folder that the kept-out requests speak of."""
    with tempfile.TemporaryDirectory(prefix="openry-choosing-") as place:
        for name, text in yaml.safe_load(_FOLDER.read_text("utf-8")).items():
            file = Path(place, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        yield Path(place)


# --- strategies ---------------------------------------------------------------------------


def by_descriptions(tools: Sequence[ToolDefinition], texts: Sequence[str]) -> Ranking:
    """The description that is most like the request."""
    embed = open_embedder("multilingual").embed
    return _ranked(tools, embed(texts) @ embed([first_sentence(tool) for tool in tools]).T)


def by_learning(tools: Iterable[ToolDefinition], texts: Sequence[str]) -> Ranking:
    """What is learned from the tools' wordings and cues."""
    tools = tuple(tools)
    return _ranked(tools, Chooser(tools).scores(list(texts)))


def without_cues(tool: ToolDefinition) -> ToolDefinition:
    return tool.model_copy(update={"cues": []})


def with_parameters(tool: ToolDefinition) -> ToolDefinition:
    """The tool with what it and its parameters are described as for further wordings."""
    told = [first_sentence(tool), *(each.description for each in tool.parameters.values())]
    more = [Example(request=each, arguments={}) for each in told]
    return tool.model_copy(update={"examples": [*tool.examples, *more]})


def feasible_first(
    tools: Sequence[ToolDefinition], requests: Sequence[Request], folder: Path, ranking: Ranking
) -> Ranking:
    """The same order, but tools whose arguments nothing tells come last; of kept-out requests."""
    found: Ranking = []
    for each, names in zip(requests, ranking, strict=True):
        if not each.kept_out or names is None:
            found.append(names)
            continue
        seen = gather(each.text, folder)
        lacking = {tool.name for tool in tools if lacks(tool, each.text, seen)}
        found.append(sorted(names, key=lambda name: name in lacking))
    return found


def scoped(registry: Registry, requests: Sequence[Request]) -> Ranking:
    """A step that offers only the pack of the right tool."""
    ranking: Ranking = [None for _ in requests]
    for pack in {tool.pack for tool in registry}:
        places = [i for i, each in enumerate(requests) if registry.get(each.tool).pack == pack]
        found = by_learning(
            registry.scope([f"{pack}.*"]), [meant(requests[i].text) for i in places]
        )
        for place, ranked in zip(places, found, strict=True):
            ranking[place] = ranked
    return ranking


def by_model(
    choose: Callable[[str, Sequence[str]], list[str]],
    requests: Sequence[Request],
    ranking: Ranking,
    most: int,
) -> Ranking:
    """The small model orders the first few, of `most` kept-out requests spread over the tools."""
    kept = [i for i, each in enumerate(requests) if each.kept_out]
    asked = set(kept[:: max(1, len(kept) // most)][:most])
    found: Ranking = []
    for i, (each, names) in enumerate(zip(requests, ranking, strict=True)):
        if i not in asked or names is None:
            found.append(None)
            continue
        first = choose(each.text, names[:_SHORTLIST])
        found.append([*first, *names[_SHORTLIST:]])
    return found


def likelihood(
    model: LocalModel, registry: Registry, *, examples: bool
) -> Callable[[str, Sequence[str]], list[str]]:
    """Order candidates by how likely their names are as the answer."""

    def choose(text: str, names: Sequence[str]) -> list[str]:
        prompt = _question(registry, text, names, examples=examples)
        return [name for name, _ in model.choose(prompt, names)]

    return choose


def grammar(model: LocalModel, registry: Registry) -> Callable[[str, Sequence[str]], list[str]]:
    """What the model writes where a grammar lets it write one of the names alone."""

    def choose(text: str, names: Sequence[str]) -> list[str]:
        prompt = _question(registry, text, names, examples=False)
        request = ChatRequest(
            messages=(Message("user", prompt),), schema={"enum": [*names]}, max_tokens=16
        )
        said = json.loads(model.complete(request).text)
        return [said, *(name for name in names if name != said)]

    return choose


def _question(registry: Registry, text: str, names: Sequence[str], *, examples: bool) -> str:
    if examples:
        told = [
            f"Task: {each.request}\nTool: {name}"
            for name in names
            for each in registry.get(name).examples[:2]
        ]
        return "\n".join([*told, f"Task: {text}\nTool:"])
    told = [f"{name}: {first_sentence(registry.get(name))}" for name in names]
    return "\n".join(
        ["Tools:", *told, f"\nTask: {text}\nWhich tool does it? Answer with its name."]
    )


def first_sentence(tool: ToolDefinition) -> str:
    return tool.description.split(". ")[0]


def _ranked(tools: Sequence[ToolDefinition], scores: Any) -> Ranking:
    names = [tool.name for tool in tools]
    return [[names[i] for i in np.argsort(-row)] for row in np.asarray(scores)]


# --- arguments ----------------------------------------------------------------------------


def filled_rightly(tool: ToolDefinition, request: Request, folder: Path) -> bool:
    """Whether plain code fills the tool's arguments from text and folder as the request means."""
    seen = survey(folder)
    asked = without_remarks(request.text)
    scene = Scene(
        text=request.text,
        asked=asked,
        veiled=veiled(asked),
        mentions=find_mentions(request.text, seen),
        survey=seen,
        answer="answer.txt",
    )
    wanted, ways = request.arguments or {}, fill(tool, scene)
    if not ways:
        return False
    own = {} if "output" in wanted else {"output": None}  # where an answer goes is the caller's
    try:
        return _plain(complete(tool, {**ways[0].args, **own})) == _plain(complete(tool, wanted))
    except BadArgumentsError:
        return False


def _plain(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def print_arguments(registry: Registry, requests: Sequence[Request], ranking: Ranking) -> None:
    """How often all arguments are right: given the right tool, and where it was chosen."""
    everyday = {tool.name for tool in registry.everyday()}
    groups = ("everyday tools", "tools that are used by name")
    right: dict[str, list[bool]] = {group: [] for group in groups}
    chosen: dict[str, list[bool]] = {group: [] for group in groups}
    with folder_of_requests() as folder:
        for each, names in zip(requests, ranking, strict=True):
            if each.arguments is None:
                continue
            ok = filled_rightly(registry.get(each.tool), each, folder)
            group = groups[each.tool not in everyday]
            right[group].append(ok)
            if names and names[0] == each.tool:
                chosen[group].append(ok)
    print("\n| all arguments right, by plain code | right tool given | right tool chosen |")
    print("| --- | ---: | ---: |")
    for group in groups:
        of = f"{group} ({len(right[group])}, {len(chosen[group])} chosen)"
        print(f"| {of} | {share(right[group])} | {share(chosen[group])} |")


def offered_share(registry: Registry, requests: Sequence[Request]) -> str:
    """Of the texts that arguments need, how many are among those a small model may pick from."""
    hits = []
    with folder_of_requests() as folder:
        for each in requests:
            tool, wanted = registry.get(each.tool), each.arguments or {}
            schema = narrowed(tool, gather(each.text, folder))
            for name, value in wanted.items():
                kinds = tool.parameters[name].types
                if kinds == ("boolean",) or tool.parameters[name].enum or name == "query":
                    continue
                about = schema["properties"][name]
                listed = about.get("items", about).get("enum")
                known = [*map(str, listed or ())]
                values = value if isinstance(value, list) else [value]
                hits += [str(one) in known for one in values]
    return share(hits)


# --- table --------------------------------------------------------------------------------


def wilson(right: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share.

    >>> [round(each, 3) for each in wilson(85, 100)]
    [0.767, 0.907]
    """
    share, spread = right / of, _Z**2 / of
    middle = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / of + spread / of / 4)
    return middle - half, middle + half


def share(hits: Sequence[bool]) -> str:
    if not hits:
        return "–"
    low, high = wilson(sum(hits), len(hits))
    return f"{100 * sum(hits) / len(hits):.0f} % ({100 * low:.0f}–{100 * high:.0f})"


#: Which requests a column is about, and among how many tools the right one must be.
_Column = tuple[str, int, Callable[[Request], bool]]
_COLUMNS: tuple[_Column, ...] = (
    ("looked at, first", 1, lambda each: not each.kept_out),
    ("kept out, first", 1, lambda each: each.kept_out),
    ("kept out, first three", 3, lambda each: each.kept_out),
    ("of these Chinese, first", 1, lambda each: each.kept_out and each.is_chinese),
    ("all that say what is not meant, first", 1, lambda each: each.contrasts),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.choosing", description=__doc__)
    told = "kept-out requests that the small model is asked about (default 60)"
    parser.add_argument("--model", type=int, metavar="N", default=60, help=told)
    told = "list the wrong ones of those that may be looked at"
    parser.add_argument("--missed", action="store_true", help=told)
    given = parser.parse_args()
    registry, requests = load_registry(), read_requests()
    table = _table(registry, requests)
    best = table["+ feasibility, what is not meant left out"]
    counts = [sum(chosen(each) for each in requests) for _, _, chosen in _COLUMNS]
    heads = [f"{name} ({count})" for (name, *_), count in zip(_COLUMNS, counts, strict=True)]
    heads.append("kept out, taken for its opposite")
    print(f"{len(requests)} requests, {len(registry)} tools\n")
    print(f"| strategy | {' | '.join(heads)} |\n| --- |{' ---: |' * len(heads)}")
    for name, ranking in table.items():
        _print_row(registry, name, requests, ranking)
    if given.model:
        model = open_local("local/smollm2", load_config().local_model)
        asked = f"of the first {_SHORTLIST}, {given.model} asked"
        for name, choose in {
            f"135M model by likelihood {asked}": likelihood(model, registry, examples=False),
            f"135M model by likelihood, with examples, {asked}": likelihood(
                model, registry, examples=True
            ),
            f"135M model by grammar {asked}": grammar(model, registry),
        }.items():
            ranking = by_model(choose, requests, best, given.model)
            _print_row(registry, name, requests, ranking)
    print_arguments(registry, requests, best)
    offered = offered_share(registry, requests)
    print(f"\nvalues that are among those a small model picks from: {offered}")
    if given.missed:
        for each, names in zip(requests, best, strict=True):
            if not each.kept_out and names and names[0] != each.tool:
                print(f"{each.tool} -> {names[:3]}: {each.text}")


def _table(registry: Registry, requests: Sequence[Request]) -> dict[str, Ranking]:
    tools, texts = registry.tools(), [each.text for each in requests]
    with folder_of_requests() as folder:
        told = by_learning(tools, [meant(text) for text in texts])
        feasible = feasible_first(tools, requests, folder, told)
    return {
        "descriptions alone": by_descriptions(tools, texts),
        "+ example wordings": by_learning(map(without_cues, tools), texts),
        "+ descriptions of parameters": by_learning(
            map(with_parameters, map(without_cues, tools)), texts
        ),
        "example wordings + cues (words)": by_learning(tools, texts),
        "+ feasibility, what is not meant left out": feasible,
        "the same, one pack offered": scoped(registry, requests),
    }


def _print_row(
    registry: Registry, name: str, requests: Sequence[Request], ranking: Ranking
) -> None:
    cells = [
        share(
            [
                each.tool in names[:most]
                for each, names in zip(requests, ranking, strict=True)
                if names is not None and chosen(each)
            ]
        )
        for _, most, chosen in _COLUMNS
    ]
    opposed = [
        names[0] == registry.get(each.tool).opposite
        for each, names in zip(requests, ranking, strict=True)
        if names is not None and each.kept_out
    ]
    cells.append(f"{sum(opposed)} of {len(opposed)}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
