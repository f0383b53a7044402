"""`openry init`, `trust`, `secret`, `backup`: OPENRY_HOME and what a person puts into it."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from hand_helpers import PROGRAM, OpenRY

from openry.config import load_config
from openry.orchestrator.loader import load
from openry.orchestrator.missing import missing_secrets
from openry.secretstore import SecretStore

VALUE = "correct horse battery"


def said(openry: OpenRY, *args: str, status: int = 0, **more: object) -> str:
    done = openry.raw(*args, **more)
    assert done.returncode == status, done.stderr.decode() + done.stdout.decode()
    assert b"Traceback" not in done.stderr
    return (done.stdout + done.stderr).decode()


# --- init -----------------------------------------------------------------------------------


def test_init_makes_a_home_and_says_what_it_made(openry: OpenRY):
    """Folders, a config.yaml that changes nothing, a ledger; a second time all is kept."""
    first = json.loads(said(openry, "init", "--json"))
    again = json.loads(said(openry, "init", "--json"))

    assert {one["what"] for one in first} == {"made"}
    assert {one["what"] for one in again} == {"kept"}
    assert [one["path"] for one in first] == [one["path"] for one in again]
    for name in ("compositions", "workflows", "policies", "capabilities", "overflow"):
        assert (openry.home / name).stat().st_mode & 0o777 == 0o700
    assert (openry.home / "config.yaml").stat().st_mode & 0o777 == 0o600
    assert (openry.home / "openry.db").is_file()
    found = json.loads(said(openry, "config", "--json"))
    assert {one["from"] for one in found.values()} == {"default", "environment"}
    assert found["ledger"]["from"] == "default"


def test_init_closes_a_home_that_others_could_read(openry: OpenRY):
    """And leaves what a person wrote as it is."""
    openry.home.mkdir(mode=0o755)
    (openry.home / "config.yaml").write_text("background: keep\n")

    told = said(openry, "init")

    assert f"closed    {openry.home}\n" in told
    assert openry.home.stat().st_mode & 0o777 == 0o700
    assert (openry.home / "config.yaml").read_text() == "background: keep\n"


def test_a_home_that_cannot_be_made_is_one_sentence(openry: OpenRY):
    """Status 74, the place, and what to set."""
    openry.home.write_text("a file")

    told = said(openry, "init", status=74)

    assert str(openry.home) in told
    assert "OPENRY_HOME" in told
    assert told.count("\n") == 1


# --- trust ----------------------------------------------------------------------------------


@pytest.fixture
def project(openry: OpenRY) -> Path:
    """A project at the current folder, with a workflow, a policy and a tool."""
    files = {
        "workflows/greet.yaml": "name: greet\nsandbox: {backend: none}\nworkspace: shared\n"
        "sub_steps:\n  - {id: a, kind: shell, command: echo hi > hi.txt}\n",
        "policies/mine.yaml": "default: deny\ncommands: [{allow: echo}]\n",
        "config.yaml": "shell: {program: /nonexistent/shell}\nsandbox: none\n",
    }
    for name, text in files.items():
        path = openry.cwd / ".openry" / name
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o644)
    return openry.cwd / ".openry"


def test_a_project_supplies_nothing_until_it_is_trusted(openry: OpenRY, project: Path):
    """Asked for by name it is refused with the way out; after `openry trust` it is found."""
    asked = ("policy", "explain", "echo x", "--policy", "mine")
    before = said(openry, *asked, status=2)

    told = said(openry, "trust")

    assert "no policy `mine`" in before
    assert "new workflows/greet.yaml" in told
    assert "never read: config.yaml" in told
    assert said(openry, *asked).startswith("allow")
    (project / "policies/mine.yaml").write_text("default: allow\n")
    assert "no policy `mine`" in said(openry, *asked, status=2)
    assert "changed policies/mine.yaml" in said(openry, "trust", "--show", status=1)
    assert json.loads(said(openry, "trust", "--json"))["trusted"] is True
    assert "trusted no longer" in said(openry, "trust", "--forget")
    assert "no policy `mine`" in said(openry, *asked, status=2)


def test_a_trusted_project_sets_nothing(openry: OpenRY, project: Path):
    """Its config.yaml is never read: shell and sandbox are what they were."""
    said(openry, "trust")

    assert openry("-c", "echo fine")["stdout"] == "fine\n"
    found = json.loads(said(openry, "config", "--json"))
    assert found["sandbox"] == {"value": "auto", "from": "default"}


def _orchestrator(openry: OpenRY, *args: str) -> subprocess.CompletedProcess[str]:
    program = Path(PROGRAM).with_name("openry-orchestrator")
    return subprocess.run(
        [program, *args],
        cwd=openry.cwd,
        env=openry.env,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.sandbox
def test_a_project_s_workflow_is_found_by_name_and_never_leaves_the_sandbox(
    openry: OpenRY, project: Path
):
    """It says `sandbox: none`; it runs under `moderate` in a sandbox all the same."""
    refused = _orchestrator(openry, "start", "greet", "--wait")
    said(openry, "trust")
    done = _orchestrator(openry, "start", "greet", "--wait")

    assert (refused.returncode, "openry trust" in refused.stderr) == (2, True)
    assert done.returncode == 0, done.stderr + done.stdout
    assert (openry.cwd / "hi.txt").read_text() == "hi\n"
    assert "sandbox: bubblewrap" in openry.rows("shell")[-1]["shell"]


# --- secret ---------------------------------------------------------------------------------


def test_a_secret_is_kept_listed_used_and_removed(openry: OpenRY):
    """From standard input, never shown again, taken out of whatever a command prints."""
    told = said(openry, "secret", "set", "DEPLOY_CODE", stdin=f"{VALUE}\n".encode())

    assert (told, VALUE in told) == ("`DEPLOY_CODE` is kept in the file\n", False)
    assert (openry.home / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert said(openry, "secret", "list") == "DEPLOY_CODE  file\n"
    listed = json.loads(said(openry, "secret", "list", "--json"))
    assert listed == [{"name": "DEPLOY_CODE", "kept_in": "file"}]
    answer = openry("-c", f"echo '{VALUE}'")
    assert answer["stdout"] == "***DEPLOY_CODE***\n"
    assert VALUE not in openry.rows("command")[0]["command"]
    assert "forgotten" in said(openry, "secret", "remove", "DEPLOY_CODE")
    assert said(openry, "secret", "list") == ""
    assert openry("-c", f"echo '{VALUE}'")["stdout"] == f"{VALUE}\n"


def test_a_secret_typed_at_a_terminal_is_not_shown(openry: OpenRY):
    """The prompt comes back, what was typed does not."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "secret", "set", "TYPED"],
        cwd=openry.cwd, env=openry.env, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"not shown" not in shown:
        shown += os.read(ours, 1024)
    os.write(ours, f"{VALUE}\n".encode())
    try:
        while part := os.read(ours, 1024):
            shown += part
    except OSError:  # Linux: the other end is closed
        pass
    assert process.wait(timeout=20) == 0
    os.close(ours)

    assert VALUE.encode() not in shown
    assert SecretStore(openry.home).values() == {"TYPED": VALUE}


