"""Packs of one's own: begun, installed with a package, broken, many, and read quickly."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from openry.capability import Registry, load_registry, own_registry
from openry.capability.cache import DefinitionCache
from openry.capability.registry import load_pack
from openry.capability.skeleton import write_skeleton
from openry.capability.trial import try_example
from openry.data import data_root
from openry.errors import NotFoundError, UsageError

GOOD = """\
name: say_hello
description: Greets somebody by name, not everybody.
parameters:
  who: {type: string, required: true, description: Whom to greet.}
command_template: [echo, "hello {who}"]
examples:
  - {request: Greet Ann, arguments: {who: Ann}, result: hello Ann}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, as pip leaves them."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def install(site: Path, name: str, points: str) -> None:
    """What pip writes down about a package of that name."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[openry.capabilities]\n{points}\n")


def packages(site: Path) -> None:
    """Four packages: YAML files, a function, one that breaks, one whose name leads nowhere."""
    (site / "greeter_tools").mkdir()
    (site / "greeter_tools/__init__.py").write_text("raise RuntimeError('nobody imports this')\n")
    (site / "greeter_tools/say_hello.yaml").write_text(GOOD)
    install(site, "greeter", "greet = greeter_tools")
    (site / "maker.py").write_text(
        "import yaml\n"
        f"TEXT = {GOOD!r}\n"
        "def tools():\n"
        "    for word in ('ciao', 'hola'):\n"
        "        yield yaml.safe_load(TEXT.replace('say_hello', f'say_{word}'))\n"
        "    yield yaml.safe_load(TEXT.replace('examples:', 'exmples:'))\n"
    )
    install(site, "maker", "made = maker:tools")
    (site / "breaker.py").write_text("def tools():\n    return 1 / 0\n")
    install(site, "breaker", "broken = breaker:tools")
    install(site, "nobody", "nothing = no_such_package.tools")


def test_packages_bring_tools_by_entry_point(home: Path, site: Path, runner, workspace: Path):
    """Folders of YAML and functions that give definitions; each is listed and works."""
    packages(site)

    registry = own_registry(home, workspace)

    assert {"say_hello", "say_ciao", "say_hola"} <= set(registry.names())
    assert (registry.get("say_ciao").pack, registry.get("say_hello").pack) == (
        "made",
        "greeter_tools",
    )
    entry = registry.entry("say_hello")
    trial = try_example(entry, entry.tool.examples[0], workspace, runner(workspace))
    assert trial.problems == ()


def test_a_package_that_breaks_is_named_and_stops_nobody(home: Path, site: Path, workspace: Path):
    """Its own entry point, with what it raised; the shipped tools are all there."""
    packages(site)

    registry = own_registry(home, workspace)

    said = "\n".join(map(str, registry.problems))
    assert (
        "breaker (entry point `broken = breaker:tools`): cannot be loaded: ZeroDivisionError"
        in said
    )
    assert "nobody (entry point `nothing = no_such_package.tools`)" in said
    assert "unknown key `exmples` (did you mean `examples`?)" in said
    assert set(load_registry().names()) <= set(registry.names())


def test_two_packs_with_one_name_are_an_error_that_names_both(
    home: Path, site: Path, workspace: Path
):
    """A package, an own pack, a shipped tool: the first stays, none is replaced silently."""
    packages(site)
    mine = home / "capabilities/mine"
    mine.mkdir(parents=True)
    (mine / "say_hello.yaml").write_text(GOOD)
    (mine / "sort_lines.yaml").write_text(GOOD.replace("say_hello", "sort_lines"))

    registry = own_registry(home, workspace)

    said = "\n".join(map(str, registry.problems))
    assert registry.entry("say_hello").source == str(mine / "say_hello.yaml")
    assert registry.get("sort_lines").pack == "text"
    for name, first, second in (
        ("say_hello", "mine/say_hello.yaml", "greeter_tools/say_hello.yaml"),
        ("sort_lines", "text/sort_lines.yaml", "mine/sort_lines.yaml"),
    ):
        line = next(each for each in said.splitlines() if f"named `{name}`" in each)
        assert first in line
        assert second in line


def test_a_tool_whose_file_is_broken_says_so_when_it_is_called(home: Path, workspace: Path):
    """Not that there is none; with the line."""
    mine = home / "capabilities/mine"
    mine.mkdir(parents=True)
    (mine / "hello.yaml").write_text("name: [hello\n")

    registry = own_registry(home, workspace)

    with pytest.raises(NotFoundError, match=r"cannot be used: .*hello.yaml:2: ") as refusal:
        registry.get("hello")
    assert str(refusal.value).count("hello.yaml") == 1


# --- a tool of one's own ------------------------------------------------------------------


@pytest.mark.parametrize("python", [False, True])
def test_a_begun_tool_works_at_once(tmp_path: Path, runner, python: bool):
    """Its examples are right before a word of it was changed."""
    pack = tmp_path / "mine"
    write_skeleton(Registry(), "size_of", pack, python=python)
    registry = load_registry([pack])
    entry = registry.entry("size_of")

    for number, example in enumerate(entry.tool.examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert try_example(entry, example, folder, runner(folder)).problems == ()
    assert registry.problems == []


def test_a_begun_tool_replaces_nothing(tmp_path: Path):
    """Neither a tool nor a file."""
    write_skeleton(Registry(), "size_of", tmp_path, python=False)
    for name in ("size_of", "Size", "../x", ""):
        with pytest.raises(UsageError):
            write_skeleton(Registry(), name, tmp_path, python=False)
    with pytest.raises(UsageError, match=r"is taken: .*sort_lines\.yaml"):
        write_skeleton(load_registry(), "sort_lines", tmp_path, python=False)


# --- many, and quickly --------------------------------------------------------------------


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of change cannot be set back, so the cache is told to trust new files too."""
    monkeypatch.setattr("openry.capability.cache._TOO_NEW_S", -1.0)


