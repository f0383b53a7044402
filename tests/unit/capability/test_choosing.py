"""A request finds its tool, with the reasons: likeness, cues, and what its arguments need."""

from __future__ import annotations

from pathlib import Path

import pytest

from openry.agent.evidence import gather
from openry.agent.ranking import Ranked, lacks, meant, rank, set_aside
from openry.capability import Registry, load_registry
from openry.capability.choosing import Chooser, file_kind, masked

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


@pytest.fixture(scope="module")
def few(registry: Registry) -> Registry:
    """Some tools that are easily mistaken for each other; all of them would take seconds."""
    return registry.narrowed(["archive.*", "count_*", "filter_lines", "create_directory"])


@pytest.fixture(scope="module")
def chooser(few: Registry) -> Chooser:
    return Chooser(few.tools())


@pytest.fixture
def ranked(few: Registry, chooser: Chooser, tmp_path: Path):
    def of(text: str, **files: str) -> list[Ranked]:
        for name, content in files.items():
            (tmp_path / name.replace("__", ".")).write_text(content)
        return rank(chooser, few.tools(), text, tmp_path)

    return of


def test_the_tool_whose_wordings_are_alike_is_first_and_says_why(ranked) -> None:
    """With the examples that speak for it and the words its cues match."""
    best, *rest = ranked("how many lines of app.log say ERROR?", app__log="ERROR a\nok\n")

    assert best.tool.name == "count_matching_lines"
    assert "how many" in best.cues
    assert len(best.nearest) == 3
    assert all(wording in {e.request for e in best.tool.examples} for wording, _ in best.nearest)
    assert [adds for _, adds in best.nearest] == sorted((a for _, a in best.nearest), reverse=True)
    assert best.score >= max(each.score for each in rest if not each.lacks)


def test_a_tool_whose_file_is_not_there_is_set_aside_with_what_it_lacks(ranked) -> None:
    """`unpack docs.zip` needs a docs.zip; once it is there the tool is first."""
    without = ranked("unpack docs.zip into docs", notes__txt="a\n")

    assert without[0].tool.name != "extract_archive"
    assert [each.tool.name for each in set_aside(without)] == ["extract_archive"]
    assert set_aside(without)[0].lacks == ("`path`: a file that is there (archive)",)

    there = ranked("unpack docs.zip into docs", docs__zip="PK")

    assert there[0].tool.name == "extract_archive"
    assert not set_aside(there)


@pytest.mark.parametrize(
    ("name", "text", "lacking"),
    [
        ("download", "fetch the logo into logo.png", "`url`: an address `https://…`"),
        ("download", "fetch https://example.org/logo.png into logo.png", ""),
        ("send_mail", "send note.eml", "`host`: the name of a server"),
        ("current_time", "what time is it in Paris", "`zone`: a time zone such as Europe/Paris"),
        ("csv_column", "the colours of t.csv", "`column`: a column of the table (id, city)"),
        ("csv_column", "the second column of t.csv", ""),
        ("diff", "what changed in a.txt", "`other`: a second file that is there"),
        ("diff", "what changed from a.txt to b.txt", ""),
        ("csv_to_json", "a.txt as JSON", "`path`: a file that is there (table)"),
    ],
)
def test_what_an_argument_needs_is_told(
    registry: Registry, tmp_path: Path, name: str, text: str, lacking: str
) -> None:
    """An address, a server, a zone, a column, a second file, a file of the right kind."""
    for file, content in {"a.txt": "x\n", "b.txt": "y\n", "t.csv": "id,city\n1,Rome\n",
                          "note.eml": "Subject: a\n\n"}.items():  # fmt: skip
        (tmp_path / file).write_text(content)

    found = lacks(registry.get(name), text, gather(text, tmp_path))

    assert found == ((lacking,) if lacking else ())


def test_no_example_of_a_shipped_tool_lacks_anything(registry: Registry, tmp_path: Path) -> None:
    """What a tool's own wordings name is evidence enough, in a folder with its files."""
    from openry.capability.trial import lay_out

    for number, (tool, example) in enumerate((t, e) for t in registry for e in t.examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        lay_out(registry.entry(tool.name), example, folder)
        seen = gather(example.request, folder)
        assert lacks(tool, example.request, seen) == (), (tool.name, example.request)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("don't send anything yet: a mail to ann@example.org", "a mail to ann@example.org"),
        ("keep lines that end in done, not the others", "keep lines that end in done"),
        ("lines of a.txt that do not contain x", "lines of a.txt that do not contain x"),
        ("don't count them", "don't count them"),
    ],
)
def test_what_is_not_meant_is_left_out(text: str, left: str) -> None:
    """Unless nothing else is left, or the word belongs to what is wanted."""
    assert meant(text) == left


def test_names_and_addresses_are_hidden_and_their_kind_is_kept() -> None:
    """The encoder sees what is asked for, not of what."""
    text = "get https://example.org/x.zip into y.zip, tell ann@example.org on 2026-01-02"

    assert masked(text) == (
        "get the web address into the archive, tell the mail address on the date"
    )
    assert file_kind("a/b.eml") == "mail"
