"""What programs outside run or are led by later cannot be written, be it there yet or not.

Each line succeeds without a sandbox, as a control, and leaves nothing within.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hand_helpers import as_user, need_bubblewrap, need_root

import openry.sandbox
from openry.config import load_config
from openry.forwarder import Hand
from openry.forwarder.bounds import narrowed
from openry.ledger.fast import FastLedger
from openry.models import Command, CommandResult, RunContext, SandboxSpec
from openry.policy import load_policy
from openry.sandbox import below, quarantine
from openry.sandbox.below import Below

pytestmark = pytest.mark.sandbox
MakeHand = Callable[..., Hand]
NOBODY = 65534
NAMES = (".git/config", ".git/hooks", ".openry", ".vscode", ".git/commondir")
EXISTING = (
    "mkdir -p .git/hooks .openry .vscode; "
    "for name in .git/config .git/HEAD .openry/a; do echo x > $name; done"
)


@pytest.fixture
def workspace(make_hand: MakeHand) -> Path:
    return Path(make_hand().context.workspace)


def tree(folder: Path) -> dict[str, str]:
    """What a folder holds: files with their text, links with where they lead."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = "folder" if path.is_dir() else path.read_text()
    return found


#: Lines that change what is protected, in a workspace that has it.
CHANGES = [
    "echo x >> .git/config",
    "touch .git/hooks/pre-commit",
    "mv .git/hooks .git/old",
    "mv .git x && mkdir .git && touch .git/config",
    "rm -rf .git/hooks",
    "rm -rf .openry && mkdir .openry",
    "echo x > .vscode/tasks.json",
    "ln .git/config l && echo x >> l",
    "ln -s .openry o && echo x > o/new",
    "echo x > new && mv new .git/config",
    "echo ../other > .git/commondir",
    "chmod 777 .git/hooks",
]


@pytest.mark.parametrize("line", CHANGES)
def test_what_is_there_stays_as_it_is(make_hand: MakeHand, workspace: Path, line: str):
    """By its name, a link, a hard link, or after its parent was to be moved away."""
    need_bubblewrap()
    free, caged = make_hand("none"), make_hand("bubblewrap")
    assert free.forward(Command(EXISTING)).ok
    before = tree(workspace / ".git"), tree(workspace / ".openry"), tree(workspace / ".vscode")
    mode = (workspace / ".git/hooks").stat().st_mode

    result = caged.forward(Command(line))

    after = tree(workspace / ".git"), tree(workspace / ".openry"), tree(workspace / ".vscode")
    assert result.exit_code != 0
    assert (workspace / ".git/hooks").stat().st_mode == mode
    assert after == before
    assert free.forward(Command(line)).ok, "the control run failed"


#: Lines that make what is protected, in a workspace that has none of it.
MAKERS = [
    "mkdir .openry",
    "mkdir -p .git && echo x > .git/config",
    "mkdir .git; sleep 0.05; mkdir .git/hooks; sleep 0.05; echo x > .git/hooks/pre-commit",
    "mkdir a && echo x > a/config && mv a .git",
    "ln -s / .vscode",
    "ln -s a .git; mkdir a; echo x > a/config",
    "echo 'gitdir: a' > .git; mkdir a; echo x > a/config; mv .git b; mv a .git",
    "mkdir .vscode; (setsid sh -c 'sleep 0.1; echo x > .vscode/tasks.json' &)",
    "exec 2>/dev/null; while :; do mkdir -p .openry/policies; echo x > .openry/policies/p; done",
]


@pytest.mark.parametrize("line", MAKERS)
def test_what_is_not_there_does_not_come_into_being(
    make_hand: MakeHand, workspace: Path, line: str, sandbox: str
):
    """The command is ended and says so; what it made lies in our own folder; nothing else stays."""
    free = Command(line, timeout_s=3 if "while :" in line else 100)
    assert any(_made(make_hand("none").forward(free), workspace))
    subprocess.run(["find", workspace, "-mindepth", "1", "-delete"], check=True)
    caged = make_hand(sandbox)

    result = caged.forward(Command(line, timeout_s=200))

    assert (result.exit_code, str(result.ending)) == (126, "refused")
    assert "is protected" in result.stderr
    assert not any(_made(result, workspace))
    assert any((caged.config.home / "quarantine").iterdir())