def test_what_is_remembered_is_what_was_written(home: Path, workspace: Path, patient):
    """Every definition is the same from the files and from the cache."""
    first = own_registry(home, workspace)
    again = own_registry(home, workspace)

    assert (home / "cache/capabilities.json").stat().st_mode & 0o777 == 0o600
    assert [first.entry(name) for name in first.names()] == [again.entry(n) for n in again.names()]
    assert first.tools() == load_registry().tools()


def test_a_changed_file_is_read_again(home: Path, workspace: Path, patient):
    """Also when its size and time of writing are what they were."""
    mine = home / "capabilities/mine"
    mine.mkdir(parents=True)
    file = mine / "say_hello.yaml"
    file.write_text(GOOD)
    before = file.stat()
    own_registry(home, workspace)

    file.write_text(GOOD.replace("hello {who}", "howdy {who}"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert own_registry(home, workspace).get("say_hello").command_template == [
        "echo",
        "howdy {who}",
    ]
    file.write_text(GOOD.replace("examples:", "exmples:"))
    assert "say_hello" not in own_registry(home, workspace)
    file.unlink()
    assert "say_hello" not in own_registry(home, workspace)


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"form": "x"}', "\x00", '{"files": {"a": [1]}}', "[" * 100_000]
)
def test_a_damaged_cache_costs_only_time(home: Path, workspace: Path, content: str):
    """It is made anew."""
    place = home / "cache/capabilities.json"
    place.parent.mkdir()
    place.write_text(content)

    assert own_registry(home, workspace).problems == []
    assert own_registry(home, workspace).tools() == load_registry().tools()


def test_a_cache_that_others_may_write_is_not_used(home: Path, workspace: Path, patient):
    """Whoever can write it could put words into a tool's mouth."""
    own_registry(home, workspace)
    place = home / "cache/capabilities.json"
    text = place.read_text().replace("Keep only the lines", "KEEP ONLY THE LINES")
    place.write_text(text)
    assert "KEEP ONLY" in own_registry(home, workspace).get("filter_lines").description
    place.chmod(0o666)
    assert "KEEP ONLY" not in own_registry(home, workspace).get("filter_lines").description


def test_what_was_written_just_now_is_not_remembered(tmp_path: Path):
    """Two writings within one tick of the clock look alike."""
    (tmp_path / "say_hello.yaml").write_text(GOOD)
    cache = DefinitionCache(tmp_path / "cache.json")

    load_pack(Registry(), tmp_path, cache)
    cache.save()

    assert not (tmp_path / "cache.json").exists()


def test_two_hundred_tools_are_loaded(home: Path, workspace: Path, patient):
    """Packs with the same tools under other names stand beside each other."""
    shipped, made = len(own_registry(home, workspace)), 0
    for copy in range(3):
        for pack in ("text", "files", "data"):
            folder = home / "capabilities" / f"{pack}{copy}"
            shutil.copytree(data_root() / "templates/capabilities" / pack, folder)
            for path in sorted(folder.glob("*.yaml")):
                if path.name != "pack.yaml":
                    name, made = path.stem, made + 1
                    text = path.read_text().replace(f"name: {name}", f"name: {name}_{copy}", 1)
                    path.write_text(text) if shipped + made <= 200 else path.unlink()
    assert len(own_registry(home, workspace)) == 200
