"""Which shell on which platform, and what a command is given. Windows and macOS: untried there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from openry.forwarder.environment import TemporaryFolder, build_environment, shell_argv
from openry.sandbox.windows import windows_line


@pytest.mark.parametrize(
    ("platform", "there", "argv"),
    [
        ("linux", {"/bin/sh", "/bin/bash"}, ("/bin/sh", "-c")),
        ("linux", {"/bin/bash"}, ("/bin/bash", "-c")),
        ("darwin", {"/bin/zsh", "/bin/bash"}, ("/bin/zsh", "-c")),
        ("darwin", {"/bin/bash"}, ("/bin/bash", "-c")),
        ("win32", {"pwsh", "cmd.exe"}, ("pwsh", "-NoProfile", "-NonInteractive", "-Command")),
        ("win32", {"cmd.exe"}, ("cmd.exe", "/d", "/s", "/c")),
        ("freebsd13", {"/bin/sh"}, ("/bin/sh", "-c")),
    ],
)
def test_each_platform_has_its_shell(platform: str, there: set[str], argv: tuple[str, ...]):
    """The first that is there; the last is taken on trust."""
    assert shell_argv("", platform=platform, is_there=there.__contains__) == argv


@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("/opt/ksh", ("-c",)),
        (
            "C:\\Program Files\\PowerShell\\7\\pwsh.exe",
            ("-NoProfile", "-NonInteractive", "-Command"),
        ),
        ("powershell.exe", ("-NoProfile", "-NonInteractive", "-Command")),
        ("CMD.EXE", ("/d", "/s", "/c")),
        ("C:\\Program Files\\Git\\bin\\bash.exe", ("-c",)),
    ],
)
def test_a_configured_shell_gets_the_options_of_its_kind(program: str, options: tuple[str, ...]):
    """Whatever the platform; the program is the one that was named."""
    assert shell_argv(program, platform="darwin") == (program, *options)


@pytest.mark.parametrize(
    "text", ['echo "a b"', "dir & echo %PATH%", 'type "C:\\a b\\c.txt" | more', ""]
)
def test_cmd_gets_the_text_as_it_is(text: str):
    """`/s` takes away the outermost quotes and nothing else."""
    line = windows_line((*shell_argv("cmd.exe"), text))

    assert line == f'cmd.exe /d /s /c "{text}"'


def test_powershell_finds_its_text_again():
    """Quotes and backslashes before them are doubled as Windows programs read them."""
    line = windows_line((*shell_argv("pwsh"), 'echo "a\\" b'))

    assert line == 'pwsh -NoProfile -NonInteractive -Command "echo \\"a\\\\\\" b"'


def test_only_the_allow_list_is_inherited():
    """And of our own variables none but two."""
    own = {"PATH": "/bin", "HOME": "/h", "LANG": "C", "AWS_PROFILE": "x", "OPENRY_RUN_ID": "r"}
    run = {"OPENRY_WORKSPACE": "/w", "OPENRY_IDEMPOTENCY_KEY": "k", "OPENRY_DB": "d", "A": "1"}

    env = build_environment(own, run, {"A": "2"})

    assert {"PATH", "HOME", "LANG", "TERM", "CI", "PAGER"} <= set(env)
    assert (env["A"], env["OPENRY_WORKSPACE"], env["OPENRY_IDEMPOTENCY_KEY"]) == ("2", "/w", "k")
    assert not {"AWS_PROFILE", "OPENRY_RUN_ID", "OPENRY_DB"} & set(env)


def test_what_a_step_sets_beats_what_we_set():
    """A step that wants colours may have them."""
    assert build_environment({}, {"TERM": "xterm"})["TERM"] == "xterm"


@pytest.mark.parametrize("name", ["line\nend", "no text \udcff", "..//./", "missing", "plain"])
def test_a_temporary_folder_is_where_it_can_be_told(tmp_path: Path, name: str):
    """A path that the table of the watch cannot hold in a line would name other processes."""
    base = tmp_path / name
    if name != "missing":
        base.mkdir(exist_ok=True)
    given = f"{tmp_path}/{name}"
    folder = TemporaryFolder(given, alone=True)
    try:
        assert Path(folder.path).is_dir()
        assert folder.path.startswith(str(tmp_path)) is (name in ("..//./", "plain"))
    finally:
        folder.close()
    assert not Path(folder.path).exists()


def test_a_relative_base_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The command and the watch stand elsewhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    folder = TemporaryFolder("here", alone=True)
    folder.close()
    assert folder.path.startswith("/tmp/")


LATER = """
import os, signal, sys
from openry.forwarder.environment import TemporaryFolder
from openry.sandbox.orphans import adopt_orphans
from openry.sandbox.watch import watch
adopt_orphans()
first = TemporaryFolder(sys.argv[1], alone=False)
watch(alone=False)
first.close()
print(len(os.listdir(sys.argv[1])))
keeper = watch(alone=False)
os.kill(keeper.pid, signal.SIGKILL)
while not keeper._process.has_ended():
    pass
second = TemporaryFolder(sys.argv[1], alone=False)
print(os.listdir(sys.argv[1]) == [os.path.basename(second.path)])
"""


def test_a_folder_that_waited_goes_with_its_watch(tmp_path):
    """Where the watch was killed nobody else would remove it."""
    done = subprocess.run(
        [sys.executable, "-c", LATER, tmp_path], capture_output=True, text=True, check=False
    )

    assert (done.stdout, done.stderr) == ("1\nTrue\n", "")