def _made(result: CommandResult, workspace: Path) -> list[bool]:
    return [os.path.lexists(workspace / name) for name in NAMES]


def test_no_rights_keep_us_from_putting_it_away(migrated: Path):
    """A folder that was closed by the command, as somebody who is not above rights."""
    need_root()
    with tempfile.TemporaryDirectory(prefix="openry-") as name:
        place = Path(name)
        for folder in (place / "ws", place / "home"):
            folder.mkdir()
        shutil.copy(migrated, place / "home" / "openry.db")
        lines = ["mkdir .openry; echo x > .openry/x; chmod 0 .openry; chmod 555 .",
                 "mkdir .git .git/hooks; chmod 0 .git; chmod 0 ."]  # fmt: skip

        def work() -> list[tuple[int, list[str]]]:
            config = load_config(place / "home", env={})
            spec = SandboxSpec("bubblewrap", (str(place / "ws"),))
            found = []
            with FastLedger(config.ledger) as ledger:
                hand = Hand(ledger, RunContext(workspace=str(place / "ws"), sandbox=spec), config)
                for line in lines:
                    code = hand.forward(Command(line)).exit_code
                    (place / "ws").chmod(0o755)
                    found.append((code, [path.name for path in (place / "ws").iterdir()]))
            return found

        work()
        shutil.rmtree(place / "home" / "quarantine")
        for path in (place, *place.rglob("*")):
            os.chown(path, NOBODY, NOBODY)

        assert as_user(NOBODY, work) == [[126, []], [126, []]]


def test_a_link_that_is_a_protected_name_stays_and_so_does_what_it_leads_to(
    make_hand: MakeHand, workspace: Path
):
    """`.git` as a link into the workspace: neither the link nor its settings change."""
    need_bubblewrap()
    lines = ["rm .git && mkdir .git && touch .git/config", "echo x >> real/config",
             "echo x > real/hooks/new", "mv real other", "ln -sfn other .git"]  # fmt: skip
    for line in lines:
        (workspace / "real/hooks").mkdir(parents=True)
        (workspace / "real/config").write_text("mine")
        (workspace / ".git").symlink_to("real")
        before = tree(workspace)

        caged = make_hand("bubblewrap").forward(Command(line))

        assert caged.exit_code != 0, line
        assert tree(workspace) == before, line
        assert make_hand("none").forward(Command(line)).ok, line
        subprocess.run(["find", workspace, "-mindepth", "1", "-delete"], check=True)


def test_names_that_a_policy_protects_are_closed_too(make_hand: MakeHand, workspace: Path):
    """In the workspace, there or not; and by their whole path."""
    need_bubblewrap()
    (workspace / "keys").mkdir()
    (workspace / "policy.yaml").write_text("mine")
    names = ("keys", "later/secret", str(workspace / "policy.yaml"))
    spec = SandboxSpec("bubblewrap", (str(workspace),), protect=names)
    for line in ("echo x > keys/a", "mkdir later; echo x > later/secret", "echo x > policy.yaml"):
        assert make_hand(sandbox=spec).forward(Command(line)).exit_code != 0, line
        assert make_hand("none").forward(Command(line)).ok, line
        subprocess.run(["rm", "-rf", workspace / "keys/a", workspace / "later"], check=True)
    assert make_hand(sandbox=spec).forward(Command("mkdir later; echo x > later/other")).ok


def test_everything_else_works_as_ever(make_hand: MakeHand, workspace: Path, sandbox: str):
    """No placeholder is seen: a command finds the files that are there, and leaves no others."""
    (workspace / "a.txt").write_text("x")

    result = make_hand(sandbox).forward(Command("find . | sort; mkdir b && mv a.txt b/.gitignore"))

    assert result.stdout == ".\n./a.txt\n"
    assert tree(workspace) == {"b": "folder", "b/.gitignore": "x"}


def test_other_files_of_a_repository_can_be_written(make_hand: MakeHand, workspace: Path):
    """A commit goes on; only its settings and hooks are closed."""
    need_bubblewrap()
    assert make_hand("none").forward(Command("git init -q .")).ok
    who = "git -c user.name=a -c user.email=a@b"

    result = make_hand("bubblewrap").forward(
        Command(f"echo x > f && git add f && {who} commit -qm one && git log --oneline | wc -l")
    )

    assert result.stdout == "1\n", result.stderr


