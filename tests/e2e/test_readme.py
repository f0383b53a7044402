"""What the README says can be typed, and prints what the README says it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from openry.config import SETTINGS
from tests.e2e.readme import READMES, ROOT, blocks, masked, run

TEXTS = {name: (ROOT / name).read_text("utf-8") for name in READMES}


@pytest.mark.sandbox
@pytest.mark.model
def test_the_tour_prints_what_stands_there(tmp_path):
    """Every shell block runs, in order, and its output is the one shown, times and ids aside."""
    shown = {name: [b for b in blocks(text) if not b.not_run] for name, text in TEXTS.items()}
    english = shown["README.md"]

    printed = run([block.code for block in english], tmp_path)

    assert len(printed) == len(english) >= 5
    for name, its_blocks in shown.items():
        for block, said in zip(its_blocks, printed, strict=True):
            if block.output is not None:
                assert masked(said) == masked(block.output), (name, block.code)


def test_both_readmes_have_the_same_commands():
    """Whoever reads Chinese types the same as whoever reads English."""
    english, chinese = (blocks(text) for text in TEXTS.values())

    assert [block.code for block in chinese] == [block.code for block in english]
    assert [block.not_run == "" for block in chinese] == [b.not_run == "" for b in english]


def test_only_setup_and_keys_are_not_run():
    """A block is left out only when it is `make`'s own, serves on, or needs a key or an agent."""
    for name, text in TEXTS.items():
        for block in blocks(text):
            if block.not_run:
                words = ("make ", "API_KEY", "API_BASE", "apt-get", "claude mcp", "openry serve")
                assert any(word in block.code for word in words), (name, block.code)


@pytest.mark.parametrize("name", READMES)
def test_every_setting_stands_in_the_table(name):
    """The table of settings lists each key and each variable that there is."""
    for field, key, variable, _ in SETTINGS:
        assert f"`{key or variable}`" in TEXTS[name], field
        assert not variable or f"`{variable}`" in TEXTS[name], field


@pytest.mark.parametrize("name", READMES)
def test_every_file_that_is_linked_is_there(name):
    """Relative links lead somewhere."""
    links = re.findall(r"\]\((?!http|#)([^)#]+)", TEXTS[name])

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.sandbox
@pytest.mark.model
@pytest.mark.parametrize("fault", [(), ("--inject-fault",)], ids=["demo", "demo-fault"])
def test_the_demo_converges(tmp_path, fault):
    """`make demo` and `make demo-fault` end with 0 and leave what they were asked for."""
    argv = (sys.executable, "-m", "demo", "--to", str(tmp_path), *fault)
    env = {**os.environ, "OPENRY_MODEL": "nobody/knows"}

    done = subprocess.run(
        argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300
    )

    assert done.returncode == 0, done.stdout + done.stderr
    for folder in tmp_path.iterdir():
        assert (folder / "files" / "open_orders.csv").is_file() or folder.name == "one-goal"
        for file in (folder / "files").glob("error_count.txt"):
            assert file.read_text().strip() == "5"
        assert list((folder / "home" / "workflows").glob("*.yaml"))