@pytest.mark.parametrize(
    ("args", "stdin", "told"),
    [
        (["set", "SHORT"], b"12345\n", "at least 6 characters"),
        (["set", "no-name"], b"123456\n", "cannot be the name"),
        (["set", "OPENRY_X"], b"123456\n", "cannot be the name"),
        (["set", "BYTES"], b"\xff\xfe1234567", "UTF-8"),
        (["remove", "DEPLOY"], b"", "no secret is called `DEPLOY`"),
    ],
)
def test_what_can_be_no_secret_is_one_sentence(
    openry: OpenRY, args: list[str], stdin: bytes, told: str
):
    """Status 2, nothing kept, the value not repeated."""
    sentence = said(openry, "secret", *args, stdin=stdin, status=2)

    assert told in sentence
    assert "123456" not in sentence
    assert not (openry.home / "secrets.json").exists()


class _Keyring:
    """A keyring in memory; a locked one raises, as real ones do."""

    def __init__(self, *, locked: bool = False) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = locked

    def set_password(self, service: str, name: str, value: str) -> None:
        if self.locked:
            raise RuntimeError("locked")
        self.kept[service, name] = value

    def get_password(self, service: str, name: str) -> str | None:
        if self.locked:
            raise RuntimeError("locked")
        return self.kept.get((service, name))

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


def test_a_keyring_that_works_keeps_the_values(tmp_path: Path):
    """Then the file holds the names alone; a locked keyring gives no value and no error."""
    keyring = _Keyring()
    store = SecretStore(tmp_path, keyring=keyring)

    assert store.set("A_TOKEN", VALUE) == "keyring"
    assert VALUE not in (tmp_path / "secrets.json").read_text()
    assert (store.names(), store.values()) == ({"A_TOKEN": "keyring"}, {"A_TOKEN": VALUE})
    keyring.locked = True
    assert store.values() == {}
    assert store.set("B_TOKEN", VALUE) == "file"
    keyring.locked = False
    store.remove("A_TOKEN")
    assert (keyring.kept, store.names()) == ({}, {"B_TOKEN": "file"})