def test_repositories_in_folders_of_the_workspace_are_closed_too(
    make_hand: MakeHand, workspace: Path
):
    """Those that are there, at any depth."""
    need_bubblewrap()
    assert make_hand("none").forward(Command("git init -q mine; git init -q a/b/deep")).ok
    lines = ["mv mine other"]
    for repository in ("mine", "a/b/deep"):
        lines += [f"echo x > {repository}/.git/hooks/new", f"echo x >> {repository}/.git/config",
                  f"mv {repository}/.git {repository}/x"]  # fmt: skip
    for line in lines:
        before = tree(workspace)
        assert not make_hand("bubblewrap").forward(Command(line)).ok, line
        assert tree(workspace) == before, line
        assert make_hand("none").forward(Command(line)).ok, line
        subprocess.run(
            ["sh", "-c", "test -e mine || mv other mine; for r in mine a/b/deep; do"
             " test ! -e $r/x || mv $r/x $r/.git; done"], cwd=workspace, check=True,
        )  # fmt: skip


#: Lines that make protected names in folders below, and what of them may stay.
DEEPER = [
    ("mkdir -p n1/n2 && git init -q n1/n2 && touch n1/n2/kept", ["n1", "n1/n2", "n1/n2/kept"]),
    ("mkdir -p n1/n2/.git/hooks; echo x > n1/n2/.git/hooks/post-checkout", ["n1", "n1/n2"]),
    ("git init -q sub2", ["sub2"]),
    ("mkdir -p sub/.vscode && echo x > sub/.vscode/tasks.json", ["sub"]),
    ("mkdir -p was/there/.openry; echo x > was/there/.openry/p", []),
    ("mkdir -p x/y && ln -s / x/y/.vscode", ["x", "x/y"]),
    ("mkdir -p x/y; mv x/y was/y; mkdir x/c && mv x/c was/y/.vscode", ["was/y", "x"]),
    ("echo 'gitdir: evil' > was/there/.git", []),
    ("ln -s evil was/there/.git", []),
    ("mkdir -p e/objects e/refs; echo 'ref: x' > e/HEAD; echo x > e/config; mkdir e/hooks",
     ["e", "e/HEAD", "e/objects", "e/refs"]),
    ("mkdir -p deep && cd deep && git init -q --bare . && rm -rf info", None),
    ("mkdir -p c/.vscode; chmod 0 c/.vscode c", ["c"]),
    ("touch HEAD; mkdir -p objects s/.vscode", ["HEAD", "objects", "s"]),
    ("touch -d 1999-01-01 w; mkdir -p q/.vscode; touch -d 1999-01-01 q q/.vscode", ["q", "w"]),
    ("for i in 1 2 3 4 5 6 7; do mkdir -p m$i/.vscode; done", [f"m{i}" for i in range(1, 8)]),
    ("mkdir p; (setsid sh -c 'mkdir p/.vscode' &); while ! test -e p/.vscode; do :; done", ["p"]),
]  # fmt: skip


@pytest.mark.parametrize("line, stays", DEEPER, ids=[line for line, _ in DEEPER])
def test_what_is_made_in_folders_below_is_put_away_too(
    make_hand: MakeHand, workspace: Path, sandbox: str, line: str, stays: list[str] | None
):
    """At any depth, in new folders and old ones; the rest of the work stays."""
    (workspace / "was/there").mkdir(parents=True)
    before = set(tree(workspace))
    assert make_hand("none").forward(Command(line)).ok, "the control run failed"
    subprocess.run(["find", workspace, "-mindepth", "1", "-delete"], check=True)
    (workspace / "was/there").mkdir(parents=True)
    caged = make_hand(sandbox)

    result = caged.forward(Command(line))

    assert (result.exit_code, str(result.ending)) == (126, "refused")
    assert "is protected" in result.stderr
    left = {name for name in tree(workspace) if name not in before}
    if stays is not None:
        assert left == set(stays)
    assert not any(Path(name).name in (".git", ".vscode", ".openry", "hooks", "config")
                   for name in left)  # fmt: skip
    assert str(caged.config.home / "quarantine") in result.stderr
    assert any((caged.config.home / "quarantine").rglob("*"))
    assert caged.forward(Command("ls -A; touch was/there/fine")).ok


def test_a_folder_too_deep_to_be_looked_through_goes_as_a_whole(
    make_hand: MakeHand, workspace: Path
):
    """No path reaches its end, so nobody can say what is there."""
    need_bubblewrap()
    line = (
        "python3 -c \"import os\nfor _ in range(60):\n os.mkdir('d' * 90); os.chdir('d' * 90)\n"
        "os.mkdir('.vscode')\""
    )
    caged = make_hand("bubblewrap")

    result = caged.forward(Command(line))

    assert result.exit_code == 126, result.stderr
    assert list(workspace.iterdir()) == []
    subprocess.run(["rm", "-rf", caged.config.home / "quarantine"], check=True)
    assert make_hand("none").forward(Command(line)).ok
    subprocess.run(["rm", "-rf", workspace / ("d" * 90)], check=True)


def test_names_that_a_policy_protects_anywhere_are_closed_in_every_folder(
    make_hand: MakeHand, workspace: Path
):
    """`**/.env`: those that are there cannot be changed, those that are made do not stay."""
    need_bubblewrap()
    for place in (".env", "a/.env"):
        (workspace / place).parent.mkdir(exist_ok=True)
        (workspace / place).write_text("mine")
    spec = SandboxSpec("bubblewrap", (str(workspace),), protect=("**/.env", "**/keys/id"))
    before = tree(workspace)
    lines = ["echo x > .env", "echo x > a/.env", "mv a/.env a/e", "echo x > b.env; echo x > .env",
             "mkdir -p b && echo x > b/.env", "mkdir -p b/keys; echo x > b/keys/id"]  # fmt: skip
    for line in lines:
        assert make_hand(sandbox=spec).forward(Command(line)).exit_code != 0, line
        subprocess.run(["rm", "-rf", workspace / "b", workspace / "b.env"], check=True)
        assert tree(workspace) == before, line
    assert make_hand(sandbox=spec).forward(Command("mkdir b; echo x > b/id; echo x > b/x.env")).ok
    bounds = narrowed(SandboxSpec(), load_policy({"files": {"protect": ["**/.env"]}}), "/w")
    assert "**/.env" in bounds.protect


def test_what_a_person_moved_or_has_is_not_taken_for_a_commands(
    make_hand: MakeHand, workspace: Path
):
    """A folder with a repository in it is moved by a command: that is no new repository."""
    need_bubblewrap()
    assert make_hand("none").forward(Command("git init -q a/b/deep; mkdir a/b/deep/.vscode")).ok
    caged = make_hand("bubblewrap")

    assert caged.forward(Command("mv a/b a/c; mv a d; touch d/c/deep/file")).ok

    assert (workspace / "d/c/deep/.git/hooks").is_dir()
    assert (workspace / "d/c/deep/.vscode").is_dir()
    assert caged.forward(Command("mkdir d/c/other")).ok
    assert not caged.forward(Command("touch d/c/deep/.vscode/x")).ok