def test_a_damaged_file_of_secrets_is_one_sentence(openry: OpenRY):
    """Nothing runs without knowing what to keep out of answers; the file stays."""
    openry.home.mkdir(mode=0o700)
    (openry.home / "secrets.json").write_text("{")

    answer = openry("-c", "touch made", status=2)

    assert "set them again" in answer["stderr"]
    assert not (openry.cwd / "made").exists()
    assert (openry.home / "secrets.json").read_text() == "{"


def test_a_step_is_given_the_secrets_it_names(openry: OpenRY):
    """Stored ones like exported ones; `validate` names those that nobody has set."""
    text = (
        "name: uses\nworkspace: shared\nsandbox: {backend: none}\nsub_steps:\n"
        "  - id: a\n    kind: shell\n    secrets: [STORED, MISSING]\n"
        "    command: echo ${#STORED} $STORED\n"
    )
    (openry.cwd / "uses.yaml").write_text(text)
    said(openry, "secret", "set", "STORED", stdin=VALUE.encode())

    checked = _orchestrator(openry, "validate", "uses.yaml")
    done = _orchestrator(openry, "start", "uses.yaml", "--wait")

    assert "uses.yaml:7: warning: the secret `MISSING` is not set" in checked.stdout
    assert "STORED` is not set" not in checked.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert openry.rows("stdout")[-1]["stdout"] == f"{len(VALUE)} ***STORED***\n"
    config = load_config(openry.home, env={})
    assert list(missing_secrets(load(text), config, {"MISSING": "x"})) == []


# --- backup ---------------------------------------------------------------------------------


def test_a_backup_is_whole_and_comes_back(openry: OpenRY, tmp_path: Path):
    """Ledger and what a person wrote; secrets stay out unless asked for; nothing is deleted."""
    said(openry, "init")
    (openry.home / "workflows" / "w.yaml").write_text("name: w\n")
    said(openry, "secret", "set", "A_TOKEN", stdin=VALUE.encode())
    (openry.home / "operator.token").write_text("0123456789")
    openry("-c", "echo one")

    told = said(openry, "backup", "../b.tar.gz")
    said(openry, "backup", "../all.tar", "--with-secrets", "--whole")

    file = tmp_path / "b.tar.gz"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "openry.db" in told
    with tarfile.open(file) as archive:
        names = archive.getnames()
    assert "openry/workflows/w.yaml" in names
    assert not [name for name in names if re.search("secret|token|-wal|-shm", name)]
    with tarfile.open(tmp_path / "all.tar") as archive:
        assert {"openry/secrets.json", "openry/operator.token"} <= set(archive.getnames())
    assert "exists" in said(openry, "backup", "../b.tar.gz", status=2)

    openry("-c", "echo two")
    (openry.home / "workflows" / "w.yaml").write_text("name: changed\n")
    told = said(openry, "backup", "../b.tar.gz", "--restore")

    assert (openry.home / "workflows" / "w.yaml").read_text() == "name: w\n"
    assert [row["command"] for row in openry.rows("command")] == ["echo one"]
    aside = next(openry.home.glob("before-restore-*"))
    assert str(aside) in told
    assert (aside / "workflows" / "w.yaml").read_text() == "name: changed\n"
    assert (aside / "openry.db").exists()
    assert openry("-c", "echo three")["stdout"] == "three\n"
    assert said(openry, "secret", "list") == "A_TOKEN  file\n"