def test_only_folders_that_changed_are_read_again(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    """Of many folders, a command costs a look at each and reads those it changed."""
    for number in range(50):
        (workspace / f"{number}/in").mkdir(parents=True)
    monkeypatch.setattr(below, "_COARSE_NS", -1)
    read: list[str] = []
    scandir = os.scandir

    def counted(place: str) -> Any:
        read.append(place)
        return scandir(place)

    Below([str(workspace)])
    monkeypatch.setattr(os, "scandir", counted)
    known = Below([str(workspace)])
    assert read == []
    (workspace / "7/in/.vscode").mkdir()

    assert [name.path for name in known.made()] == [f"{workspace}/7/in/.vscode"]
    assert read == [f"{workspace}/7/in"]


def test_what_was_put_away_is_kept_within_bounds(
    make_hand: MakeHand, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    """By age, by size and by number; the newest stays, unless it is too large by itself."""
    need_bubblewrap()
    caged = make_hand("bubblewrap")
    root = caged.config.home / "quarantine"
    monkeypatch.setattr(quarantine, "KEPT_ENTRIES", 2)
    for _ in range(3):
        said = caged.forward(Command("mkdir .vscode"))
    assert len(list(root.iterdir())) == 2
    assert f"is in {max(root.iterdir(), key=lambda one: one.stat().st_ctime_ns)}" in said.stderr
    monkeypatch.setattr(quarantine, "KEPT_MIB", 1)

    line = "mkdir x; head -c 3000000 /dev/zero > x/a; chmod 0 x/a x; mv x .vscode"
    said = caged.forward(Command(line))

    assert "too large to be kept" in said.stderr
    assert list(root.iterdir()) == [] and list(workspace.iterdir()) == []
    assert caged.forward(Command("mkdir .vscode")).exit_code == 126
    assert quarantine.contents(str(root))[0] == 1
    assert quarantine.forget(str(root), time.time() + 60) == 1
    assert list(root.iterdir()) == []


def test_what_cannot_be_kept_is_removed(make_hand: MakeHand, workspace: Path):
    """A quarantine that cannot be written keeps nothing in the workspace."""
    need_bubblewrap()
    caged = make_hand("bubblewrap")
    (caged.config.home / "quarantine").write_text("in the way")

    result = caged.forward(Command("mkdir -p .openry a/.vscode; echo x > a/.vscode/x"))

    assert result.exit_code == 126
    assert [path.name for path in workspace.iterdir()] in (["a"], [])
    assert not (workspace / "a/.vscode").exists()
    assert "is gone" in result.stderr


def test_killed_in_the_middle_it_leaves_nothing(tmp_path: Path):
    """Neither a process nor a file of the sandbox's own, after SIGKILL of the hand."""
    need_bubblewrap()
    workspace = tmp_path / "ws"
    workspace.mkdir()
    script = (
        "import sys\n"
        "from openry.config import load_config\n"
        "from openry.forwarder import Hand\n"
        "from openry.ledger.fast import FastLedger\n"
        "from openry.models import Command, RunContext, SandboxSpec\n"
        "config = load_config(sys.argv[1], env={})\n"
        "spec = SandboxSpec('bubblewrap', (sys.argv[2],))\n"
        "context = RunContext(workspace=sys.argv[2], sandbox=spec)\n"
        "Hand(FastLedger(config.ledger), context, config).forward(Command('touch up; sleep 600'))\n"
    )
    hand = subprocess.Popen([sys.executable, "-c", script, tmp_path / "home", workspace])
    while not (workspace / "up").exists():
        time.sleep(0.02)

    hand.send_signal(signal.SIGKILL)
    hand.wait()

    assert tree(workspace) == {"up": ""}


@pytest.mark.parametrize(
    "name", [".git/hooks/pre-commit", ".vscode/tasks.json", "l/../.openry/x", "a/b/.vscode/x",
             "a/.git/config", "a/.git", "bare/hooks/x"]
)  # fmt: skip
def test_a_tools_output_goes_to_no_protected_file(make_hand: MakeHand, workspace: Path, name: str):
    """Such a file is written by us, outside the sandbox."""
    (workspace / "bare/objects").mkdir(parents=True)
    (workspace / "bare/HEAD").touch()
    before = tree(workspace)
    command = Command(stages=(("echo", "x"),), output_file=name)

    result = make_hand("none").forward(command)

    assert result.exit_code == 2 and "is protected" in result.stderr
    assert tree(workspace) == before
    assert make_hand("none").forward(Command(stages=(("echo", "x"),), output_file="a/b")).ok


def test_our_code_and_the_ledger_are_closed_in_a_workspace_that_has_them(
    make_hand: MakeHand, tmp_path: Path
):
    """The folder above all of it may be written; these may not, and the ledger is not seen."""
    need_bubblewrap()
    hand = make_hand(sandbox=SandboxSpec("bubblewrap", (str(tmp_path),)))

    assert hand.forward(Command(f"test ! -e {tmp_path}/home/openry.db")).ok
    assert hand.forward(Command(f"echo x > {tmp_path}/free")).ok
    ours = Path(openry.sandbox.__file__).parent
    hand = make_hand(sandbox=SandboxSpec("bubblewrap", (str(ours),)))
    assert not hand.forward(Command(f"touch {ours}/new")).ok
    assert os.access(ours, os.W_OK), "the control"