def test_the_blackboards_of_the_ledger_are_backed_up(openry: OpenRY, tmp_path: Path):
    """With a ledger elsewhere those beside it, not others that lie in OPENRY_HOME."""
    said(openry, "init")
    openry.env["OPENRY_DB"] = str(tmp_path / "elsewhere" / "ledger.db")
    for folder, text in ((openry.home, "wrong"), (tmp_path / "elsewhere", "right")):
        (folder / "blackboards" / "common").mkdir(parents=True)
        (folder / "blackboards" / "common" / "note").write_text(text)
    openry("-c", "echo one")

    told = said(openry, "backup", "../b.tar")

    assert told.count("blackboards") == 1
    with tarfile.open(tmp_path / "b.tar") as archive:
        note = archive.extractfile("openry/blackboards/common/note")
        assert note is not None
        assert note.read() == b"right"


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_packed_backup_with_a_bit_that_turned_is_none(
    openry: OpenRY, tmp_path: Path, ending: str
):
    """Wherever it turned: not restored in part, not restored with other content."""
    said(openry, "init")
    (openry.home / "workflows" / "w.yaml").write_bytes(os.urandom(60_000).hex().encode())
    said(openry, "backup", f"../b.tar.{ending}")
    file = tmp_path / f"b.tar.{ending}"
    whole = file.read_bytes()
    before = (openry.home / "workflows" / "w.yaml").read_bytes()
    for place in (len(whole) // 3, len(whole) // 2, len(whole) - 6):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])

        told = said(openry, "backup", f"../b.tar.{ending}", "--restore", status=2)

        assert told.count("\n") == 1
        assert "is no archive that `openry backup` wrote" in told
        assert (openry.home / "workflows" / "w.yaml").read_bytes() == before
        assert not list(openry.home.glob("before-restore-*"))


def test_where_there_is_nothing_to_back_up_that_is_said(openry: OpenRY, tmp_path: Path):
    """No archive of nothing is left behind."""
    assert "there is no" in said(openry, "backup", "../b.tar", status=2)
    openry.home.mkdir(mode=0o700)
    assert "nothing to back up" in said(openry, "backup", "../b.tar", status=2)
    assert not (tmp_path / "b.tar").exists()


def test_a_backup_while_others_write_is_sound(openry: OpenRY, tmp_path: Path):
    """Every row of the copy is whole, and its rows are the first of the ledger's."""
    openry("-c", "true")
    code = "import openry.cli\nfor _ in range(40): openry.cli.main(['-c', 'true'])"
    writer = subprocess.Popen(
        [Path(PROGRAM).with_name("python"), "-c", code],
        cwd=openry.cwd, env=openry.env, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    for number in range(3):
        said(openry, "backup", f"../copy{number}.tar")
    assert writer.wait() == 0

    for number in range(3):
        other = OpenRY(tmp_path / f"home{number}", openry.cwd)
        said(other, "backup", f"../copy{number}.tar", "--restore")
        rows = other.rows("id, ending, ended_at")
        assert [row["id"] for row in rows] == list(range(1, len(rows) + 1))
        assert {row["ending"] for row in rows[:-1]} == {"exited"}


def _archive(path: Path, name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> None:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        archive.addfile(member, io.BytesIO(b""))


@pytest.mark.parametrize(
    "bad", ["no archive", "cut", "outside", "link", "other", "damaged ledger", "missing"]
)
def test_what_is_no_backup_changes_nothing(openry: OpenRY, tmp_path: Path, bad: str):
    """Looked at before anything is touched; one sentence, status 2 or 74."""
    said(openry, "init")
    openry("-c", "echo one")
    file = tmp_path / "b.tar"
    if bad == "no archive":
        file.write_text("hello")
    elif bad == "cut":
        said(openry, "backup", "../b.tar")
        file.write_bytes(file.read_bytes()[:5000])
    elif bad == "damaged ledger":
        (tmp_path / "openry").mkdir()
        (tmp_path / "openry" / "openry.db").write_bytes(os.urandom(9000))
        with tarfile.open(file, "w") as archive:
            archive.add(tmp_path / "openry", "openry")
    elif bad != "missing":
        name = {"outside": "openry/../../evil", "link": "openry/workflows", "other": "evil"}[bad]
        _archive(file, name, tarfile.SYMTYPE if bad == "link" else tarfile.REGTYPE, "/etc")

    told = said(openry, "backup", "../b.tar", "--restore", status=74 if "ledger" in bad else 2)

    assert told.count("\n") == 1
    assert [row["command"] for row in openry.rows("command")] == ["echo one"]
    assert not list(openry.home.glob("before-restore-*"))
    assert not (tmp_path / "evil").exists()


# --- tools of one's own ---------------------------------------------------------------------

TOOL = """
name: wave
description: Say hello to somebody. Not for letters.
examples:
  - {request: say hello to Bo, arguments: {who: Bo}}
parameters:
  who: {type: string, description: whom to greet, required: true}
command_template: [echo, "hello {who}"]
requires_confirmation: true
"""


def test_tools_of_the_home_and_of_a_trusted_project_are_found(openry: OpenRY):
    """By every form; a dry run of one that asks a person first says so."""
    for place in (openry.home / "capabilities/own", openry.cwd / ".openry/capabilities/ours"):
        place.mkdir(mode=0o755, parents=True)
    name = "wave_ours"
    (openry.home / "capabilities/own/wave.yaml").write_text(TOOL)
    (openry.cwd / ".openry/capabilities/ours/w.yaml").write_text(TOOL.replace("wave", name))

    assert name not in said(openry, "capability", "list")
    said(openry, "trust")
    assert f"ours.{name}" in said(openry, "capability", "list")
    answer = openry("--call", "wave", "--args", '{"who": "Bo"}', "--dry-run")
    told = json.loads(answer["stdout"])
    assert (told["verdict"], told["argv"]) == ("confirm", ["echo", "hello Bo"])
